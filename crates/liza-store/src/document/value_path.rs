//! The paths of `get` and `lock write`: `.agents.coder-1.status`, `.tasks[0]`, `.tasks[]`,
//! `.tasks[] | select(.id == "task-3") | .description`, `."odd key"`.

use std::fmt;
use std::str::FromStr;

use liza_core::model::{Fields, Section, Value};

use crate::yaml::YamlError;

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Key(String),
    Index(usize),
    All,
    Select(String, String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuePath(Vec<PathStep>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("{path} matches nothing on the blackboard")]
    NoMatch { path: String },
    #[error("{value:?} is not YAML: {source}")]
    NotYaml { value: String, source: YamlError },
    #[error("invalid path {path:?} at {rest:?}; use keys, [n], [] and select(.key == \"value\")")]
    Syntax { path: String, rest: String },
}

impl fmt::Display for ValuePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(".");
        }
        for step in &self.0 {
            match step {
                PathStep::Key(key) => write!(f, ".{key}")?,
                PathStep::Index(n) => write!(f, "[{n}]")?,
                PathStep::All => f.write_str("[]")?,
                PathStep::Select(key, value) => write!(f, " | select(.{key} == {value:?}) | ")?,
            }
        }
        Ok(())
    }
}

impl FromStr for ValuePath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let invalid = |rest: &str| PathError::Syntax { path: text.to_owned(), rest: rest.to_owned() };
        let mut steps = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let trimmed = rest.trim_start_matches(['|', ' ', '(']);
            // Only the first key may lack its dot.
            let bare = trimmed.starts_with(|c: char| c.is_alphanumeric()) && !trimmed.starts_with("select(");
            let (step, after) =
                step(trimmed).filter(|_| !bare || steps.is_empty()).ok_or_else(|| invalid(rest))?;
            steps.extend(step);
            rest = after.trim_start_matches(')').trim_start();
        }
        Ok(Self(steps))
    }
}

/// The first step of a text, and the rest. `.` alone is not a step.
fn step(text: &str) -> Option<(Option<PathStep>, &str)> {
    if let Some(inside) = text.strip_prefix("select(") {
        let (condition, after) = inside.split_once(')')?;
        let (key, value) = condition.split_once("==")?;
        let key = key.trim().strip_prefix('.')?.trim_matches('"');
        let value = value.trim().trim_matches('"');
        return Some((Some(PathStep::Select(key.to_owned(), value.to_owned())), after));
    }
    let text = text.strip_prefix('.').unwrap_or(text);
    if let Some(inside) = text.strip_prefix('[') {
        let (index, after) = inside.split_once(']')?;
        let index = index.trim();
        let step = match (index, index.strip_prefix('"').and_then(|key| key.strip_suffix('"'))) {
            ("", _) => PathStep::All,
            (_, Some(key)) => PathStep::Key(key.to_owned()),
            (digits, None) => PathStep::Index(digits.parse().ok()?),
        };
        return Some((Some(step), after));
    }
    if let Some(inside) = text.strip_prefix('"') {
        let (key, after) = inside.split_once('"')?;
        return Some((Some(PathStep::Key(key.to_owned())), after));
    }
    let end = text.find(['.', '[', ' ', '|', ')']).unwrap_or(text.len());
    let (key, after) = text.split_at(end);
    let named = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
    match (named, after) {
        (true, _) => Some((Some(PathStep::Key(key.to_owned())), after)),
        (false, "") if key.is_empty() => Some((None, after)),
        (false, _) => None,
    }
}

/// The part of the file that a path leads into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathTarget<'p> {
    Section(&'p str),
    Task(&'p str),
    TaskAt(usize),
}

impl ValuePath {
    /// `None` if the path names the whole file or several tasks.
    pub(crate) fn target(&self) -> Option<PathTarget<'_>> {
        match &self.0[..] {
            [PathStep::Key(tasks), PathStep::All, PathStep::Select(id, task), PathStep::Key(key), ..]
                if tasks == "tasks" && id == "id" && key != "revision" =>
            {
                Some(PathTarget::Task(task))
            }
            [PathStep::Key(tasks), PathStep::Index(n), PathStep::Key(key), ..]
                if tasks == "tasks" && key != "revision" =>
            {
                Some(PathTarget::TaskAt(*n))
            }
            [PathStep::Key(section), _, ..] if section != "tasks" => Some(PathTarget::Section(section)),
            [] | [..] => None,
        }
    }

    /// True if everything that matches is in this section.
    pub(crate) fn leads_into(&self, section: &str) -> bool {
        matches!(self.0.first(), Some(PathStep::Key(key)) if key == section)
    }

    /// The same path in a file with only the task that it names.
    pub(crate) fn in_only_task(&self) -> Option<Self> {
        let ([tasks, PathStep::All, PathStep::Select(..), rest @ ..]
        | [tasks, PathStep::Index(_), rest @ ..]) = &self.0[..]
        else {
            return None;
        };
        let steps = [std::slice::from_ref(tasks), &[PathStep::Index(0)], rest].concat();
        Some(Self(steps))
    }

    pub(crate) fn find<'v>(&self, root: &'v Value) -> Vec<&'v Value> {
        let mut found = vec![root];
        for step in &self.0 {
            found = found.into_iter().flat_map(|value| step.follow(value)).collect();
        }
        found
    }

    /// Sets all values that match, and returns their number. The last keys may be new.
    pub(crate) fn set(&self, root: &mut Value, value: &Value) -> usize {
        // A new section must be meant: a typo in its name is more likely than a new one with keys.
        if let (Value::Map(fields), [PathStep::Key(section), _, ..]) = (&*root, &self.0[..])
            && !fields.contains_key(section)
            && !Section::ALL.iter().any(|known| known.key() == section)
        {
            return 0;
        }
        set_steps(&self.0, root, value)
    }
}

fn set_steps(steps: &[PathStep], target: &mut Value, value: &Value) -> usize {
    let Some((step, rest)) = steps.split_first() else {
        *target = value.clone();
        return 1;
    };
    if matches!(step, PathStep::Key(_)) && *target == Value::Null {
        *target = Value::Map(Fields::new());
    }
    match (step, target) {
        (PathStep::Key(key), Value::Map(fields)) => match fields.get_mut(key) {
            Some(inner) => set_steps(rest, inner, value),
            None if rest.iter().all(|step| matches!(step, PathStep::Key(_))) => {
                let mut new = Value::Null;
                let set = set_steps(rest, &mut new, value);
                fields.insert(key.clone(), new);
                set
            }
            None => 0,
        },
        (PathStep::Index(n), Value::List(items)) => {
            items.get_mut(*n).map_or(0, |item| set_steps(rest, item, value))
        }
        (PathStep::All, Value::List(items)) => {
            items.iter_mut().map(|item| set_steps(rest, item, value)).sum()
        }
        (PathStep::All, Value::Map(fields)) => {
            fields.values_mut().map(|item| set_steps(rest, item, value)).sum()
        }
        (PathStep::Select(..), target) if step.matches(target) => set_steps(rest, target, value),
        (PathStep::Key(_) | PathStep::Index(_) | PathStep::All | PathStep::Select(..), _) => 0,
    }
}

impl PathStep {
    fn matches(&self, value: &Value) -> bool {
        match (self, value) {
            (PathStep::Select(key, wanted), Value::Map(fields)) => {
                fields.get(key).is_some_and(|value| value.to_string() == *wanted)
            }
            (PathStep::Select(..) | PathStep::Key(_) | PathStep::Index(_) | PathStep::All, _) => false,
        }
    }

    fn follow<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match (self, value) {
            (PathStep::Key(key), Value::Map(fields)) => fields.get(key).into_iter().collect(),
            (PathStep::Index(n), Value::List(items)) => items.get(*n).into_iter().collect(),
            (PathStep::All, Value::List(items)) => items.iter().collect(),
            (PathStep::All, Value::Map(fields)) => fields.values().collect(),
            (PathStep::Select(..), value) if self.matches(value) => vec![value],
            (PathStep::Key(_) | PathStep::Index(_) | PathStep::All | PathStep::Select(..), _) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: CM-04
    #[test]
    fn a_path_finds_its_values() {
        let (node, _) = crate::yaml::parse(
            "tasks:\n- {id: a, n: 1}\n- {id: b, n: 2}\nagents: {coder-1: {x: y}, odd key: 3}\n",
        )
        .unwrap();
        let root = crate::document::plain_value(&node);
        let found = |path: &str| {
            path.parse::<ValuePath>().map(|path| path.find(&root).iter().map(|v| v.to_string()).collect())
        };
        let cases: [(&str, &[&str]); 9] = [
            (".agents.coder-1.x", &["y"]),
            ("agents.coder-1.x", &["y"]),
            (".tasks[1].n", &["2"]),
            (".tasks[].id", &["a", "b"]),
            (".tasks[] | select(.id == \"b\") | .n", &["2"]),
            ("(.tasks[] | select(.id == \"a\")).n", &["1"]),
            (".agents.\"odd key\"", &["3"]),
            (".agents[\"odd key\"]", &["3"]),
            (".nothing.here", &[]),
        ];
        for (path, expected) in cases {
            let got: Result<Vec<String>, PathError> = found(path);
            assert_eq!(
                got.as_deref(),
                Ok(&expected.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..]),
                "{path}"
            );
        }
        assert_eq!(found(".").map(|all: Vec<String>| all.len()), Ok(1));
        for bad in [".tasks[x]", ".tasks[", "select(id)", ".a b", "..a", ".tasks | map(.x)"] {
            assert!(bad.parse::<ValuePath>().is_err(), "{bad}");
        }
    }
}

//! Settings as text: one taken out of a blackboard, in which everything else stays as it was written; values and changes
//! in one line each.

use liza_core::model::{Fields, Value};
use liza_store::yaml;

use super::layout::clean;

/// The text without this key of the section `config` (`roles.coder.count` for a key of a key); `None` if it
/// has none, or writes the section on one line.
pub(crate) fn without_setting(text: &str, key: &str) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut block = Block::of(&lines, lines.iter().position(|line| line.trim_end() == "config:")?);
    for part in key.split('.') {
        block = block.child(&lines, part)?;
    }
    let is_only = lines.iter().enumerate().all(|(n, line)| {
        n == block.parent || !block.is_sibling(n, line) || (block.start..block.end).contains(&n)
    });
    let kept = lines.iter().enumerate().filter(|(n, _)| !(block.start..block.end).contains(n));
    let written = kept.map(|(n, line)| match is_only && n == block.parent {
        // A key without a value would be a null.
        true => format!("{} {{}}\n", line.trim_end()),
        false => (*line).to_owned(),
    });
    Some(written.collect())
}

/// A key with its value, as lines.
struct Block {
    /// The line of the key.
    start: usize,
    /// After its last line.
    end: usize,
    indent: usize,
    /// The line of the key that it belongs to, and the end of that.
    parent: usize,
    parent_end: usize,
}

impl Block {
    fn of(lines: &[&str], start: usize) -> Self {
        let indent = indent_of(lines[start]);
        // A list may begin in the column of its key.
        let belongs = |line: &&str| {
            let is_item = line.trim_start().starts_with("- ") && indent_of(line) == indent;
            line.trim().is_empty() || indent_of(line) > indent || is_item
        };
        let length = lines[start + 1..].iter().take_while(|line| belongs(line)).count();
        let mut end = start + 1 + length;
        // Blank lines and comments before the next key belong to that.
        while end > start + 1 && lines[end - 1].trim().is_empty() {
            end -= 1;
        }
        Self { start, end, indent, parent: start, parent_end: end }
    }

    fn child(&self, lines: &[&str], key: &str) -> Option<Self> {
        let inner = || (self.start + 1..self.end).filter(|n| is_key(lines[*n]));
        let indent = inner().map(|n| indent_of(lines[n])).next()?;
        let named = |n: &usize| {
            let line = lines[*n].trim_start();
            let rest = line.strip_prefix(key).or_else(|| line.strip_prefix(&format!("\"{key}\"")));
            indent_of(lines[*n]) == indent && rest.is_some_and(|rest| rest.starts_with(':'))
        };
        let found = Self::of(lines, inner().find(named)?);
        Some(Self { parent: self.start, parent_end: self.end, ..found })
    }

    /// True if this line is another key beside it.
    fn is_sibling(&self, n: usize, line: &str) -> bool {
        (self.parent + 1..self.parent_end).contains(&n) && is_key(line) && indent_of(line) == self.indent
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// True if the line has something besides a comment.
fn is_key(line: &str) -> bool {
    let text = line.trim();
    !text.is_empty() && !text.starts_with('#')
}

pub(crate) fn first_part(key: &str) -> &str {
    key.split('.').next().unwrap_or(key)
}

pub(crate) fn in_one_line(value: &Value) -> String {
    let text = yaml::document(&Fields::from_iter([("value".to_owned(), value.clone())]));
    let text = text.trim_end();
    match text.strip_prefix("value:").unwrap_or(text).trim() {
        "null" | "[]" | "{}" => "none".to_owned(),
        value => clean(&value.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

/// The settings that differ, each as `KEY: OLD → NEW`.
pub(crate) fn changes(old: &Fields, new: &Fields) -> Vec<String> {
    let keys = new.keys().chain(old.keys().filter(|key| !new.contains_key(*key)));
    let differs = |key: &&String| old.get(*key) != new.get(*key);
    let shown = |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), in_one_line);
    keys.filter(differs)
        .map(|key| format!("{key}: {} → {}", shown(old.get(key)), shown(new.get(key))))
        .collect()
}

pub(crate) fn in_lines(changes: &[String]) -> String {
    changes.iter().map(|line| format!("\n  {line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "goal: {}\nconfig:\n  # my own\n  lease_duration: 600 # long\n  copy:\n  - .env\n  - b\n  roles:\n    \
                        coder:\n      count: 4\n\ntasks: []\n";

    fn without(key: &str) -> String {
        without_setting(TEXT, key).unwrap()
    }

    #[test]
    fn only_the_lines_of_the_setting_go() {
        assert_eq!(without("lease_duration"), TEXT.replace("  lease_duration: 600 # long\n", ""));
        assert_eq!(without("copy"), TEXT.replace("  copy:\n  - .env\n  - b\n", ""));
        assert_eq!(without("roles"), TEXT.replace("  roles:\n    coder:\n      count: 4\n", ""));
        assert_eq!(
            without("roles.coder"),
            TEXT.replace("  roles:\n    coder:\n      count: 4\n", "  roles: {}\n")
        );
        assert_eq!(without("roles.coder.count"), TEXT.replace("coder:\n      count: 4\n", "coder: {}\n"));
        assert_eq!(without_setting("config:\n  a: 1\n", "a").unwrap(), "config: {}\n");
    }

    #[test]
    fn what_is_not_there_is_not_removed() {
        for (text, key) in
            [(TEXT, "lease"), (TEXT, "goal"), (TEXT, "roles.coder.x"), ("config: {a: 1}\n", "a")]
        {
            assert_eq!(without_setting(text, key), None, "{key}");
        }
    }
}

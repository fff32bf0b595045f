//! Unknown keys of the file that look like a known one: probably misspelled, so that the setting has no
//! effect. A person may add keys of their own, so this is a warning and never an error.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor, value};
use serde::forward_to_deserialize_any;

use crate::model::{Config, Fields, Role, TOP_KEYS, TaskRecord, Value};

const ROLE_KEYS: [&str; 5] = ["provider", "model", "effort", "count", "network"];

const GATE_KEYS: [&str; 2] = ["runs", "watched"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MisspelledKey {
    /// The place of the key; empty at the top of the file.
    pub parent: String,
    pub key: String,
    pub meant: String,
}

impl fmt::Display for MisspelledKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parent, key, meant } = self;
        let place = if parent.is_empty() { key.clone() } else { format!("{parent}.{key}") };
        write!(f, "{place} has no effect: the key is unknown; did you mean {meant}?")
    }
}

/// The keys of the document, of `config`, of the roles and of the tasks that are probably misspelled.
pub fn misspelled_keys(document: &Value) -> Vec<MisspelledKey> {
    let Some(top) = map(Some(document)) else { return Vec::new() };
    let mut found = Vec::new();
    check("", top, &TOP_KEYS, &mut found);
    if let Some(config) = map(top.get("config")) {
        check("config", config, known_keys::<Config>(), &mut found);
        check_roles(config, &mut found);
    }
    if let Some(Value::List(tasks)) = top.get("tasks") {
        for (n, task) in tasks.iter().enumerate() {
            let Some(task) = map(Some(task)) else { continue };
            let id = task.get("id").and_then(Value::as_text);
            let parent = id.map_or_else(|| format!("tasks[{n}]"), str::to_owned);
            check(&parent, task, TaskRecord::KEYS, &mut found);
        }
    }
    found
}

/// The keys of `config` that no version knows.
pub fn unknown_settings(config: &Fields) -> Vec<String> {
    let known = known_keys::<Config>();
    config.keys().filter(|key| !known.contains(&key.as_str())).cloned().collect()
}

/// The error in the name of a part of `roles`: an unknown role or part; `None` for other settings.
pub fn unknown_role_part(setting: &str) -> Option<String> {
    let mut parts = setting.strip_prefix("roles.")?.split('.');
    let role = parts.next()?;
    if !role_names().iter().any(|known| known == role) {
        return Some(format!(
            "{role} is not a role; roles: {}",
            Role::ALL.map(|role| role.to_string()).join(", ")
        ));
    }
    let part = parts.next()?;
    let is_known = ROLE_KEYS.contains(&part) && parts.next().is_none();
    (!is_known).then(|| format!("{setting} is not a setting; a role has {}", ROLE_KEYS.join(", ")))
}

/// The error in the name of a part of `gate`; `None` for any other setting.
pub fn unknown_gate_part(setting: &str) -> Option<String> {
    let part = setting.strip_prefix("gate.")?;
    let is_known = GATE_KEYS.contains(&part);
    (!is_known).then(|| format!("{setting} is not a setting; gate has {}", GATE_KEYS.join(", ")))
}

/// The first unknown name in a whole section `gate`, as an error.
pub fn unknown_part_of_gate(settings: &Fields) -> Option<String> {
    let keys = map(settings.get("gate")).into_iter().flat_map(Fields::keys);
    keys.into_iter().find_map(|key| unknown_gate_part(&format!("gate.{key}")))
}

/// The first unknown name in a whole section `roles`, as an error.
pub fn unknown_part_of_roles(roles: &Fields) -> Option<String> {
    let parts = |role: &str, entry: &Value| {
        let keys = map(Some(entry)).into_iter().flat_map(Fields::keys);
        let parts: Vec<String> = keys.map(|key| format!("roles.{role}.{key}")).collect();
        std::iter::once(format!("roles.{role}")).chain(parts).find_map(|part| unknown_role_part(&part))
    };
    roles.iter().find_map(|(role, entry)| parts(role, entry))
}

fn role_names() -> Vec<String> {
    Role::ALL.into_iter().flat_map(|role| [role.to_string(), role.id_prefix().to_owned()]).collect()
}

fn check_roles(config: &Fields, found: &mut Vec<MisspelledKey>) {
    let Some(roles) = map(config.get("roles")) else { return };
    let names = role_names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    check("config.roles", roles, &names, found);
    for (role, entry) in roles {
        if let Some(entry) = map(Some(entry)) {
            check(&format!("config.roles.{role}"), entry, &ROLE_KEYS, found);
        }
    }
}

fn map(value: Option<&Value>) -> Option<&Fields> {
    value?.as_map()
}

pub fn meant_setting(key: &str) -> Option<&'static str> {
    meant(key, known_keys::<Config>().iter().copied())
}

/// The known name that was probably meant by a misspelled one.
pub fn meant<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    known.into_iter().filter(|known| is_similar(name, known)).min_by_key(|known| distance(name, known))
}

fn check(parent: &str, fields: &Fields, known: &[&str], found: &mut Vec<MisspelledKey>) {
    for key in fields.keys().filter(|key| !known.contains(&key.as_str())) {
        if let Some(meant) = meant(key, known.iter().copied()) {
            found.push(MisspelledKey {
                parent: parent.to_owned(),
                key: key.clone(),
                meant: meant.to_owned(),
            });
        }
    }
}

/// True if a key differs from a known one only in its spelling: one typo in a short word, two in a long one.
fn is_similar(key: &str, known: &str) -> bool {
    let allowed = if known.len() < 8 { 1 } else { 2 };
    distance(key, known) <= allowed
}

/// The number of typos between two keys: a letter too many, missing, wrong, or two swapped. Case and
/// separators are ignored.
pub fn distance(one: &str, other: &str) -> usize {
    let letters = |text: &str| -> Vec<char> {
        text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).take(64).collect()
    };
    let (one, other) = (letters(one), letters(other));
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let changed = last[j] + usize::from(a != b);
            let mut best = changed.min(last[j + 1] + 1).min(row[j] + 1);
            let swapped = i > 0 && j > 0 && one[i - 1] == *b && other[j - 1] == *a;
            if swapped {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}

/// The keys that a type reads, as its own `Deserialize` names them.
fn known_keys<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut keys: &'static [&'static str] = &[];
    // Fails by design, once the keys are known.
    let _ = T::deserialize(KeyReader(&mut keys));
    keys
}

struct KeyReader<'k>(&'k mut &'static [&'static str]);

impl<'de> Deserializer<'de> for KeyReader<'_> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("only names keys"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(json: &str) -> Vec<String> {
        let document: Value = serde_json::from_str(json).unwrap();
        misspelled_keys(&document).iter().map(ToString::to_string).collect()
    }

    /// Covers: AC-11
    #[test]
    fn a_key_that_looks_like_a_known_one_is_a_warning() {
        let cases = [
            (
                r#"{"config": {"max_revew_cycles": 3}}"#,
                "config.max_revew_cycles has no effect: the key is unknown; did you mean max_review_cycles?",
            ),
            (
                r#"{"config": {"roles": {"coder": {"cuont": 3}}}}"#,
                "config.roles.coder.cuont has no effect: the key is unknown; did you mean count?",
            ),
            (
                r#"{"config": {"roles": {"codder": {"count": 3}}}}"#,
                "config.roles.codder has no effect: the key is unknown; did you mean coder?",
            ),
            (
                r#"{"config": {"leaseDuration": 3}}"#,
                "config.leaseDuration has no effect: the key is unknown; did you mean lease_duration?",
            ),
            (
                r#"{"tasks": [{"id": "t1", "dependson": ["t2"]}]}"#,
                "t1.dependson has no effect: the key is unknown; did you mean depends_on?",
            ),
            (r#"{"agnets": {}}"#, "agnets has no effect: the key is unknown; did you mean agents?"),
        ];
        for (document, expected) in cases {
            assert_eq!(warnings(document), [expected], "{document}");
        }
    }

    /// Covers: AC-11
    #[test]
    fn known_keys_and_keys_of_ones_own_are_fine() {
        let document = r#"{
            "version": 1, "team_notes": [], "x": 1,
            "config": {"lease_duration": 300, "roles": {"code-reviewer": {"count": 1}}, "budget": 3},
            "tasks": [{"id": "t1", "estimate": 3, "jira": "X-1", "done_when": "y"}]
        }"#;
        assert_eq!(warnings(document), Vec::<String>::new());
        assert_eq!(warnings("[]"), Vec::<String>::new());
    }

    /// Covers: UI-11
    #[test]
    fn a_part_of_a_role_has_a_known_name() {
        for known in
            ["lease_duration", "roles", "roles.coder", "roles.coder.count", "roles.code_reviewer.model"]
        {
            assert_eq!(unknown_role_part(known), None);
        }
        let said = |key: &str| unknown_role_part(key).unwrap();
        assert_eq!(said("roles.codr.count"), "codr is not a role; roles: planner, coder, code_reviewer");
        let parts = "is not a setting; a role has provider, model, effort, count, network";
        assert_eq!(said("roles.coder.cont"), format!("roles.coder.cont {parts}"));
        assert_eq!(said("roles.coder.count.x"), format!("roles.coder.count.x {parts}"));
    }
}

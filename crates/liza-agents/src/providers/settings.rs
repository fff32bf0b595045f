//! Settings of an agent program, as a map on the blackboard or in the table of the built-in programs has them. A type
//! says how its values are written; `settings!` makes a struct whose fields are the keys of such a map.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use liza_core::model::{FaultKind, Value};
use liza_core::rules::misspelled::meant;
use strum::VariantNames;

use super::event::EventFormat;

pub(super) trait Setting {
    /// Takes over a value: it replaces the present one; a map or a set adds to it.
    fn accept(&mut self, value: &Value) -> Result<(), WrongSetting>;
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct WrongSetting {
    /// The keys around the problem, the outermost first.
    pub place: Vec<String>,
    pub problem: String,
    /// The key is not part of the problem yet.
    is_unnamed: bool,
}

impl WrongSetting {
    pub(super) fn must_be(what: &str) -> Self {
        Self { place: Vec::new(), problem: format!("must be {what}"), is_unnamed: true }
    }

    pub(super) fn unknown(key: &str, known: &[&str]) -> Self {
        let meant = meant(key, known.iter().copied());
        let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        let problem = format!("unknown key {key}{meant}; known keys: {}", known.join(", "));
        Self { place: Vec::new(), problem, is_unnamed: false }
    }

    pub(super) fn at(mut self, key: &str) -> Self {
        if std::mem::take(&mut self.is_unnamed) {
            self.problem = format!("{key} {}", self.problem);
        } else {
            self.place.insert(0, key.to_owned());
        }
        self
    }
}

/// Makes a struct whose fields are the keys of a map.
macro_rules! settings {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$doc])* pub $field: $kind,)* }

        impl $name {
            pub(super) const KEYS: &[&str] = &[$(stringify!($field)),*];
        }

        impl $crate::providers::settings::Setting for $name {
            fn accept(&mut self, value: &Value) -> Result<(), WrongSetting> {
                let Value::Map(fields) = value else {
                    return Err(WrongSetting::must_be(&format!("a map with {} and so on", Self::KEYS[0])));
                };
                for (key, value) in fields.iter().filter(|(_, value)| **value != Value::Null) {
                    let taken = match key.as_str() {
                        $(stringify!($field) => self.$field.accept(value),)*
                        _ => return Err(WrongSetting::unknown(key, Self::KEYS)),
                    };
                    taken.map_err(|wrong| wrong.at(key))?;
                }
                Ok(())
            }
        }
    };
}
pub(super) use settings;

impl Setting for String {
    fn accept(&mut self, value: &Value) -> Result<(), WrongSetting> {
        *self = text(value).ok_or_else(|| WrongSetting::must_be("a text"))?;
        Ok(())
    }
}

impl<T: Setting + Default> Setting for Option<T> {
    fn accept(&mut self, value: &Value) -> Result<(), WrongSetting> {
        self.get_or_insert_default().accept(value)
    }
}

impl Setting for bool {
    fn accept(&mut self, value: &Value) -> Result<(), WrongSetting> {
        let Value::Bool(value) = value else { return Err(WrongSetting::must_be("true or false")) };
        *self = *value;
        Ok(())
    }
}

/// A list of words; a text is split at its spaces.
impl Setting for Vec<String> {
    fn accept(&mut self, value: &Value) -> Result<(), WrongSetting> {
        *self = words(value)?;
        Ok(())
    }
}

impl Setting for BTreeSet<String> {
    fn accept(&mut self, value: &Value) -> Result<(), WrongSetting> {
        self.extend(words(value)?);
        Ok(())
    }
}

/// Exit codes.
impl Setting for Vec<i32> {
    fn accept(&mut self, value: &Value) -> Result<(), WrongSetting> {
        let number =
            |value: &Value| if let Value::Int(number) = value { i32::try_from(*number).ok() } else { None };
        let numbers = if let Value::List(items) = value { items.iter().map(number).collect() } else { None };
        *self = numbers.ok_or_else(|| WrongSetting::must_be("a list of numbers"))?;
        Ok(())
    }
}

impl<K: Key, T: Setting + Default> Setting for BTreeMap<K, T> {
    fn accept(&mut self, value: &Value) -> Result<(), WrongSetting> {
        let Value::Map(fields) = value else { return Err(WrongSetting::must_be("a map of names to values")) };
        for (name, value) in fields {
            let entry = self.entry(K::read(name)?).or_default();
            entry.accept(value).map_err(|wrong| wrong.at(name))?;
        }
        Ok(())
    }
}

/// The name of a value in a map.
pub(super) trait Key: Ord {
    fn read(name: &str) -> Result<Self, WrongSetting>
    where
        Self: Sized;
}

impl Key for String {
    fn read(name: &str) -> Result<Self, WrongSetting> {
        Ok(name.to_owned())
    }
}

/// The kinds of errors that an entry can name signs of, the one that decides first.
const KINDS: [(&str, FaultKind); 5] = [
    ("refused", FaultKind::Refused),
    ("context_full", FaultKind::ContextFull),
    ("quota", FaultKind::Quota),
    ("auth", FaultKind::Auth),
    ("overloaded", FaultKind::Overloaded),
];

impl Key for FaultKind {
    fn read(name: &str) -> Result<Self, WrongSetting> {
        let known = KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        known.ok_or_else(|| WrongSetting::unknown(name, &KINDS.map(|(name, _)| name)))
    }
}

impl Setting for EventFormat {
    fn accept(&mut self, value: &Value) -> Result<(), WrongSetting> {
        *self = one_of(value)?;
        Ok(())
    }
}

pub(super) fn one_of<T: FromStr + VariantNames>(value: &Value) -> Result<T, WrongSetting> {
    let known = text(value).and_then(|text| text.parse().ok());
    known.ok_or_else(|| WrongSetting::must_be(&T::VARIANTS.join(" or ")))
}

fn text(value: &Value) -> Option<String> {
    (!matches!(value, Value::List(_) | Value::Map(_))).then(|| value.to_string())
}

pub(super) fn words(value: &Value) -> Result<Vec<String>, WrongSetting> {
    let split = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    let words = match value {
        Value::List(items) => items.iter().map(text).collect(),
        other @ Value::Null
        | other @ Value::Bool(_)
        | other @ Value::Int(_)
        | other @ Value::Float(_)
        | other @ Value::Text(_)
        | other @ Value::Time(_)
        | other @ Value::Map(_) => other.as_text().map(split),
    };
    words.ok_or_else(|| WrongSetting::must_be("a list of words"))
}

//! A plain value as YAML and JSON know it, for data without a fixed shape, such as anomaly details.
//!
//! Maps keep their order, so that a file is written back as it was read.

use std::fmt;

use indexmap::IndexMap;
use liza_ids::Timestamp;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

/// A map of values in the order of the file.
pub type Fields = IndexMap<String, Value>;

/// Any value that a YAML document can hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`, `~` or nothing.
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// A point in time; read back as text, since only the field's schema distinguishes the two.
    Time(Timestamp),
    List(Vec<Value>),
    Map(Fields),
}

impl Value {
    /// Its description in an error, in the words of YAML.
    pub fn describe(&self) -> String {
        match self {
            Value::Null => "empty".to_owned(),
            Value::Text(text) => format!("{text:?}"),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Time(_) => self.to_string(),
        }
    }

    pub fn as_map(&self) -> Option<&Fields> {
        if let Value::Map(fields) = self { Some(fields) } else { None }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Time(_)
            | Value::List(_)
            | Value::Map(_) => None,
        }
    }

    /// True for null or blank text.
    pub fn is_blank(&self) -> bool {
        match self {
            Value::Null => true,
            Value::Text(text) => text.trim().is_empty(),
            Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Time(_)
            | Value::List(_)
            | Value::Map(_) => false,
        }
    }
}

impl fmt::Display for Value {
    /// On one line, for people and for comparing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => value.fmt(f),
            Value::Int(value) => value.fmt(f),
            Value::Float(value) => value.fmt(f),
            Value::Text(value) => f.write_str(value),
            Value::Time(value) => value.fmt(f),
            Value::List(items) => {
                for (n, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if n > 0 { ", " } else { "" })?;
                }
                Ok(())
            }
            Value::Map(fields) => {
                for (n, (key, value)) in fields.iter().enumerate() {
                    write!(f, "{}{key}: {value}", if n > 0 { ", " } else { "" })?;
                }
                Ok(())
            }
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Value::Int(i64::from(value))
    }
}

impl From<Timestamp> for Value {
    fn from(time: Timestamp) -> Self {
        Value::Time(time)
    }
}

impl From<Vec<String>> for Value {
    fn from(items: Vec<String>) -> Self {
        Value::List(items.into_iter().map(Value::Text).collect())
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::Text(value) => serializer.serialize_str(value),
            Value::Time(value) => value.serialize(serializer),
            Value::List(items) => items.serialize(serializer),
            Value::Map(fields) => fields.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        // A number beyond i64 keeps its digits as text rather than losing some of them.
        Ok(i64::try_from(value).map_or_else(|_| Value::Text(value.to_string()), Value::Int))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Fields::new();
        while let Some((key, value)) = map.next_entry()? {
            fields.insert(key, value);
        }
        Ok(Value::Map(fields))
    }
}

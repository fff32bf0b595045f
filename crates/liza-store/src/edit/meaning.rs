//! The meaning of a value, whatever its form.

use liza_core::model::{Timestamp, Value};

/// Removes the form of a time, and keys without a value.
pub(crate) fn meaning(value: &Value) -> Value {
    match value {
        Value::Text(text) => match text.parse::<Timestamp>() {
            Ok(time) => Value::Time(time),
            Err(_) => value.clone(),
        },
        Value::List(items) => Value::List(items.iter().map(meaning).collect()),
        Value::Map(fields) => {
            let has_value = |(_, value): &(&String, &Value)| **value != Value::Null;
            let entries = fields.iter().filter(has_value);
            Value::Map(entries.map(|(key, value)| (key.clone(), meaning(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Time(_) => value.clone(),
    }
}

//! Reads values out of one line of JSON without failing: an absent value, or one of another type, is none.

use serde::Deserialize;
use serde_json::Value;

/// The longest text of an event that is kept, in characters.
const TEXT_MAX: usize = 2_000;

#[derive(Deserialize)]
struct TypeOnly {
    #[serde(rename = "type")]
    kind: String,
}

/// The `type` of an event; cheap, since the rest of the line is skipped.
pub(super) fn type_of(line: &str) -> Option<String> {
    if !line.starts_with('{') {
        return None;
    }
    serde_json::from_str::<TypeOnly>(line).ok().map(|event| event.kind)
}

pub(super) fn parse(line: &str) -> Option<Value> {
    serde_json::from_str(line).ok()
}

/// A text that is not blank, cut to a length that can be kept.
pub(super) fn text(event: &Value, pointer: &str) -> Option<String> {
    let text = event.pointer(pointer)?.as_str()?.trim();
    (!text.is_empty()).then(|| cut(text))
}

/// A number of tokens or the like; 0 if it is absent.
pub(super) fn number(event: &Value, pointer: &str) -> u64 {
    event.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

pub(super) fn amount(event: &Value, pointer: &str) -> f64 {
    event.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0)
}

/// A list; empty if it is absent.
pub(super) fn items<'v>(event: &'v Value, pointer: &str) -> &'v [Value] {
    event.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The target of a tool: the first text under the names that programs give to it.
pub(super) fn tool_detail(input: Option<&Value>) -> String {
    let names = [
        "command",
        "cmd",
        "file_path",
        "filePath",
        "path",
        "absolute_path",
        "pattern",
        "query",
        "url",
        "description",
        "prompt",
    ];
    let Some(input) = input else { return String::new() };
    let found = names.iter().find_map(|name| match input.get(*name)? {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    });
    found.map(|text| cut(text.trim())).unwrap_or_default()
}

pub(super) fn cut(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}

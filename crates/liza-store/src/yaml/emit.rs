//! Writes a value as YAML: block style for parts that people edit, one line for those that they skim. Must
//! quote every text that any reader could take as something else.

use std::fmt::Write as _;

use liza_core::model::{Fields, Value};

use super::scalar::{is_flow_safe, is_plain_safe, is_printable};

/// The indentation of a nested block.
const STEP: usize = 2;
/// The longest list that stays on one line.
const SHORT_LINE: usize = 100;
/// The longest key that YAML finds by its colon alone, in bytes.
const PLAIN_KEY_MAX: usize = 1_000;
/// Small mappings that are written on one line.
const ONE_LINE_KEYS: [&str; 2] = ["reservation", "usage"];

pub(super) fn inline(value: &Value) -> String {
    let mut out = String::new();
    flow(&mut out, value);
    out
}

/// The text after `key:` for a key at column `indent`, without a final line break.
pub(crate) fn after_key(key: &str, value: &Value, indent: usize) -> String {
    let mut out = String::new();
    write_after_key(&mut out, key, value, indent);
    out
}

/// A list entry whose dash is at column `indent`: from the dash on, without a final line break.
pub fn item(value: &Value, indent: usize) -> String {
    let mut out = String::new();
    write_item(&mut out, value, indent);
    out
}

/// The whole file, with a blank line before each nested section.
pub fn document(sections: &Fields) -> String {
    let mut out = String::new();
    for (key, value) in sections {
        let nested = matches!(value, Value::List(items) if !items.is_empty())
            || matches!(value, Value::Map(fields) if !fields.is_empty());
        if nested && !out.is_empty() {
            out.push('\n');
        }
        write_entry(&mut out, key, value, 0);
        out.push('\n');
    }
    out
}

/// A key without its colon, quoted if necessary.
pub(crate) fn key(key: &str) -> String {
    if is_flow_safe(key) && key.len() < 100 { key.to_owned() } else { quoted(key) }
}

fn write_after_key(out: &mut String, name: &str, value: &Value, indent: usize) {
    if let Value::List(items) = value
        && !items.is_empty()
        && !is_short(items)
    {
        for one in items {
            new_line(out, indent + STEP);
            write_item(out, one, indent + STEP);
        }
    } else if let Value::Map(fields) = value
        && !fields.is_empty()
        && !ONE_LINE_KEYS.contains(&name)
    {
        for (name, value) in fields {
            new_line(out, indent + STEP);
            write_entry(out, name, value, indent + STEP);
        }
    } else {
        out.push(' ');
        write_inline(out, value, indent);
    }
}

/// A text of several lines after `|`, everything else on the same line.
fn write_inline(out: &mut String, value: &Value, indent: usize) {
    match value.as_text().filter(|text| is_literal(text)) {
        Some(text) => literal(out, text, indent + STEP),
        None => match value {
            Value::Text(text) if is_plain_safe(text) => out.push_str(text),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Time(_)
            | Value::List(_)
            | Value::Map(_) => flow(out, value),
        },
    }
}

fn write_entry(out: &mut String, name: &str, value: &Value, indent: usize) {
    if write_key(out, name) {
        new_line(out, indent);
    }
    out.push(':');
    write_after_key(out, name, value, indent);
}

/// Writes a key without its colon; true if it is so long that readers need a question mark before it.
fn write_key(out: &mut String, name: &str) -> bool {
    let key = key(name);
    let is_long = key.len() > PLAIN_KEY_MAX;
    out.push_str(if is_long { "? " } else { "" });
    out.push_str(&key);
    is_long
}

fn write_item(out: &mut String, value: &Value, indent: usize) {
    out.push_str("- ");
    if let Value::Map(fields) = value
        && !fields.is_empty()
        && !is_event(fields)
    {
        for (n, (name, value)) in fields.iter().enumerate() {
            if n > 0 {
                new_line(out, indent + STEP);
            }
            write_entry(out, name, value, indent + STEP);
        }
    } else {
        write_inline(out, value, indent);
    }
}

/// True for lists written as `[a, b]`: empty, or a few single words.
fn is_short(items: &[Value]) -> bool {
    let word = |value: &Value| match value {
        Value::Text(text) => !text.contains([' ', '\n']),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Time(_) => true,
        Value::List(_) | Value::Map(_) => false,
    };
    items.iter().all(word) && items.iter().map(|value| inline(value).len() + 2).sum::<usize>() <= SHORT_LINE
}

/// True for a history event, which is written on one line so that people can skim it.
fn is_event(fields: &Fields) -> bool {
    fields.contains_key("time") && fields.contains_key("event")
}

fn new_line(out: &mut String, indent: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
}

/// A value in the form that is valid between brackets or braces.
fn flow(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => drop(write!(out, "{value}")),
        Value::Float(value) => float(out, *value),
        Value::Text(text) if is_flow_safe(text) => out.push_str(text),
        Value::Text(text) => out.push_str(&quoted(text)),
        Value::Time(time) => drop(write!(out, "{time}")),
        Value::List(items) => {
            out.push('[');
            for (n, one) in items.iter().enumerate() {
                out.push_str(if n > 0 { ", " } else { "" });
                flow(out, one);
            }
            out.push(']');
        }
        Value::Map(fields) if fields.is_empty() => out.push_str("{}"),
        Value::Map(fields) => {
            for (n, (name, value)) in fields.iter().enumerate() {
                out.push_str(if n > 0 { ", " } else { "{ " });
                let is_long = write_key(out, name);
                out.push_str(if is_long { " : " } else { ": " });
                flow(out, value);
            }
            out.push_str(" }");
        }
    }
}

fn float(out: &mut String, value: f64) {
    if value.is_nan() {
        out.push_str(".nan");
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { ".inf" } else { "-.inf" });
    } else {
        let digits = value.to_string();
        out.push_str(&digits);
        if !digits.contains('.') {
            out.push_str(".0");
        }
    }
}

/// True if a text has several lines and can be written after `|`.
fn is_literal(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\n'])
        && body.lines().all(|line| !line.ends_with(' '))
        && body.chars().all(|c| c == '\n' || is_printable(c))
}

fn literal(out: &mut String, text: &str, indent: usize) {
    out.push_str(if text.ends_with('\n') { "|" } else { "|-" });
    for line in text.lines() {
        if line.is_empty() {
            out.push('\n');
        } else {
            new_line(out, indent);
            out.push_str(line);
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_printable(c) => out.push(c),
            c if u32::from(c) <= 0xff => drop(write!(out, "\\x{:02X}", u32::from(c))),
            c if u32::from(c) <= 0xffff => drop(write!(out, "\\u{:04X}", u32::from(c))),
            c => drop(write!(out, "\\U{:08X}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

//! Parts of a board as text, without a tree of values: the exploration writes millions of them.

use serde::Serialize;

/// A value as JSON.
pub(crate) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

/// The object without these keys.
pub(crate) fn without(object: &str, noise: &[&str]) -> String {
    let mut kept = String::with_capacity(object.len());
    for entry in entries(object) {
        let key = entry.trim_start_matches('"').split('"').next().unwrap_or_default();
        if !noise.contains(&key) {
            kept.push_str(entry);
            kept.push(',');
        }
    }
    kept
}

/// The entries of an object, each with its key.
fn entries(object: &str) -> Vec<&str> {
    let inner = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
    let (mut all, mut first, mut depth) = (Vec::new(), 0, 0_usize);
    let (mut in_text, mut is_escaped) = (false, false);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => {
                all.push(&inner[first..at]);
                first = at + 1;
            }
            _ => {}
        }
    }
    all.push(&inner[first..]);
    all
}

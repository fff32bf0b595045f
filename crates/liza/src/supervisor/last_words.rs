//! The last lines that a session printed: what its supervisor quotes when it ended without a result.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use liza_core::text::one_line;

use crate::activity::OWN_LINE;

/// How much of the end of the output is read.
const TAIL: u64 = 64 << 10;
/// The number of lines that are quoted.
const LINES: usize = 5;
/// The maximum length of the quotation.
const LENGTH: usize = 400;

/// The last words of a session; `None` if it printed nothing.
pub(super) fn last_words(output: &Path) -> Option<String> {
    let mut file = File::open(output).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).ok()?;
    quote(&String::from_utf8_lossy(&tail))
}

/// The last lines, as many as fit: the end says most.
fn quote(tail: &str) -> Option<String> {
    let mut quoted = String::new();
    for line in tail.lines().rev().filter_map(words).take(LINES) {
        let line = one_line(&line, LENGTH);
        if quoted.chars().count() + line.chars().count() >= LENGTH && !quoted.is_empty() {
            break;
        }
        quoted = if quoted.is_empty() { line } else { format!("{line} {quoted}") };
    }
    (!quoted.is_empty()).then_some(quoted)
}

/// What a line says: the text of an event that an agent program prints as JSON, or the line itself.
fn words(line: &str) -> Option<String> {
    let line = line.trim();
    match serde_json::from_str::<serde_json::Value>(line) {
        Ok(event @ serde_json::Value::Object(_)) => text_of(&event),
        // What Liza itself wrote there is not what the session said.
        _ => Some(line.to_owned()).filter(|line| !line.is_empty() && !line.starts_with(OWN_LINE)),
    }
}

/// The first text under the keys that agent programs use for what the model or the error says.
fn text_of(event: &serde_json::Value) -> Option<String> {
    match event {
        serde_json::Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        serde_json::Value::Array(items) => items.iter().rev().find_map(text_of),
        serde_json::Value::Object(fields) => {
            ["result", "text", "message", "content", "error", "item", "part"]
                .iter()
                .find_map(|key| fields.get(*key).and_then(text_of))
        }
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: AC-01
    #[test]
    fn the_last_lines_are_quoted() {
        assert_eq!(quote(""), None);
        assert_eq!(quote("a\n\nWhich database?\n").as_deref(), Some("a Which database?"));
        let many: String = (1..9).map(|number| format!("{number}\n")).collect();
        assert_eq!(quote(&many).as_deref(), Some("4 5 6 7 8"));
    }

    /// Covers: AC-01
    #[test]
    fn the_end_is_quoted_and_nothing_of_liza() {
        let said = format!("[liza: confinement enforced]\n{}\nno such model\n", "warning ".repeat(60));
        let quoted = quote(&said).unwrap();
        assert!(quoted.ends_with("no such model") && !quoted.contains("[liza"), "{quoted}");
        assert_eq!(quote("[liza: confinement enforced]\n"), None);
    }

    /// Covers: AC-01
    #[test]
    fn events_are_quoted_by_their_text() {
        let events = "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"Which one?\"}]}}\n\
            {\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":3}}\n";
        assert_eq!(quote(events).as_deref(), Some("Which one?"));
        assert_eq!(quote("{\"type\":\"error\",\"message\":\"no key\"}").as_deref(), Some("no key"));
    }
}

//! The last lines of a session, quoted by its supervisor after a session without a result.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use liza_agents::providers::is_aside;
use liza_core::text::{HINT_START, one_line};

use crate::observe::activity::OWN_LINE;
use liza_host::durable::{self, Open};

/// The part of the output's end that is read.
const TAIL: u64 = 64 << 10;
const LINES: usize = 5;
const LENGTH: usize = 400;

/// `None` if it printed nothing.
pub(super) fn last_words(output: &Path) -> Option<String> {
    let mut file = durable::open(Open::Read, output).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).ok()?;
    quote(&String::from_utf8_lossy(&tail))
}

enum Line {
    /// The error that ended the session.
    Error(String),
    Words(String),
    /// A warning, a new try, or a line of a log, a banner or a stack trace: quoted only if there is nothing else.
    Aside(String),
}

/// The error that ended the session; else the last lines, as many as fit: the end says most.
fn quote(tail: &str) -> Option<String> {
    let lines: Vec<Line> = tail.lines().filter_map(read).collect();
    let is_aside = |line: &&Line| matches!(line, Line::Aside(_));
    if let Some(Line::Error(text)) = lines.iter().rev().find(|line| !is_aside(line)) {
        return Some(one_line(text, LENGTH));
    }
    let only_asides = lines.iter().all(|line| is_aside(&line));
    let quoted = lines.iter().rev().filter(|line| only_asides || !is_aside(line));
    join(quoted.map(|line| match line {
        Line::Error(text) | Line::Words(text) | Line::Aside(text) => text.as_str(),
    }))
}

/// The texts, the last one first, in their order.
fn join<'t>(texts: impl Iterator<Item = &'t str>) -> Option<String> {
    let mut quoted = String::new();
    for line in texts.take(LINES) {
        let line = one_line(line, LENGTH);
        if quoted.chars().count() + line.chars().count() >= LENGTH && !quoted.is_empty() {
            break;
        }
        quoted = if quoted.is_empty() { line } else { format!("{line} {quoted}") };
    }
    (!quoted.is_empty()).then_some(quoted)
}

/// The text of an event that an agent program prints as JSON, or the line itself.
fn read(line: &str) -> Option<Line> {
    let (whole, line) = (line, line.trim());
    match serde_json::from_str::<serde_json::Value>(line) {
        Ok(event @ serde_json::Value::Object(_)) => {
            let is = |place: &str, names: &[&str]| {
                event.pointer(place).and_then(|name| name.as_str()).is_some_and(|name| names.contains(&name))
            };
            let text = text_of(&event)?;
            Some(match () {
                // A lost connection that is tried again.
                () if text.starts_with("Reconnecting") => Line::Aside(text),
                () if is("/type", &["error", "turn.failed"]) => Line::Error(text),
                () if is("/item/type", &["error"]) => Line::Aside(text),
                () => Line::Words(text),
            })
        }
        // Liza's own lines are not the session's words.
        _ if line.is_empty() || line.starts_with(OWN_LINE) => None,
        // The advice after a refusal does not say what failed.
        _ if is_aside(whole) || whole.starts_with(HINT_START) => Some(Line::Aside(line.to_owned())),
        _ => Some(Line::Words(line.to_owned())),
    }
}

/// The first text under the keys that agent programs use for messages and errors.
fn text_of(event: &serde_json::Value) -> Option<String> {
    match event {
        serde_json::Value::String(text) => {
            // The answer of a provider is JSON again.
            let inner = serde_json::from_str(text).ok().filter(serde_json::Value::is_object);
            let inner = inner.as_ref().and_then(text_of);
            inner.or_else(|| Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
        }
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
        let refused = "liza: t1 is not yours\n  hint: to see it: liza show t1\n";
        assert_eq!(quote(refused).as_deref(), Some("liza: t1 is not yours"), "the advice is not the cause");
    }

    /// Covers: AC-01
    #[test]
    fn events_are_quoted_by_their_text() {
        let events = "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"Which one?\"}]}}\n\
            {\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":3}}\n";
        assert_eq!(quote(events).as_deref(), Some("Which one?"));
        assert_eq!(quote("{\"type\":\"error\",\"message\":\"no key\"}").as_deref(), Some("no key"));
    }

    /// Covers: AC-01
    #[test]
    fn an_error_is_quoted_once_and_without_warnings_and_the_programs_log() {
        let warning =
            r#"{"type":"item.completed","item":{"type":"error","message":"Model metadata not found"}}"#;
        let inner = r#"{\"error\": {\"message\": \"Invalid value\", \"code\": \"bad\"}}"#;
        let error = format!(r#"{{"type":"error","message":"{inner}"}}"#);
        let failed = format!(r#"{{"type":"turn.failed","error":{{"message":"{inner}"}}}}"#);
        assert_eq!(quote(&format!("{warning}\n{error}\n{failed}\n")).as_deref(), Some("Invalid value"));
        let log = "2026-11-16T19:49:47.453076Z ERROR codex_core::session: failed to record";
        let said = r#"{"type":"item.completed","item":{"type":"agent_message","text":"Done."}}"#;
        assert_eq!(quote(&format!("{warning}\n{said}\n{log}\n")).as_deref(), Some("Done."));
        assert_eq!(quote(log).as_deref(), Some(log), "if there is nothing else");
        // A lost connection that is tried again is neither.
        let again = r#"{"type":"error","message":"Reconnecting... 1/5 (stream disconnected)"}"#;
        assert_eq!(quote(&format!("{said}\n{again}\n")).as_deref(), Some("Done."));
        assert_eq!(quote(&format!("{again}\n{failed}\n{again}\n")).as_deref(), Some("Invalid value"));
    }
}

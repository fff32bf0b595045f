//! The last words of a session, quoted by its supervisor after a session without a result.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use liza_agents::providers::is_aside;
use liza_core::text::{HINT_START, one_line};

use crate::observe::activity::OWN_LINE;
use liza_host::durable::{self, Open};

/// The part of the output's end that is read.
const TAIL: u64 = 64 << 10;
/// The lines in which a question is looked for.
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

/// The error that ended the session; else its last question with what follows; else its last line.
fn quote(tail: &str) -> Option<String> {
    let lines: Vec<Line> = tail.lines().filter_map(read).collect();
    let is_aside = |line: &&Line| matches!(line, Line::Aside(_));
    if let Some(Line::Error(text)) = lines.iter().rev().find(|line| !is_aside(line)) {
        return Some(one_line(text, LENGTH));
    }
    let only_asides = lines.iter().all(|line| is_aside(&line));
    let quoted = lines.iter().rev().filter(|line| only_asides || !is_aside(line)).map(|line| match line {
        Line::Error(text) | Line::Words(text) | Line::Aside(text) => text.as_str(),
    });
    let mut last: Vec<&str> = quoted.take(LINES).collect();
    last.truncate(last.iter().position(|line| line.trim_end().ends_with('?')).unwrap_or(0) + 1);
    last.reverse();
    (!last.is_empty()).then(|| one_line(&last.join(" "), LENGTH))
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

    /// Covers: AC-01, AX-20
    #[test]
    fn the_last_line_is_quoted_or_the_last_question_with_what_follows() {
        assert_eq!(quote(""), None);
        let said = "Mode: Liza [Planner]\nPlanner ready. Reading blackboard.\nthe scene is over\n";
        assert_eq!(quote(said).as_deref(), Some("the scene is over"));
        assert_eq!(quote("I am ready.\n\nWhich database?\n").as_deref(), Some("Which database?"));
        let asked = "Why?\nI see.\nWhich database? \n- SQLite\n- PostgreSQL\n";
        assert_eq!(quote(asked).as_deref(), Some("Which database? - SQLite - PostgreSQL"));
        let long_ago = format!("Why?\n{}", "line\n".repeat(LINES));
        assert_eq!(quote(&long_ago).as_deref(), Some("line"));
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

//! Gemini CLI: its events (`-o stream-json`).

use liza_core::model::{FaultKind, Usage};
use serde_json::Value;

use super::event::{ClientEvent, EventReader, ToolEnd, UsageReport};
use super::fault::fault;
use super::json_line::{number, parse, text, tool_detail, type_of};
use super::tool_calls::OpenCalls;

#[derive(Default)]
pub(super) struct GeminiEvents {
    calls: OpenCalls,
}

impl EventReader for GeminiEvents {
    fn read(&mut self, line: &str) -> Option<Vec<ClientEvent>> {
        let kind = type_of(line)?;
        match kind.as_str() {
            "init" => {
                Some(vec![ClientEvent::Started(text(&parse(line)?, "/session_id").unwrap_or_default())])
            }
            "message" => Some(said(&parse(line)?)),
            "tool_use" => {
                let event = parse(line)?;
                let name = text(&event, "/tool_name").unwrap_or_default();
                self.calls.call(text(&event, "/tool_id"), &name, event.get("parameters"));
                Some(vec![ClientEvent::Tool(name, tool_detail(event.get("parameters")))])
            }
            // An error that ends the session is in the result.
            "error" => Some(text(&parse(line)?, "/message").map(ClientEvent::Note).into_iter().collect()),
            "result" => Some(result(&parse(line)?)),
            "tool_result" => {
                let event = parse(line)?;
                let (id, answer) = (text(&event, "/tool_id"), [event.get("output"), event.get("error")]);
                // Without an error a command may have failed.
                let failed = event.get("error").map(|_| true);
                Some(vec![self.calls.answer(id.as_deref(), ToolEnd::of(None, failed), &answer)])
            }
            _ => None,
        }
    }
}

/// The prompt comes back as a message of the user.
fn said(event: &Value) -> Vec<ClientEvent> {
    match text(event, "/role").as_deref() {
        Some("assistant" | "model") => text(event, "/content").map(ClientEvent::Text).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn result(event: &Value) -> Vec<ClientEvent> {
    let cached = number(event, "/stats/cached");
    let usage = Usage {
        input: number(event, "/stats/input_tokens").saturating_sub(cached),
        output: number(event, "/stats/output_tokens"),
        cached,
        ..Usage::default()
    };
    let mut events = vec![ClientEvent::Used(UsageReport { usage, is_total: true, context_percent: None })];
    if text(event, "/status").as_deref() == Some("error") {
        let message = text(event, "/error/message").unwrap_or_default();
        let status = event.pointer("/error/code").and_then(Value::as_u64);
        let by_type = fault(None, &text(event, "/error/type").unwrap_or_default()).kind;
        let mut found = fault(status, &message);
        if found.kind == FaultKind::Crashed {
            found.kind = by_type;
        }
        events.push(ClientEvent::Fault(found));
    }
    events.push(ClientEvent::Ended);
    events
}

#[cfg(test)]
mod tests {
    use liza_core::model::{LimitReset, Seconds};

    use super::*;
    use crate::providers::Dialect;
    use crate::providers::event::EventFormat;
    use crate::providers::stream::tests::{faults, outcome, read, used};

    const SESSION: &str = r#"{"type":"init","timestamp":"2026-11-01T10:00:00Z","session_id":"a-1","model":"gemini-2.5-pro"}
{"type":"message","role":"user","content":"the prompt"}
{"type":"message","role":"assistant","content":"I run it.","delta":true}
{"type":"tool_use","tool_name":"run_shell_command","tool_id":"1","parameters":{"command":"cargo test"}}
{"type":"tool_result","tool_id":"1","status":"success","output":"ok"}
{"type":"result","status":"success","stats":{"total_tokens":1500,"input_tokens":1200,"output_tokens":300,"cached":200}}"#;

    /// Covers: SE-01
    #[test]
    fn a_session_is_read() {
        let seen = read(EventFormat::Gemini, SESSION);
        let expected = [
            ClientEvent::Started("a-1".to_owned()),
            ClientEvent::Text("I run it.".to_owned()),
            ClientEvent::Tool("run_shell_command".to_owned(), "cargo test".to_owned()),
        ];
        assert_eq!(seen.get(..3), Some(expected.as_slice()), "{seen:?}");
        let usage = used(EventFormat::Gemini, SESSION).usage;
        assert_eq!((usage.input, usage.cached, usage.output), (1000, 200, 300));
    }

    /// Covers: SE-01
    #[test]
    fn failures_have_a_kind_by_their_record_or_the_exit_code() {
        let line = r#"{"type":"result","status":"error","error":{"type":"ApiError","message":"quota exceeded. Your quota will reset after 1h2m."},"stats":{}}"#;
        let found = faults(EventFormat::Gemini, line);
        assert_eq!((found[0].kind, found[0].reset), (FaultKind::Quota, Some(LimitReset::In(Seconds(3720)))));
        let typed = r#"{"type":"result","status":"error","error":{"type":"FatalAuthenticationError","message":"no"}}"#;
        assert_eq!(faults(EventFormat::Gemini, typed)[0].kind, FaultKind::Auth);
        let gemini = crate::providers::builtin::find("gemini").unwrap();
        let dialect = Dialect { format: EventFormat::Gemini, faults: gemini.faults.clone() };
        let plain = outcome(dialect, "Please set an Auth method in your settings.json\n", Some(41));
        let fault = plain.fault.unwrap();
        assert_eq!(fault.kind, FaultKind::Auth);
        assert_eq!(fault.message, "Please set an Auth method in your settings.json");
        assert_eq!(outcome(EventFormat::Gemini, SESSION, Some(0)).fault, None);
    }
}

//! opencode: its events (`run --format json`).

use liza_core::model::{FaultKind, Usage};
use serde_json::Value;

use super::event::{ClientEvent, EventReader, ToolEnd, UsageReport};
use super::fault::fault;
use super::json_line::{amount, number, parse, text, tool_detail, type_of};
use super::tool_calls::exchange;

#[derive(Default)]
pub(super) struct OpencodeEvents {
    started: bool,
}

impl EventReader for OpencodeEvents {
    fn read(&mut self, line: &str) -> Option<Vec<ClientEvent>> {
        let kind = type_of(line)?;
        let own = match kind.as_str() {
            "step_start" | "text" | "tool_use" | "step_finish" | "error" | "reasoning" => parse(line)?,
            _ => return None,
        };
        let mut events = Vec::new();
        if !self.started {
            self.started = true;
            events.push(ClientEvent::Started(text(&own, "/sessionID").unwrap_or_default()));
        }
        events.extend(event(&kind, &own));
        if kind == "tool_use" {
            let name = text(&own, "/part/tool").unwrap_or_default();
            let answer = ["/part/state/output", "/part/state/error"].map(|place| own.pointer(place));
            let failed = text(&own, "/part/state/status").map(|status| status == "error");
            let end = ToolEnd::of(own.pointer("/part/state/metadata/exit"), failed);
            events.push(exchange(&name, own.pointer("/part/state/input"), end, &answer));
        }
        Some(events)
    }
}

fn event(kind: &str, event: &Value) -> Option<ClientEvent> {
    match kind {
        "text" => text(event, "/part/text").map(ClientEvent::Text),
        "tool_use" => {
            let name = text(event, "/part/tool").unwrap_or_default();
            Some(ClientEvent::Tool(name, tool_detail(event.pointer("/part/state/input"))))
        }
        "step_finish" => Some(ClientEvent::Used(step(event))),
        "error" => Some(ClientEvent::Fault(error(event))),
        _ => None,
    }
}

fn step(event: &Value) -> UsageReport {
    let tokens = |name: &str| number(event, &format!("/part/tokens/{name}"));
    let usage = Usage {
        input: tokens("input").saturating_add(tokens("cache/write")),
        output: tokens("output").saturating_add(tokens("reasoning")),
        cached: tokens("cache/read"),
        cost_usd: amount(event, "/part/cost"),
        ..Usage::default()
    };
    UsageReport { usage, is_total: false, context_percent: None }
}

fn error(event: &Value) -> liza_core::model::ClientFault {
    let status = event.pointer("/error/data/statusCode").and_then(Value::as_u64);
    let name = text(event, "/error/name").unwrap_or_default();
    let message = text(event, "/error/data/message").unwrap_or_else(|| name.clone());
    let mut found = fault(status, &message);
    if found.kind == FaultKind::Crashed {
        found.kind = fault(None, &name).kind;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::event::EventFormat;
    use crate::providers::stream::tests::{faults, read, used};

    const SESSION: &str = r#"{"type":"step_start","timestamp":1,"sessionID":"ses_1","part":{"type":"step-start"}}
{"type":"tool_use","timestamp":2,"sessionID":"ses_1","part":{"tool":"bash","state":{"status":"completed","input":{"command":"git log"},"output":"x"}}}
{"type":"step_finish","timestamp":3,"sessionID":"ses_1","part":{"cost":0.01,"tokens":{"total":1150,"input":100,"output":30,"reasoning":20,"cache":{"read":900,"write":100}}}}
{"type":"text","timestamp":4,"sessionID":"ses_1","part":{"text":"Done."}}
{"type":"step_finish","timestamp":5,"sessionID":"ses_1","part":{"cost":0.02,"tokens":{"input":10,"output":5,"reasoning":0,"cache":{"read":0,"write":0}}}}"#;

    /// Covers: SE-01
    #[test]
    fn a_session_is_read() {
        let seen = read(EventFormat::Opencode, SESSION);
        let named: Vec<_> = seen.iter().filter(|event| !matches!(event, ClientEvent::Used(_))).collect();
        let expected = [
            &ClientEvent::Started("ses_1".to_owned()),
            &ClientEvent::Tool("bash".to_owned(), "git log".to_owned()),
            &ClientEvent::Text("Done.".to_owned()),
        ];
        assert_eq!(named, expected);
        let usage = used(EventFormat::Opencode, SESSION).usage;
        assert_eq!((usage.input, usage.output, usage.cached, usage.cost_usd), (210, 55, 900, 0.03));
    }

    /// Covers: SE-01
    #[test]
    fn failures_have_a_kind() {
        let kind = |error: &str| {
            let line = format!(r#"{{"type":"error","sessionID":"s","error":{error}}}"#);
            faults(EventFormat::Opencode, &line)[0].kind
        };
        assert_eq!(
            kind(r#"{"name":"APIError","data":{"message":"no","statusCode":429,"isRetryable":true}}"#),
            FaultKind::Quota
        );
        assert_eq!(kind(r#"{"name":"ProviderAuthError","data":{"message":"x"}}"#), FaultKind::Auth);
        assert_eq!(kind(r#"{"name":"UnknownError","data":{"message":"boom"}}"#), FaultKind::Crashed);
    }
}

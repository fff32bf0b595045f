//! Goose: its events (`--output-format stream-json`).

use liza_core::model::Usage;
use serde_json::Value;

use super::event::{ClientEvent, EventReader, ToolEnd, UsageReport};
use super::fault::fault;
use super::json_line::{amount, items, number, parse, text, tool_detail, type_of};
use super::request_logs::REQUEST;
use super::tool_calls::OpenCalls;

/// The beginnings of messages that report an error of the provider or the network.
const ERROR_TEXTS: [&str; 2] = ["Ran into this error:", "Network error:"];

/// Parts of the notifications that the conversation is compacted now.
const COMPACTS: [&str; 2] = ["Compacting to continue", "auto-compaction"];

/// The beginning of a notification after which it exits with 0 without having done anything.
const GIVES_UP: &str = "Unable to continue:";

#[derive(Default)]
pub(super) struct GooseEvents {
    calls: OpenCalls,
    /// The tokens of its requests, by the logs beside its output.
    requests: Usage,
}

impl EventReader for GooseEvents {
    fn read(&mut self, line: &str) -> Option<Vec<ClientEvent>> {
        let kind = type_of(line)?;
        match kind.as_str() {
            "message" => Some(self.message(&parse(line)?)),
            "error" => {
                let event = parse(line)?;
                let said = text(&event, "/error").or_else(|| text(&event, "/message")).unwrap_or_default();
                Some(vec![ClientEvent::Fault(fault(None, &said))])
            }
            "complete" => Some(complete(&parse(line)?)),
            REQUEST => Some(vec![self.request(&parse(line)?)]),
            "notification" | "model_change" => Some(Vec::new()),
            _ => None,
        }
    }
}

impl GooseEvents {
    fn message(&mut self, event: &Value) -> Vec<ClientEvent> {
        let own = text(event, "/message/role").is_none_or(|role| role == "assistant");
        let mut events = Vec::new();
        for one in items(event, "/message/content") {
            events.extend(part(one).filter(|_| own));
            events.extend(self.exchange(one));
        }
        events
    }

    /// Adds a request. The sum replaces what is known, so that an error before it remains one.
    fn request(&mut self, event: &Value) -> ClientEvent {
        let figure = |name: &str| number(event, name);
        let cached = figure("/cached");
        let input = figure("/input").saturating_sub(cached);
        self.requests.add(&Usage { input, output: figure("/output"), cached, ..Usage::default() });
        let usage = self.requests.clone();
        ClientEvent::Used(UsageReport { usage, is_total: true, context_percent: None })
    }

    /// A tool's answer, a call that waits for one, or the beginning of a compaction.
    fn exchange(&mut self, part: &Value) -> Option<ClientEvent> {
        match part.get("type")?.as_str()? {
            "toolRequest" => {
                let call = part.pointer("/toolCall/value")?;
                let name = text(call, "/name").unwrap_or_default();
                self.calls.call(text(part, "/id"), &name, call.get("arguments"));
                None
            }
            "toolResponse" => {
                let answer = ["/toolResult/value/content", "/toolResult/error"];
                let failed = part.pointer("/toolResult/value/isError").and_then(Value::as_bool);
                let failed = failed.or(part.pointer("/toolResult/error").map(|_| true));
                let end = ToolEnd::of(part.pointer("/toolResult/value/structuredContent/exit_code"), failed);
                let answer = answer.map(|place| part.pointer(place));
                Some(self.calls.answer(Some(&text(part, "/id")?), end, &answer))
            }
            "systemNotification" => {
                let said = text(part, "/msg")?;
                COMPACTS.iter().any(|words| said.contains(words)).then_some(ClientEvent::Compacted)
            }
            _ => None,
        }
    }
}

fn part(part: &Value) -> Option<ClientEvent> {
    match part.get("type")?.as_str()? {
        "text" => text(part, "/text").map(|said| {
            let is_error = ERROR_TEXTS.iter().any(|begin| said.starts_with(begin));
            let first = said.lines().next().unwrap_or_default();
            let error = first.strip_prefix(ERROR_TEXTS[0]).unwrap_or(first).trim();
            // Its only record of an error after which it exits with 0.
            if is_error { ClientEvent::Fault(fault(None, error)) } else { ClientEvent::Text(said) }
        }),
        "toolRequest" => {
            let call = part.pointer("/toolCall/value")?;
            let name = text(call, "/name").unwrap_or_default();
            Some(ClientEvent::Tool(name, tool_detail(call.get("arguments"))))
        }
        "systemNotification" => text(part, "/msg").map(|said| match said.strip_prefix(GIVES_UP) {
            Some(error) => ClientEvent::Fault(fault(None, error.trim())),
            None => ClientEvent::Note(said),
        }),
        "error" => {
            let said = [text(part, "/kind"), text(part, "/message")].into_iter().flatten();
            Some(ClientEvent::Fault(fault(None, &said.collect::<Vec<_>>().join(": "))))
        }
        _ => None,
    }
}

fn complete(event: &Value) -> Vec<ClientEvent> {
    let cached = number(event, "/cache_read_input_tokens");
    let (input, output) = (number(event, "/input_tokens"), number(event, "/output_tokens"));
    // An older version reports only the sum.
    let rest = number(event, "/total_tokens").saturating_sub(input.saturating_add(output));
    let input = if input == 0 { rest } else { input.saturating_sub(cached) };
    let usage = Usage { input, output, cached, cost_usd: amount(event, "/cost_usd"), ..Usage::default() };
    let report = UsageReport { usage, is_total: true, context_percent: None };
    vec![ClientEvent::Used(report), ClientEvent::Ended]
}

#[cfg(test)]
mod tests {
    use liza_core::model::FaultKind;

    use super::*;
    use crate::providers::event::EventFormat;
    use crate::providers::stream::tests::{exchanges, faults, outcome, read, used};

    const SESSION: &str = r#"starting session | provider: openai model: m
{"type":"message","message":{"id":"1","role":"assistant","content":[{"type":"text","text":"I look."},{"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"ls"}}}}]}}
{"type":"message","message":{"role":"user","content":[{"type":"toolResponse","id":"c1"}]}}
{"type":"complete","total_tokens":1500,"input_tokens":1200,"output_tokens":300,"cache_read_input_tokens":200,"cost_usd":0.03}"#;

    /// Covers: SE-01
    #[test]
    fn a_session_is_read() {
        let seen = read(EventFormat::Goose, SESSION);
        let expected = [
            ClientEvent::Text("starting session | provider: openai model: m".to_owned()),
            ClientEvent::Text("I look.".to_owned()),
            ClientEvent::Tool("developer__shell".to_owned(), "ls".to_owned()),
        ];
        assert_eq!(seen.get(..3), Some(expected.as_slice()), "{seen:?}");
        let usage = used(EventFormat::Goose, SESSION).usage;
        assert_eq!((usage.input, usage.cached, usage.output, usage.cost_usd), (1000, 200, 300, 0.03));
        let request = r#"{"type":"liza_request","input":300,"output":20,"cached":100}"#;
        let running = used(EventFormat::Goose, &[request, request].join("\n")).usage;
        assert_eq!((running.input, running.output, running.cached), (400, 40, 200), "while it runs");
        let failed = format!("{{\"type\":\"error\",\"error\":\"Rate limit exceeded\"}}\n{request}");
        assert!(outcome(EventFormat::Goose, &failed, Some(0)).fault.is_some(), "an earlier request");
        let sum = used(EventFormat::Goose, r#"{"type":"complete","total_tokens":700}"#).usage;
        assert_eq!((sum.input, sum.output), (700, 0));
    }

    /// Covers: AX-29
    #[test]
    fn calls_answers_and_compactions_are_seen() {
        let one = |id: u32, output: &str| {
            format!(
                r#"{{"type":"message","message":{{"role":"assistant","content":[{{"type":"toolRequest","id":"call_{id}","toolCall":{{"status":"success","value":{{"name":"shell","arguments":{{"command":"echo hi"}}}}}}}}]}}}}
{{"type":"message","message":{{"id":"msg_{id}","role":"user","content":[{{"type":"toolResponse","id":"call_{id}","toolResult":{{"status":"success","value":{{"content":[{{"type":"text","text":"{output}"}}],"isError":false}}}}}}]}}}}"#
            )
        };
        let seen = exchanges(EventFormat::Goose, &[one(1, "hi"), one(2, "hi"), one(3, "ho")].join("\n"));
        assert_eq!(seen.len(), 3);
        assert!(seen[0] == seen[1] && seen[1] != seen[2] && seen[0].answer.is_some(), "{seen:?}");
        let compacts = r#"{"type":"message","message":{"role":"assistant","content":[{"type":"systemNotification","notificationType":"inlineMessage","msg":"Context limit reached. Compacting to continue conversation..."},{"type":"systemNotification","notificationType":"inlineMessage","msg":"Compaction complete"}]}}"#;
        let events = read(EventFormat::Goose, compacts);
        assert_eq!(events.iter().filter(|event| **event == ClientEvent::Compacted).count(), 1, "{events:?}");
    }

    /// Covers: SE-01
    #[test]
    fn an_error_with_exit_code_0_is_an_error() {
        let overloaded = r#"{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"Ran into this error: Server error: 529 Overloaded.\n\nPlease retry if you think this is a transient or recoverable error."}]}}
{"type":"complete","total_tokens":0}"#;
        let end = outcome(EventFormat::Goose, overloaded, Some(0));
        assert_eq!(end.fault.unwrap().kind, FaultKind::Overloaded);
        let full = r#"{"type":"message","message":{"role":"assistant","content":[{"type":"systemNotification","notificationType":"inlineMessage","msg":"Unable to continue: Context limit still exceeded after compaction. Try using a shorter message."}]}}
{"type":"complete","total_tokens":1020}"#;
        assert_eq!(outcome(EventFormat::Goose, full, Some(0)).fault.unwrap().kind, FaultKind::ContextFull);
        let denied = r#"{"type":"message","message":{"role":"assistant","content":[{"type":"error","kind":"authentication","message":"401"}]}}"#;
        assert_eq!(faults(EventFormat::Goose, denied)[0].kind, FaultKind::Auth);
        let error = r#"{"type":"error","error":"Rate limit exceeded"}"#;
        assert_eq!(faults(EventFormat::Goose, error)[0].kind, FaultKind::Quota);
    }
}

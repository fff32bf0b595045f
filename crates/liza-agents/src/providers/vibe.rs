//! Mistral Vibe: its events (`--output streaming`) and the file in which it leaves its figures.

use liza_core::model::{FaultKind, Usage};
use serde_json::Value;

use super::event::{ClientEvent, EventReader, ToolEnd, UsageReport};
use super::fault::fault;
use super::json_line::{amount, items, number, parse, text, tool_detail};
use super::tool_calls::{OpenCalls, exchange};

/// Reads the messages of Vibe and, as the last line, the file with its figures.
#[derive(Default)]
pub(super) struct VibeEvents {
    started: bool,
    calls: OpenCalls,
}

impl EventReader for VibeEvents {
    fn read(&mut self, line: &str) -> Option<Vec<ClientEvent>> {
        if let Some(error) = line.strip_prefix("Error: ") {
            // The model's words are inside an event; a plain line is the program's own.
            return Some(vec![ClientEvent::Fault(fault(None, error))]);
        }
        let event = line.starts_with('{').then(|| parse(line)).flatten()?;
        let mut events = Vec::new();
        let session = text(&event, "/sessionId").or_else(|| text(&event, "/session_id"));
        if let Some(session) = session.filter(|_| !self.started) {
            self.started = true;
            events.push(ClientEvent::Started(session));
        }
        let is_typed = event.get("type").is_some();
        if text(&event, "/type").as_deref() == Some("effect") {
            events.extend(effect(&event));
        } else if !is_typed && (event.get("outcome").is_some() || event.get("cost_usd").is_some()) {
            events.extend(figures(&event));
        } else if event.get("role").is_some() {
            events.extend(message(&event));
            events.extend(self.exchange(&event));
        } else if events.is_empty() {
            return None;
        }
        Some(events)
    }
}

impl VibeEvents {
    /// A tool's answer; remembers the calls that wait for one.
    fn exchange(&mut self, event: &Value) -> Option<ClientEvent> {
        for call in items(event, "/tool_calls") {
            let name = text(call, "/function/name").unwrap_or_default();
            self.calls.call(text(call, "/id"), &name, call.pointer("/function/arguments"));
        }
        let is_answer = text(event, "/role").as_deref() == Some("tool");
        let id = text(event, "/tool_call_id");
        is_answer.then(|| self.calls.answer(id.as_deref(), ToolEnd::Unknown, &[event.get("content")]))
    }
}

/// A tool call with its answer, in one event when it has ended.
fn effect(event: &Value) -> Vec<ClientEvent> {
    let state = text(event, "/state/status").unwrap_or_default();
    if ["blocked", "pending", "running"].contains(&state.as_str()) {
        return Vec::new();
    }
    let name = text(event, "/detail/toolName").unwrap_or_default();
    // Its group comes first: `file_system.bash`.
    let name = name.rsplit('.').next().unwrap_or_default();
    let input = event.pointer("/detail/input");
    let success = event.pointer("/state/display/success").and_then(Value::as_bool);
    let failed = success.map(|success| !success).or((state != "completed").then_some(true));
    let answer =
        ["/state/outputText", "/state/error/message", "/state/reason"].map(|place| event.pointer(place));
    let call = ClientEvent::Tool(name.to_owned(), tool_detail(input));
    vec![call, exchange(name, input, ToolEnd::of(None, failed), &answer)]
}

fn message(event: &Value) -> Vec<ClientEvent> {
    if text(event, "/role").as_deref() != Some("assistant") {
        return Vec::new();
    }
    // A text, or a list of parts.
    let parts = items(event, "/content").iter().filter_map(|part| text(part, "/text"));
    let said = text(event, "/content").into_iter().chain(parts).map(ClientEvent::Text);
    let tools = items(event, "/tool_calls").iter().map(|call| {
        let name = text(call, "/function/name").unwrap_or_default();
        let arguments = text(call, "/function/arguments").and_then(|arguments| parse(&arguments));
        ClientEvent::Tool(name, tool_detail(arguments.as_ref()))
    });
    said.chain(tools).collect()
}

fn figures(event: &Value) -> Vec<ClientEvent> {
    let either =
        |names: &[&str]| names.iter().map(|name| number(event, &format!("/usage/{name}"))).max().unwrap_or(0);
    let cached = either(&["cached_input_tokens", "cached_tokens", "cache_read_input_tokens"]);
    let usage = Usage {
        // Its input includes what came from the cache.
        input: either(&["input_tokens", "prompt_tokens"]).saturating_sub(cached),
        output: either(&["output_tokens", "completion_tokens"]),
        cached,
        cost_usd: amount(event, "/cost_usd"),
        ..Usage::default()
    };
    let mut events = vec![ClientEvent::Used(UsageReport { usage, is_total: true, context_percent: None })];
    let error = text(event, "/error").or_else(|| text(event, "/error/message"));
    if let Some(error) = error {
        let mut found = fault(None, &error);
        if found.kind == FaultKind::Crashed {
            found.kind = fault(None, &text(event, "/stop_reason").unwrap_or_default()).kind;
        }
        events.push(ClientEvent::Fault(found));
    }
    events.push(ClientEvent::Ended);
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::event::EventFormat;
    use crate::providers::stream::tests::{faults, read, used};

    const SESSION: &str = r#"{"sessionId":"v-1","role":"system","content":"rules"}
{"role":"assistant","content":"I look.","tool_calls":[{"id":"1","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]}
{"role":"tool","content":"a.txt"}
{"outcome":"success","stop_reason":"end_turn","exit_code":0,"session_id":"v-1","steps":2,"cost_usd":0.005,"usage":{"prompt_tokens":900,"completion_tokens":40}}"#;

    /// Covers: SE-01
    #[test]
    fn a_session_is_read_with_the_figures_that_it_leaves() {
        let seen = read(EventFormat::Vibe, SESSION);
        let expected = [
            ClientEvent::Started("v-1".to_owned()),
            ClientEvent::Text("I look.".to_owned()),
            ClientEvent::Tool("bash".to_owned(), "ls".to_owned()),
        ];
        assert_eq!(seen.get(..3), Some(expected.as_slice()), "{seen:?}");
        let usage = used(EventFormat::Vibe, SESSION).usage;
        assert_eq!((usage.input, usage.output, usage.cost_usd), (900, 40, 0.005));
        assert_eq!(faults(EventFormat::Vibe, SESSION), []);
    }

    /// Covers: AX-30
    #[test]
    fn a_tool_call_of_the_present_version_is_an_effect() {
        let call = |state: &str| {
            format!(
                r#"{{"sessionId":"v-1","type":"effect","title":"file_system.bash","detail":{{"toolName":"file_system.bash","kind":"shell","input":{{"command":"ls"}}}},"state":{state}}}"#
            )
        };
        let done = call(r#"{"status":"completed","outputText":"a.txt\n","display":{"success":true}}"#);
        let seen = read(EventFormat::Vibe, &done);
        assert_eq!(seen.get(1), Some(&ClientEvent::Tool("bash".to_owned(), "ls".to_owned())), "{seen:?}");
        let answer = |line: &str| match VibeEvents::default().read(line).and_then(|mut events| events.pop()) {
            Some(ClientEvent::Answered(answer)) => (answer.end, answer.lines),
            other => panic!("{other:?}"),
        };
        assert_eq!(answer(&done), (ToolEnd::Succeeded, vec!["a.txt".to_owned()]));
        let red = call(r#"{"status":"completed","outputText":"bad\n","display":{"success":false}}"#);
        assert_eq!(answer(&red).0, ToolEnd::Failed);
        let refused = call(r#"{"status":"failed","error":{"message":"no such tool"}}"#);
        assert_eq!(answer(&refused), (ToolEnd::Failed, vec!["no such tool".to_owned()]));
        assert_eq!(read(EventFormat::Vibe, &call(r#"{"status":"running"}"#)).len(), 1, "not yet");
    }

    /// Covers: AX-32
    #[test]
    fn content_is_a_list_of_parts_and_cached_tokens_are_no_input() {
        let said = r#"{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"thinking"}]}"#;
        assert_eq!(read(EventFormat::Vibe, said), [ClientEvent::Text("I look.".to_owned())]);
        let left = r#"{"outcome":"success","usage":{"input_tokens":8000,"cached_input_tokens":7000,"output_tokens":40}}"#;
        let usage = used(EventFormat::Vibe, left).usage;
        assert_eq!((usage.input, usage.cached, usage.output), (1000, 7000, 40));
    }

    /// Covers: SE-01
    #[test]
    fn failures_have_a_kind() {
        let plain = faults(EventFormat::Vibe, "Error: API error 401 Unauthorized\n");
        assert_eq!(
            (plain[0].kind, plain[0].message.as_str()),
            (FaultKind::Auth, "API error 401 Unauthorized")
        );
        let left = r#"{"outcome":"error","stop_reason":"rate_limit","error":"stopped","exit_code":1}"#;
        assert_eq!(faults(EventFormat::Vibe, left)[0].kind, FaultKind::Quota);
    }
}

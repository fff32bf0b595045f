//! GitHub Copilot CLI: its events (`--output-format json`) and the file in which it leaves its figures
//! (`--usage-output-file`).

use liza_core::model::Usage;
use serde_json::Value;

use super::event::{ClientEvent, EventReader, ToolEnd, UsageReport};
use super::fault::fault;
use super::json_line::{number, parse, text, tool_detail, type_of};
use super::tool_calls::OpenCalls;

#[derive(Default)]
pub(super) struct CopilotEvents {
    calls: OpenCalls,
}

impl EventReader for CopilotEvents {
    fn read(&mut self, line: &str) -> Option<Vec<ClientEvent>> {
        let Some(kind) = type_of(line) else { return figures(line) };
        // Many events are parts of others; a name with a dot is one of its own.
        let event = match kind.as_str() {
            "result" => parse(line).filter(|event| event.get("sessionId").is_some())?,
            kind if is_own(kind) => parse(line)?,
            _ => return None,
        };
        Some(match kind.as_str() {
            "assistant.message" => text(&event, "/data/content").map(ClientEvent::Text).into_iter().collect(),
            "tool.execution_start" => vec![self.call(&event)],
            "tool.execution_complete" => vec![self.answer(&event)],
            // A retry that cannot help.
            "model.call_failure" if number(&event, "/data/statusCode") == 401 => vec![failure(&event)],
            "session.info" | "session.warning" => {
                text(&event, "/data/message").map(ClientEvent::Note).into_iter().collect()
            }
            "session.compaction_complete" => vec![ClientEvent::Compacted],
            "session.error" => vec![failure(&event)],
            "result" => {
                vec![ClientEvent::Started(text(&event, "/sessionId").unwrap_or_default()), ClientEvent::Ended]
            }
            _ => Vec::new(),
        })
    }
}

impl CopilotEvents {
    fn call(&mut self, event: &Value) -> ClientEvent {
        let (name, input) =
            (text(event, "/data/toolName").unwrap_or_default(), event.pointer("/data/arguments"));
        self.calls.call(text(event, "/data/toolCallId"), &name, input);
        ClientEvent::Tool(name, tool_detail(input))
    }

    fn answer(&mut self, event: &Value) -> ClientEvent {
        let id = text(event, "/data/toolCallId");
        let failed = event.pointer("/data/success").and_then(Value::as_bool).map(|success| !success);
        let end = ToolEnd::of(event.pointer("/data/shellExecution/exitCode"), failed);
        let answer = ["/data/result/content", "/data/error/message"].map(|place| event.pointer(place));
        self.calls.answer(id.as_deref(), end, &answer)
    }
}

fn is_own(kind: &str) -> bool {
    ["assistant.", "model.", "session.", "tool.", "user."].iter().any(|start| kind.starts_with(start))
}

fn failure(event: &Value) -> ClientEvent {
    let status = event.pointer("/data/statusCode").and_then(Value::as_u64);
    let said = ["/data/message", "/data/errorMessage"].iter().find_map(|place| text(event, place));
    ClientEvent::Fault(fault(status, &said.unwrap_or_default()))
}

/// The sums of all models; its input includes what came from the cache.
fn figures(line: &str) -> Option<Vec<ClientEvent>> {
    let event = line.starts_with('{').then(|| parse(line)).flatten()?;
    let models = event.get("modelMetrics")?.as_object()?;
    let sum = |name: &str| models.values().map(|model| number(model, &format!("/usage/{name}"))).sum::<u64>();
    let cached = sum("cacheReadTokens");
    let usage = Usage {
        input: sum("inputTokens").saturating_sub(cached),
        output: sum("outputTokens"),
        cached,
        ..Usage::default()
    };
    Some(vec![ClientEvent::Used(UsageReport { usage, is_total: true, context_percent: None })])
}

#[cfg(test)]
mod tests {
    use liza_core::model::FaultKind;

    use super::*;
    use crate::providers::event::EventFormat;
    use crate::providers::stream::tests::{exchanges, faults, read, used};

    const SESSION: &str = r#"{"type":"session.tools_updated","data":{"model":"gpt-5"},"ephemeral":true,"id":"49e7"}
{"type":"user.message","data":{"content":"Do it"},"id":"6a15"}
{"type":"tool.execution_start","data":{"toolCallId":"call_0","toolName":"bash","arguments":{"command":"cargo test"},"turnId":"0"},"id":"3820"}
{"type":"tool.execution_complete","data":{"toolCallId":"call_0","shellExecution":{"exitCode":1},"success":true,"result":{"content":"hi\n<shellId: 0 completed with exit code 1>"}},"id":"a8a6"}
{"type":"assistant.message","data":{"messageId":"49a9","model":"gpt-5","content":"Done.","toolRequests":[]},"id":"c4b9"}
{"type":"result","timestamp":"2026-11-18T16:55:43.280Z","sessionId":"e3231c06","exitCode":0,"usage":{"premiumRequests":0}}
{"totalPremiumRequestCost":0,"modelMetrics":{"gpt-5":{"requests":{"count":2},"usage":{"inputTokens":2000,"outputTokens":40,"cacheReadTokens":600,"cacheWriteTokens":0}}},"lastCallInputTokens":1000}"#;

    /// Covers: AX-34
    #[test]
    fn a_session_is_read_with_the_figures_that_it_leaves() {
        let seen = read(EventFormat::Copilot, SESSION);
        let expected = [
            ClientEvent::Tool("bash".to_owned(), "cargo test".to_owned()),
            ClientEvent::Text("Done.".to_owned()),
            ClientEvent::Started("e3231c06".to_owned()),
            ClientEvent::Ended,
        ];
        assert_eq!(seen.get(..4), Some(expected.as_slice()), "{seen:?}");
        let usage = used(EventFormat::Copilot, SESSION).usage;
        assert_eq!((usage.input, usage.cached, usage.output), (1400, 600, 40));
        assert_eq!(exchanges(EventFormat::Copilot, SESSION).len(), 1);
    }

    /// Covers: AX-34
    #[test]
    fn failures_have_a_kind() {
        let error = |data: &str| {
            faults(EventFormat::Copilot, &format!(r#"{{"type":"session.error","data":{data}}}"#))[0].kind
        };
        assert_eq!(
            error(r#"{"errorType":"authentication","message":"failed","statusCode":401}"#),
            FaultKind::Auth
        );
        assert_eq!(
            error(r#"{"errorType":"rate_limit","message":"Last error: 429 slow","statusCode":429}"#),
            FaultKind::Quota
        );
        let plain = "Error: No authentication information found.\n  • Run 'gh auth login' to authenticate\n";
        let ended = crate::providers::stream::tests::outcome(EventFormat::Copilot, plain, Some(1));
        assert_eq!(ended.fault.map(|fault| fault.kind), Some(FaultKind::Auth));
    }
}

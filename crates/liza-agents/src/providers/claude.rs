//! Claude Code: its events (`--output-format stream-json`). Those of Qwen Code differ in a few places.

use liza_core::model::{FaultKind, LimitReset, Seconds, Usage};
use serde_json::Value;

use super::event::{ClientEvent, EventReader, ToolEnd, UsageReport};
use super::fault::{fault, of_kind, reset_at};
use super::json_line::{amount, items, number, parse, text, tool_detail, type_of};
use super::tool_calls::OpenCalls;

/// The context of a model whose size the program has not reported yet.
const CONTEXT: u64 = 200_000;
/// The context of the models with a large one.
const LARGE_CONTEXT: u64 = 1_000_000;
/// A longer pause before a retry is a limit that the session should not wait for.
const LONG_RETRY: Seconds = Seconds(60);

/// The first words of the answer of a command that failed.
const EXIT_CODE: &str = "Exit code ";

#[derive(Default)]
pub(super) struct ClaudeEvents {
    /// The last message counted; its parts arrive in several events.
    message: String,
    /// Tokens in the context, as last reported.
    context: u64,
    /// True if the model has a large context.
    large: bool,
    /// The end of the current limit, as the program said in an event of its own.
    limit: Option<LimitReset>,
    calls: OpenCalls,
    /// Qwen Code: its input includes what came from the cache.
    is_qwen: bool,
}

impl EventReader for ClaudeEvents {
    fn read(&mut self, line: &str) -> Option<Vec<ClientEvent>> {
        let kind = type_of(line)?;
        match kind.as_str() {
            "assistant" => self.assistant(&parse(line)?),
            "system" => self.system(&parse(line)?),
            "result" => self.result(&parse(line)?),
            "rate_limit_event" => self.limit_event(&parse(line)?),
            "user" => Some(self.tool_results(&parse(line)?)),
            // Parts of messages.
            "stream_event" => Some(Vec::new()),
            _ => None,
        }
    }
}

impl ClaudeEvents {
    pub(super) fn qwen() -> Self {
        Self { is_qwen: true, ..Self::default() }
    }

    fn usage(&self, event: &Value, pointer: &str) -> Usage {
        let usage = usage(event, pointer);
        let included = if self.is_qwen { usage.cached } else { 0 };
        Usage { input: usage.input.saturating_sub(included), ..usage }
    }

    fn system(&mut self, event: &Value) -> Option<Vec<ClientEvent>> {
        match text(event, "/subtype").as_deref() {
            Some("init") => {
                self.large = text(event, "/model").is_some_and(|model| model.contains("[1m]"));
                Some(vec![ClientEvent::Started(text(event, "/session_id").unwrap_or_default())])
            }
            Some("api_retry") => Some(vec![self.retry(event)]),
            Some("compact_boundary") => {
                Some(vec![ClientEvent::Note("context compacted".to_owned()), ClientEvent::Compacted])
            }
            Some(_) => Some(Vec::new()),
            None => None,
        }
    }

    /// A retry. One that cannot help, or that has to wait long, is an error now.
    fn retry(&self, event: &Value) -> ClientEvent {
        let status = event.pointer("/error_status").and_then(Value::as_u64);
        let mut fault = fault(status, &text(event, "/error").unwrap_or_default());
        // Without a status no provider has answered.
        if status.is_none() && fault.kind == FaultKind::Crashed {
            fault.kind = FaultKind::Overloaded;
        }
        let wait = Seconds(number(event, "/retry_delay_ms").div_ceil(1000));
        let (attempt, all) = (number(event, "/attempt"), number(event, "/max_retries"));
        match fault.kind {
            FaultKind::Auth => ClientEvent::Fault(fault),
            FaultKind::Quota if wait > LONG_RETRY => {
                fault.reset = self.limit.or(Some(LimitReset::In(wait)));
                ClientEvent::Fault(fault)
            }
            FaultKind::Quota
            | FaultKind::Overloaded
            | FaultKind::ContextFull
            | FaultKind::PermissionDenied
            | FaultKind::Refused
            | FaultKind::Crashed => {
                let what = fault.kind.describe();
                ClientEvent::Note(format!("{what}: retry {attempt} of {all} in {wait}"))
            }
        }
    }

    fn tool_results(&mut self, event: &Value) -> Vec<ClientEvent> {
        let results = items(event, "/message/content").iter();
        let results = results.filter(|part| text(part, "/type").as_deref() == Some("tool_result"));
        results.map(|part| self.tool_result(part)).collect()
    }

    /// The exit code of a command that failed is the first line of its output.
    fn tool_result(&mut self, part: &Value) -> ClientEvent {
        let id = text(part, "/tool_use_id").unwrap_or_default();
        let failed = part.get("is_error").and_then(Value::as_bool) == Some(true);
        let said = part.get("content").and_then(Value::as_str).unwrap_or_default();
        let (first, rest) = said.split_once('\n').unwrap_or((said, ""));
        let code = first.strip_prefix(EXIT_CODE).and_then(|code| code.parse().ok()).filter(|_| failed);
        let of_qwen = if self.is_qwen { command_report(said) } else { None };
        match code.map(|code| (rest, code)).or(of_qwen) {
            Some((rest, code)) => self.calls.answer(Some(&id), ToolEnd::Exit(code), &[Some(&rest.into())]),
            None => self.calls.answer(Some(&id), ToolEnd::of(None, Some(failed)), &[part.get("content")]),
        }
    }

    fn limit_event(&mut self, event: &Value) -> Option<Vec<ClientEvent>> {
        let refused = text(event, "/rate_limit_info/status").as_deref() == Some("rejected");
        let resets = event.pointer("/rate_limit_info/resetsAt").and_then(Value::as_i64);
        self.limit = resets.filter(|_| refused).map(reset_at);
        Some(Vec::new())
    }

    fn assistant(&mut self, event: &Value) -> Option<Vec<ClientEvent>> {
        let mut events = Vec::new();
        // Agents inside the session have a context of their own.
        let own = event.get("parent_tool_use_id").is_none_or(Value::is_null);
        let id = text(event, "/message/id").unwrap_or_default();
        if self.message != id || id.is_empty() {
            self.message = id;
            events.extend(self.used(event, own));
        }
        for part in items(event, "/message/content") {
            match part.get("type").and_then(Value::as_str) {
                Some("text") => events.extend(text(part, "/text").map(ClientEvent::Text)),
                Some("tool_use") => {
                    let name = text(part, "/name").unwrap_or_default();
                    self.calls.call(text(part, "/id"), &name, part.get("input"));
                    events.push(ClientEvent::Tool(name, tool_detail(part.get("input"))));
                }
                _ => {}
            }
        }
        Some(events)
    }

    fn used(&mut self, event: &Value, own: bool) -> Option<ClientEvent> {
        let usage = Usage { output: 0, ..self.usage(event, "/message/usage") };
        let context = usage.input.saturating_add(usage.cached);
        if context == 0 {
            return None;
        }
        let mut percent = None;
        if own {
            self.context = context;
            percent = (!self.is_qwen).then(|| share(context, self.window()));
        }
        Some(ClientEvent::Used(UsageReport { usage, is_total: false, context_percent: percent }))
    }

    fn window(&self) -> u64 {
        if self.large || self.context > CONTEXT { LARGE_CONTEXT } else { CONTEXT }
    }

    fn result(&mut self, event: &Value) -> Option<Vec<ClientEvent>> {
        let mut total = self.usage(event, "/usage");
        total.cost_usd = amount(event, "/total_cost_usd");
        let models = event.get("modelUsage").and_then(Value::as_object);
        let windows = models.into_iter().flatten().map(|(_, model)| number(model, "/contextWindow"));
        let window = windows.max().filter(|window| *window > 0).unwrap_or(self.window());
        let context_percent = (self.context > 0 && !self.is_qwen).then(|| share(self.context, window));
        let mut events =
            vec![ClientEvent::Used(UsageReport { usage: total, is_total: true, context_percent })];
        match text(event, "/subtype").as_deref() {
            Some("error_max_budget_usd") => events.push(ClientEvent::BudgetReached),
            Some(_) | None => events.extend(self.failure(event).map(ClientEvent::Fault)),
        }
        events.push(ClientEvent::Ended);
        Some(events)
    }

    fn failure(&self, event: &Value) -> Option<liza_core::model::ClientFault> {
        let said = ["/result", "/errors/0", "/error/message"]
            .iter()
            .find_map(|place| text(event, place))
            .unwrap_or_default();
        if event.get("is_error").and_then(Value::as_bool) != Some(true) {
            let denied = items(event, "/permission_denials").iter().filter_map(|one| text(one, "/tool_name"));
            let denied: Vec<String> = denied.collect();
            let message = format!("not allowed: {}", denied.join(", "));
            return (!denied.is_empty()).then(|| of_kind(FaultKind::PermissionDenied, &message));
        }
        let status = event.get("api_error_status").and_then(Value::as_u64);
        let details = [text(event, "/api_error_type"), text(event, "/terminal_reason")];
        let kind = fault(status, &said).kind;
        // The words of the message may not name the kind; those of the record then do.
        let kind = match kind {
            FaultKind::Crashed => {
                fault(None, &details.into_iter().flatten().collect::<Vec<_>>().join(" ")).kind
            }
            FaultKind::Auth
            | FaultKind::Quota
            | FaultKind::Overloaded
            | FaultKind::ContextFull
            | FaultKind::PermissionDenied
            | FaultKind::Refused => kind,
        };
        let mut fault = of_kind(kind, &said);
        // Its words have no seconds, and may be late.
        fault.reset = self.limit.filter(|_| kind == FaultKind::Quota).or(fault.reset);
        Some(fault)
    }
}

/// The output and the exit code in Qwen's report about a command, which has a line for each of its facts.
fn command_report(said: &str) -> Option<(&str, i64)> {
    let (_, rest) = said.split_once("\nOutput: ")?;
    let (output, facts) = rest.rsplit_once("\nError: ")?;
    let code = facts.lines().find_map(|line| line.strip_prefix("Exit Code: "))?;
    Some((output, code.parse().ok()?))
}

fn usage(event: &Value, pointer: &str) -> Usage {
    let tokens = |name: &str| number(event, &format!("{pointer}/{name}"));
    Usage {
        input: tokens("input_tokens").saturating_add(tokens("cache_creation_input_tokens")),
        output: tokens("output_tokens"),
        cached: tokens("cache_read_input_tokens"),
        ..Usage::default()
    }
}

/// The used share of the window, in percent.
pub(super) fn share(tokens: u64, window: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a percentage needs no 53 bits")]
    let share = tokens as f64 * 100.0 / window as f64;
    share.clamp(0.0, 100.0)
}

#[cfg(test)]
mod tests {
    use liza_core::model::Timestamp;

    use super::*;
    use crate::providers::event::EventFormat;
    use crate::providers::stream::tests::{exchanges, faults, read, used};

    const INIT: &str = r#"{"type":"system","subtype":"init","cwd":"/w","session_id":"5b0c","model":"claude-sonnet-4-6","tools":["Bash"]}"#;
    const WORK: &str = r#"{"type":"assistant","message":{"id":"msg_1","role":"assistant","content":[{"type":"text","text":"I look first."},{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"git status","description":"x"}}],"usage":{"input_tokens":10,"cache_creation_input_tokens":20000,"cache_read_input_tokens":30000,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"5b0c"}"#;
    const NESTED: &str = r#"{"type":"assistant","message":{"id":"msg_2","content":[],"usage":{"input_tokens":190000}},"parent_tool_use_id":"toolu_9"}"#;
    const DONE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","usage":{"input_tokens":200010,"cache_creation_input_tokens":20000,"cache_read_input_tokens":30000,"output_tokens":900},"total_cost_usd":0.42,"modelUsage":{"claude-sonnet-4-6":{"contextWindow":500000}},"permission_denials":[]}"#;

    /// Covers: SE-01
    #[test]
    fn a_session_is_read_with_its_usage_cost_and_context() {
        // The parts of one message repeat its usage.
        let output = [INIT, WORK, WORK, r#"{"type":"user","message":{}}"#, NESTED].join("\n");
        let expected = [
            ClientEvent::Started("5b0c".to_owned()),
            ClientEvent::Text("I look first.".to_owned()),
            ClientEvent::Tool("Bash".to_owned(), "git status".to_owned()),
        ];
        let seen = read(EventFormat::Claude, &output);
        let others: Vec<_> = seen.iter().filter(|event| !matches!(event, ClientEvent::Used(_))).collect();
        assert_eq!(others.get(..3), Some(expected.iter().collect::<Vec<_>>().as_slice()), "{others:?}");
        let running = used(EventFormat::Claude, &output);
        assert_eq!((running.usage.input, running.usage.cached, running.usage.output), (210_010, 30_000, 0));
        assert_eq!(running.context_percent, Some(25), "a nested agent has its own context");
        let whole = used(EventFormat::Claude, &format!("{output}\n{DONE}"));
        assert_eq!((whole.usage.input, whole.usage.output, whole.usage.cost_usd), (220_010, 900, 0.42));
        assert_eq!(whole.context_percent, Some(10), "the window that the program reports");
        assert_eq!(faults(EventFormat::Claude, &format!("{output}\n{DONE}")), []);
    }

    /// Covers: AX-29
    #[test]
    fn equal_calls_with_equal_answers_have_equal_numbers() {
        let exchange = |id: &str, command: &str, answer: &str| {
            let call = format!(
                r#"{{"type":"assistant","message":{{"id":"m{id}","content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"{command}"}}}}]}}}}"#
            );
            let result = format!(
                r#"{{"type":"user","message":{{"content":[{{"tool_use_id":"{id}","type":"tool_result","content":"{answer}","is_error":false}}]}},"uuid":"u{id}"}}"#
            );
            let found = exchanges(EventFormat::Claude, &format!("{call}\n{call}\n{result}"));
            assert_eq!(found.len(), 1);
            found[0]
        };
        let first = exchange("1", "git status", "clean");
        assert_eq!(first, exchange("2", "git status", "clean"));
        assert_ne!(first, exchange("3", "git log", "clean"));
        assert_ne!(first, exchange("4", "git status", "dirty"));
    }

    /// Covers: AX-29
    #[test]
    fn its_own_limit_is_no_fault() {
        let limit = r#"{"type":"result","subtype":"error_max_budget_usd","is_error":true,"terminal_reason":"budget_exhausted","errors":["Reached maximum budget ($0.3)"],"total_cost_usd":0.3075}"#;
        assert_eq!(faults(EventFormat::Claude, limit), []);
        assert!(read(EventFormat::Claude, limit).contains(&ClientEvent::BudgetReached));
    }

    /// Covers: AX-28
    #[test]
    fn each_role_has_its_tools_and_a_permission_mode() {
        let template = crate::providers::builtin::find("claude").unwrap();
        let after = |arguments: &[String], option: &str| {
            let place = arguments.iter().position(|word| word == option).unwrap();
            arguments[place + 1].clone()
        };
        for (arguments, tools, mode) in [
            (&template.writing_args, "Bash,Read,Glob,Grep,Edit,Write", "acceptEdits"),
            (&template.reading_args, "Bash,Read,Glob,Grep", "dontAsk"),
        ] {
            for option in ["--tools", "--allowedTools"] {
                assert_eq!(after(arguments, option), tools);
            }
            assert_eq!(after(arguments, "--permission-mode"), mode);
            assert!(arguments.iter().any(|word| word == "--strict-mcp-config"));
        }
    }

    fn failure(fields: &str) -> liza_core::model::ClientFault {
        let line = format!(r#"{{"type":"result","subtype":"success",{fields}}}"#);
        let mut found = faults(EventFormat::Claude, &format!("{INIT}\n{line}"));
        assert_eq!(found.len(), 1, "{line}");
        found.remove(0)
    }

    /// Covers: SE-01
    #[test]
    fn failures_have_a_kind_although_the_subtype_says_success() {
        let auth = failure(
            r#""is_error":true,"terminal_reason":"api_error","api_error_status":401,"result":"Invalid API key · Please run /login""#,
        );
        assert_eq!(
            (auth.kind, auth.message.as_str()),
            (FaultKind::Auth, "Invalid API key · Please run /login")
        );
        let full = failure(r#""is_error":true,"terminal_reason":"prompt_too_long","result":"too much""#);
        assert_eq!((full.kind, full.message.as_str()), (FaultKind::ContextFull, "too much"));
        let limit = failure(r#""is_error":true,"result":"Claude AI usage limit reached|1749924000""#);
        assert_eq!(limit.reset, Some(LimitReset::At(Timestamp::from_unix(1_749_924_000))));
        let denied = failure(r#""is_error":false,"result":"x","permission_denials":[{"tool_name":"Write"}]"#);
        assert_eq!(
            (denied.kind, denied.message.as_str()),
            (FaultKind::PermissionDenied, "not allowed: Write")
        );
        let other = failure(r#""is_error":true,"result":"boom""#);
        assert_eq!(other.kind, FaultKind::Crashed);
    }

    /// Covers: SE-01, SE-03, SE-04
    #[test]
    fn a_retry_is_a_note_unless_it_cannot_help_soon() {
        let retry = |status: u32, delay: u32| {
            format!(
                r#"{{"type":"system","subtype":"api_retry","attempt":3,"max_retries":10,"retry_delay_ms":{delay},"error_status":{status},"error":"x"}}"#
            )
        };
        let note = read(EventFormat::Claude, &retry(529, 5_000));
        assert_eq!(note, [ClientEvent::Note("provider not available: retry 3 of 10 in 5s".to_owned())]);
        assert_eq!(faults(EventFormat::Claude, &retry(401, 500))[0].kind, FaultKind::Auth);
        assert_eq!(faults(EventFormat::Claude, &retry(429, 20_000)), []);
        let limit = faults(EventFormat::Claude, &retry(429, 3_600_000));
        assert_eq!((limit[0].kind, limit[0].reset), (FaultKind::Quota, Some(LimitReset::In(Seconds(3600)))));
        let told =
            r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1749924000}}"#;
        let limit = faults(EventFormat::Claude, &format!("{told}\n{}", retry(429, 3_600_000)));
        assert_eq!(limit[0].reset, Some(LimitReset::At(Timestamp::from_unix(1_749_924_000))));
    }

    /// Covers: AX-27
    #[test]
    fn the_exact_end_of_a_limit_comes_before_the_words_for_it() {
        let limit = |status: &str| {
            let info = format!(r#""rate_limit_info":{{"status":"{status}","resetsAt":1749924000}}"#);
            let failed =
                r#"{"type":"result","is_error":true,"result":"5-hour limit reached · resets 3:15pm"}"#;
            let output = format!("{INIT}\n{{\"type\":\"rate_limit_event\",{info}}}\n{failed}");
            faults(EventFormat::Claude, &output).remove(0)
        };
        let exact = Some(LimitReset::At(Timestamp::from_unix(1_749_924_000)));
        assert_eq!((limit("rejected").kind, limit("rejected").reset), (FaultKind::Quota, exact));
        assert!(limit("allowed").reset.is_some_and(|reset| Some(reset) != exact), "the words remain");
    }

    /// Covers: AX-34
    #[test]
    fn a_session_of_qwen_is_read() {
        let session = r#"{"type":"system","subtype":"init","session_id":"71a7","model":"m","permission_mode":"yolo","qwen_code_version":"0.24.4"}
{"type":"stream_event","session_id":"71a7","parent_tool_use_id":null,"event":{"type":"goal_state"}}
{"type":"assistant","parent_tool_use_id":null,"message":{"id":"35e3","role":"assistant","content":[{"type":"tool_use","id":"call_0","name":"run_shell_command","input":{"command":"ls"}}],"usage":{"input_tokens":1000,"output_tokens":20,"cache_read_input_tokens":300,"total_tokens":1020}}}
{"type":"user","parent_tool_use_id":null,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_0","is_error":false,"content":"a.txt"}]}}
{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"Done.","usage":{"input_tokens":2000,"output_tokens":40,"cache_read_input_tokens":600,"total_tokens":2040},"permission_denials":[]}"#;
        let found = used(EventFormat::Qwen, session);
        assert_eq!((found.usage.input, found.usage.cached, found.usage.output), (1400, 600, 40));
        assert_eq!(found.context_percent, None, "it does not say how large the context is");
        let failed = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"usage":{"input_tokens":0},"error":{"message":"[API Error: 401 bad key]"}}"#;
        assert_eq!(faults(EventFormat::Qwen, failed)[0].kind, FaultKind::Auth);
    }
}

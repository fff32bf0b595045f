//! Codex: its events (`exec --json`).

use liza_core::model::{FaultKind, Usage};
use liza_core::text::one_line;
use serde_json::Value;

use super::claude::share;
use super::event::{ClientEvent, EventReader, ToolEnd, UsageReport};
use super::fault::fault;
use super::json_line::{items, number, parse, text, tool_detail, type_of};
use super::tool_calls::{OpenCalls, exchange};

const NOTE_MAX: usize = 300;

/// The variable that the key of the chosen provider comes from, by the text of `config.toml`:
///
/// ```toml
/// model_provider = "mine"
/// [model_providers.mine]
/// env_key = "MY_KEY"
/// ```
pub(super) fn key_variable(settings: &str) -> Option<String> {
    let (mut chosen, mut variables, mut table) = (None, Vec::new(), String::new());
    for line in settings.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            table = header.split(']').next().unwrap_or_default().replace(['"', '\'', ' '], "");
        } else if let Some((key, value)) = line.split_once('=') {
            let value = quoted(value);
            match key.trim() {
                "model_provider" if table.is_empty() => chosen = value,
                "env_key" => variables.extend(value.map(|value| (table.clone(), value))),
                _ => {}
            }
        }
    }
    let table = format!("model_providers.{}", chosen?);
    variables.into_iter().find(|(found, _)| *found == table).map(|(_, name)| name)
}

/// The text between the quotation marks that a value begins with.
fn quoted(value: &str) -> Option<String> {
    let value = value.trim();
    let mark = value.chars().next().filter(|mark| ['"', '\''].contains(mark))?;
    value.get(1..)?.split(mark).next().map(str::to_owned)
}

#[derive(Default)]
pub(super) struct CodexEvents {
    calls: OpenCalls,
}

impl EventReader for CodexEvents {
    fn read(&mut self, line: &str) -> Option<Vec<ClientEvent>> {
        let kind = type_of(line)?;
        match kind.as_str() {
            "thread.started" => {
                Some(vec![ClientEvent::Started(text(&parse(line)?, "/thread_id").unwrap_or_default())])
            }
            "item.started" => Some(self.started(&parse(line)?)),
            "item.completed" => Some(self.completed(&parse(line)?)),
            "turn.completed" => {
                let report = UsageReport {
                    usage: usage(&parse(line)?, "/usage"),
                    is_total: true,
                    context_percent: None,
                };
                Some(vec![ClientEvent::Used(report), ClientEvent::Ended])
            }
            "turn.failed" => Some(vec![ClientEvent::Fault(fault(None, &message(&parse(line)?)))]),
            "error" => Some(vec![error(&message(&parse(line)?))]),
            // From the log that it keeps beside its output.
            "event_msg" => Some(context(&parse(line)?).into_iter().collect()),
            "turn.started" | "item.updated" => Some(Vec::new()),
            _ => None,
        }
    }
}

impl CodexEvents {
    fn started(&mut self, event: &Value) -> Vec<ClientEvent> {
        let input = ["/item/command", "/item/arguments", "/item/query"];
        let input = input.iter().find_map(|place| event.pointer(place));
        if let Some(input) = input {
            let name = text(event, "/item/tool").or_else(|| text(event, "/item/type")).unwrap_or_default();
            self.calls.call(text(event, "/item/id"), &name, Some(input));
        }
        started(event)
    }

    fn completed(&mut self, event: &Value) -> Vec<ClientEvent> {
        let mut events = completed(event);
        let kind = text(event, "/item/type");
        if matches!(kind.as_deref(), Some("command_execution" | "mcp_tool_call" | "web_search")) {
            let answer = ["/item/aggregated_output", "/item/result", "/item/error"];
            let answer = answer.map(|place| event.pointer(place).filter(|part| !part.is_null()));
            let id = text(event, "/item/id").unwrap_or_default();
            events.push(self.calls.answer(Some(&id), end(event), &answer));
        }
        events
    }
}

/// A message is JSON itself if the provider's answer was.
fn message(event: &Value) -> String {
    let said = text(event, "/error/message").or_else(|| text(event, "/message")).unwrap_or_default();
    match parse(&said) {
        Some(inner @ Value::Object(_)) => text(&inner, "/error/message").unwrap_or(said),
        _ => said,
    }
}

/// A lost connection that is tried again is only a note, unless trying again cannot help.
fn error(message: &str) -> ClientEvent {
    let is_retry = message.starts_with("Reconnecting");
    // Its reason is in brackets.
    let reason = message.split_once('(').map(|(_, reason)| reason.trim_end_matches(')'));
    let found = fault(None, reason.filter(|_| is_retry).unwrap_or(message));
    if is_retry && found.kind != FaultKind::Auth {
        return ClientEvent::Note(one_line(message, NOTE_MAX));
    }
    ClientEvent::Fault(found)
}

/// Tools are shown when they start.
fn started(event: &Value) -> Vec<ClientEvent> {
    let tool = |name: &str, detail: Option<String>| {
        vec![ClientEvent::Tool(name.to_owned(), detail.unwrap_or_default())]
    };
    match text(event, "/item/type").as_deref() {
        Some("command_execution") => tool("shell", text(event, "/item/command").map(|line| bare(&line))),
        Some("web_search") => tool("web search", text(event, "/item/query")),
        Some("mcp_tool_call") => {
            let name = text(event, "/item/tool").unwrap_or_default();
            tool(&name, Some(tool_detail(event.pointer("/item/arguments"))))
        }
        _ => Vec::new(),
    }
}

/// A command without the shell that codex runs it in, which is the same each time.
fn bare(line: &str) -> String {
    let Some((shell, rest)) = line.split_once(" -lc ").or_else(|| line.split_once(" -c ")) else {
        return line.to_owned();
    };
    if shell.contains(' ') || !shell.ends_with("sh") {
        return line.to_owned();
    }
    unquoted(rest.trim()).trim().to_owned()
}

/// The word that a shell reads, if it is one; a line that was cut may lack its last quotation mark.
fn unquoted(word: &str) -> String {
    let (mut text, mut open, mut chars) = (String::new(), None, word.chars());
    while let Some(c) = chars.next() {
        match (open, c) {
            (None, '\'' | '"') => open = Some(c),
            (Some(mark), c) if mark == c => open = None,
            (None, '\\') => text.extend(chars.next()),
            (Some('"'), '\\') => {
                let next = chars.next();
                text.extend(next.filter(|next| !"\"\\$`".contains(*next)).map(|_| '\\'));
                text.extend(next);
            }
            (_, c) => text.push(c),
        }
    }
    text
}

fn end(event: &Value) -> ToolEnd {
    let failed = text(event, "/item/status").map(|status| status == "failed");
    ToolEnd::of(event.pointer("/item/exit_code"), failed)
}

fn completed(event: &Value) -> Vec<ClientEvent> {
    let said = || text(event, "/item/text");
    match text(event, "/item/type").as_deref() {
        Some("agent_message") => said().map(ClientEvent::Text).into_iter().collect(),
        Some("file_change") => {
            let paths = items(event, "/item/changes").iter().filter_map(|change| text(change, "/path"));
            let edit = ClientEvent::Tool("edit".to_owned(), paths.collect::<Vec<_>>().join(" "));
            vec![edit, exchange("edit", event.pointer("/item/changes"), end(event), &[])]
        }
        Some("context_compaction") => {
            vec![ClientEvent::Note("context compacted".to_owned()), ClientEvent::Compacted]
        }
        // Warnings; an error that ends the session follows as an event of its own.
        Some("error") => text(event, "/item/message").map(ClientEvent::Warning).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The use of the context: the tokens of the last answer, not their sum. The report also has the sum, which
/// the output has only at the end of a turn, so never if the session is stopped.
fn context(event: &Value) -> Option<ClientEvent> {
    let info = event
        .pointer("/payload/info")
        .filter(|_| text(event, "/payload/type").as_deref() == Some("token_count"))?;
    let used = number(info, "/last_token_usage/total_tokens");
    let window = number(info, "/model_context_window");
    let context_percent = (used > 0 && window > 0).then(|| share(used, window))?;
    let (usage, context_percent) = (usage(info, "/total_token_usage"), Some(context_percent));
    Some(ClientEvent::Used(UsageReport { usage, is_total: true, context_percent }))
}

/// Cached tokens are part of the input here.
fn usage(event: &Value, place: &str) -> Usage {
    let figure = |name: &str| number(event, &format!("{place}/{name}"));
    let cached = figure("cached_input_tokens");
    let input = figure("input_tokens").saturating_sub(cached);
    Usage { input, output: figure("output_tokens"), cached, ..Usage::default() }
}

#[cfg(test)]
mod tests {
    use liza_core::model::{LimitReset, Seconds};

    use super::*;
    use crate::providers::event::EventFormat;
    use crate::providers::stream::tests::{exchanges, faults, read, used};

    const SESSION: &str = r#"{"type":"thread.started","thread_id":"0199-a"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"bash -lc 'git status'","aggregated_output":"","status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"bash -lc 'git status'","exit_code":0,"status":"completed"}}
{"type":"item.completed","item":{"id":"item_1","type":"file_change","changes":[{"path":"a.rs","kind":"add"},{"path":"b.rs","kind":"update"}],"status":"completed"}}
{"type":"item.completed","item":{"id":"item_2","type":"error","message":"Model metadata not found"}}
{"type":"item.completed","item":{"id":"item_3","type":"agent_message","text":"Submitted."}}
{"type":"turn.completed","usage":{"input_tokens":24763,"cached_input_tokens":24448,"output_tokens":122,"reasoning_output_tokens":64}}"#;

    /// Covers: UI-01, SE-04
    #[test]
    fn a_command_is_shown_without_the_shell_that_runs_it() {
        let cases = [
            ("/bin/bash -lc 'git status; ls'", "git status; ls"),
            (r#"/usr/bin/zsh -lc "echo 'a'""#, "echo 'a'"),
            (r#"/bin/bash -lc 'echo a; echo '"'b'""#, "echo a; echo 'b'"),
            (r#"bash -lc "git commit -m \"A b\"; echo \\n \d""#, r#"git commit -m "A b"; echo \n \d"#),
            ("bash -lc ls", "ls"),
            ("sh -c 'make test'", "make test"),
            ("git -c core.pager= log", "git -c core.pager= log"),
            ("cargo test", "cargo test"),
        ];
        for (line, expected) in cases {
            assert_eq!(bare(line), expected, "{line}");
        }
    }

    /// Covers: SE-01
    #[test]
    fn a_session_is_read() {
        let seen = read(EventFormat::Codex, SESSION);
        let expected = [
            ClientEvent::Started("0199-a".to_owned()),
            ClientEvent::Tool("shell".to_owned(), "git status".to_owned()),
            ClientEvent::Tool("edit".to_owned(), "a.rs b.rs".to_owned()),
            ClientEvent::Warning("Model metadata not found".to_owned()),
            ClientEvent::Text("Submitted.".to_owned()),
        ];
        assert_eq!(seen.get(..5), Some(expected.as_slice()), "{seen:?}");
        assert_eq!(seen.last(), Some(&ClientEvent::Ended));
        let usage = used(EventFormat::Codex, SESSION).usage;
        assert_eq!((usage.input, usage.cached, usage.output), (315, 24_448, 122));
        assert_eq!(faults(EventFormat::Codex, SESSION), []);
    }

    /// Covers: AX-29
    #[test]
    fn a_command_is_compared_with_its_output_and_its_exit_code() {
        let run = |id: u32, command: &str, output: &str, code: u32| {
            let item = |kind: &str, more: &str| {
                format!(
                    r#"{{"type":"{kind}","item":{{"id":"item_{id}","type":"command_execution","command":"{command}"{more}}}}}"#
                )
            };
            let end = format!(r#","aggregated_output":"{output}","exit_code":{code},"status":"completed""#);
            exchanges(
                EventFormat::Codex,
                &format!("{}\n{}", item("item.started", ""), item("item.completed", &end)),
            )
        };
        let first = run(1, "make", "ok", 0);
        assert_eq!((first.len(), &first), (1, &run(2, "make", "ok", 0)));
        assert!(first[0].answer.is_some());
        for other in [run(3, "make", "ok", 1), run(4, "make", "no", 0), run(5, "make all", "ok", 0)] {
            assert_ne!(first, other);
        }
    }

    /// Covers: SE-01
    #[test]
    fn failures_have_a_kind() {
        let one = |line: &str| faults(EventFormat::Codex, line).into_iter().next();
        let kind = |message: &str| {
            let line = serde_json::json!({"type": "turn.failed", "error": {"message": message}});
            one(&line.to_string()).unwrap().kind
        };
        assert_eq!(kind("unexpected status 401 Unauthorized: Missing bearer"), FaultKind::Auth);
        assert_eq!(kind("stream disconnected before completion"), FaultKind::Overloaded);
        assert_eq!(kind("Codex ran out of room in the model's context window"), FaultKind::ContextFull);
        assert_eq!(kind(r#"{"error":{"message":"You exceeded your current quota"}}"#), FaultKind::Quota);
        let limit =
            r#"{"type":"error","message":"You've hit your usage limit. Try again in 2 hours 30 minutes."}"#;
        assert_eq!(one(limit).unwrap().reset, Some(LimitReset::In(Seconds(9_000))));
        let again = r#"{"type":"error","message":"Reconnecting... 2/5 (stream disconnected)"}"#;
        assert_eq!(
            read(EventFormat::Codex, again),
            [ClientEvent::Note("Reconnecting... 2/5 (stream disconnected)".to_owned())]
        );
        let hopeless =
            r#"{"type":"error","message":"Reconnecting... 1/5 (unexpected status 401 Unauthorized)"}"#;
        assert_eq!(one(hopeless).unwrap().kind, FaultKind::Auth);
    }

    /// Covers: SE-05, SE-14
    #[test]
    fn the_context_share_is_that_of_the_last_answer() {
        let count = |last: u64| {
            serde_json::json!({"type": "event_msg", "payload": {"type": "token_count", "info": {
                "total_token_usage": {"total_tokens": 900_000}, "last_token_usage": {"total_tokens": last},
                "model_context_window": 272_000}}})
        };
        let output = format!("{SESSION}\n{}\n{}", count(100), count(136_000));
        let used = used(EventFormat::Codex, &output);
        assert_eq!((used.context_percent, used.usage.output), (Some(50), 122));
        // A session that is stopped has no last event with its sum.
        let stopped = serde_json::json!({"type": "event_msg", "payload": {"type": "token_count", "info": {
            "total_token_usage": {"input_tokens": 33_000, "cached_input_tokens": 30_000, "output_tokens": 70},
            "last_token_usage": {"total_tokens": 11_000}, "model_context_window": 272_000}}});
        let used = self::used(EventFormat::Codex, &stopped.to_string()).usage;
        assert_eq!((used.input, used.cached, used.output), (3_000, 30_000, 70));
        let empty = r#"{"type":"event_msg","payload":{"type":"token_count","info":null}}"#;
        assert_eq!(read(EventFormat::Codex, empty), []);
    }
}

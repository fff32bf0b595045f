//! The output of a session as common events: lines with a bounded length, read by the adapter of the program.
//!
//! Output is not trusted: lines that are no events are text, endless lines are skipped, nothing can fail, and
//! the memory does not grow with the output.

use std::borrow::Cow;

use liza_core::model::{ClientFault, FaultKind, ModelPart, Usage};
use liza_core::text::one_line;
use serde::{Deserialize, Serialize};

use super::event::{ClientEvent, EventReader, UsageReport};
use super::fault::{fault, of_kind};
use super::guard::{Allowance, GuardStop, SessionGuard};
use super::json_line::cut;
use super::log_line::is_aside;
use super::template::Dialect;
use super::usage::SessionUsage;

/// Longer lines are no events; they are skipped without being stored.
const LINE_MAX: usize = 1 << 20;

/// After this many lines without an event, the output is not what the adapter expects.
const PLAIN_LINES: u64 = 50;

/// The maximum length of the name of a conversation.
const CONVERSATION_MAX: usize = 80;

const QUOTE_MAX: usize = 300;

/// The end of a session, as far as its program reported it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientOutcome {
    /// The error that it reported and did not recover from.
    pub fault: Option<ClientFault>,
    /// Its last words, on one line.
    pub said: Option<String>,
    /// Its name for the conversation.
    #[serde(default)]
    pub conversation: Option<String>,
    #[serde(default)]
    pub model: ModelPart,
}

pub struct EventStream {
    dialect: Dialect,
    reader: Option<Box<dyn EventReader>>,
    line: Vec<u8>,
    /// True if the rest of the line is skipped.
    too_long: bool,
    /// The number of lines so far, until the first event.
    plain_lines: u64,
    /// True once there was an event.
    began: bool,
    used: SessionUsage,
    /// The usage of the conversation by earlier sessions.
    before: Usage,
    /// True once an event has had words of the model.
    has_words: bool,
    /// True once the model has called a tool.
    used_tools: bool,
    said: Option<String>,
    /// The last line that was printed beside the events.
    printed: Option<String>,
    fault: Option<ClientFault>,
    conversation: Option<String>,
    /// The guard of a session that runs, and the reason why the session must end.
    guard: Option<SessionGuard>,
    stop: Option<GuardStop>,
}

/// True for a possible name of a conversation: it becomes a word of a command line, and part of a file name.
fn is_conversation(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=CONVERSATION_MAX).contains(&name.len()) && !name.starts_with('-') && name.chars().all(is_plain)
}

impl EventStream {
    pub fn new(dialect: impl Into<Dialect>) -> Self {
        let dialect = dialect.into();
        Self {
            reader: dialect.format.reader(),
            dialect,
            line: Vec::new(),
            too_long: false,
            plain_lines: 0,
            began: false,
            used: SessionUsage::default(),
            before: Usage::default(),
            has_words: false,
            used_tools: false,
            said: None,
            printed: None,
            fault: None,
            conversation: None,
            guard: None,
            stop: None,
        }
    }

    /// The stream of a session that runs, and must end when it has used this much.
    pub fn guarded(dialect: Dialect, allowance: Allowance) -> Self {
        let before = allowance.before.clone();
        Self { guard: Some(SessionGuard::new(allowance)), before, ..Self::new(dialect) }
    }

    /// The reason why the session must end.
    pub fn guard_stop(&self) -> Option<GuardStop> {
        self.stop
    }

    pub fn conversation(&self) -> Option<&str> {
        self.conversation.as_deref()
    }

    pub fn used(&self) -> &SessionUsage {
        &self.used
    }

    pub fn fault(&self) -> Option<&ClientFault> {
        self.fault.as_ref()
    }

    pub fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(&ClientEvent)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
            let (piece, after) = rest.split_at(end);
            rest = after;
            let room = LINE_MAX - self.line.len().min(LINE_MAX);
            self.too_long |= piece.len() > room;
            if self.too_long {
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                self.end_line(each);
            }
        }
    }

    /// Reads a line that is not part of the output, even in the middle of one that is.
    pub fn insert(&mut self, line: &str) {
        let events = self.reader.as_mut().and_then(|reader| reader.read(line)).unwrap_or_default();
        events.iter().for_each(|event| self.take(event, &mut |_| {}));
    }

    /// Reads the last line, which may have no line break.
    pub fn finish(&mut self, each: &mut dyn FnMut(&ClientEvent)) {
        self.end_line(each);
        if self.dialect.format.expects_events() && !self.began && (1..PLAIN_LINES).contains(&self.plain_lines)
        {
            each(&unexpected());
        }
    }

    /// The outcome of the session; `code` is the exit code if it ended by itself.
    pub fn outcome(&self, code: Option<i32>) -> ClientOutcome {
        let failed = code.filter(|code| *code != 0);
        let said = || self.said.clone().unwrap_or_default();
        let of_exit = || {
            let kind = self.dialect.of_exit(failed?)?;
            Some(of_kind(kind, &said()))
        };
        let by_entry = || {
            let said = self.last_said(failed.is_some()).filter(|_| failed.is_some())?;
            Some(of_kind(self.dialect.of_words(&said)?, &said))
        };
        // Without a model, a program speaks for itself.
        let model = self.model_part();
        let own_words = || {
            let words = self.last_said(true).filter(|_| model == ModelPart::Silent && code.is_some());
            words.map(|words| fault(None, &words)).filter(|fault| fault.kind != FaultKind::Crashed)
        };
        let fault = self.fault.clone().or_else(of_exit).or_else(by_entry).or_else(own_words);
        let words = fault.as_ref().map(|fault| fault.message.clone()).filter(|words| !words.is_empty());
        let said = words.or_else(|| self.last_said(failed.is_some())).map(|said| one_line(&said, QUOTE_MAX));
        ClientOutcome { fault, said, conversation: self.conversation.clone(), model }
    }

    /// A program that reports no tokens at its end has printed an error instead of a model's answer.
    fn model_part(&self) -> ModelPart {
        let Usage { input, output, cached, .. } = self.used.usage;
        let has_words = self.has_words && self.used.events == 0;
        match () {
            () if !self.dialect.format.expects_events() => ModelPart::Unknown,
            () if self.used_tools => ModelPart::Tools,
            () if has_words || input.max(output).max(cached) > 0 => ModelPart::Words,
            () => ModelPart::Silent,
        }
    }

    /// The last words of the agent. A failed program may say why beside its events; its log and the warnings
    /// of one that ends normally count only if there is nothing else.
    fn last_said(&self, failed: bool) -> Option<String> {
        let printed = self.printed.as_ref();
        let why = printed.filter(|text| failed && !is_aside(text));
        why.or(self.said.as_ref()).or(printed).cloned()
    }

    fn end_line(&mut self, each: &mut dyn FnMut(&ClientEvent)) {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::take(&mut self.too_long) {
            self.read_line(&line, each);
        }
        // Its memory serves the next line.
        line.clear();
        self.line = line;
    }

    fn read_line(&mut self, line: &[u8], each: &mut dyn FnMut(&ClientEvent)) {
        let text = String::from_utf8_lossy(line);
        // Text that is not UTF-8 was changed, so it is no event either.
        let valid = matches!(text, Cow::Borrowed(_));
        let text = text.trim_end_matches(['\n', '\r']);
        let events = self.reader.as_mut().filter(|_| valid).and_then(|reader| reader.read(text));
        if let Some(events) = events {
            self.began = true;
            self.has_words |= events.iter().any(|event| matches!(event, ClientEvent::Text(_)));
            events.into_iter().for_each(|event| self.take(&self.of_own_kind(event), each));
        } else if !text.trim().is_empty() {
            self.take_plain(text, each);
        }
    }

    /// An error whose words the program's entry names has the kind that is named there.
    fn of_own_kind(&self, event: ClientEvent) -> ClientEvent {
        let ClientEvent::Fault(fault) = &event else { return event };
        let kind = self.dialect.of_words(&fault.message);
        kind.map(|kind| ClientEvent::Fault(of_kind(kind, &fault.message))).unwrap_or(event)
    }

    fn take_plain(&mut self, text: &str, each: &mut dyn FnMut(&ClientEvent)) {
        self.plain_lines = self.plain_lines.saturating_add(1);
        let event = ClientEvent::Text(cut(text));
        let (expects_events, is_aside) = (self.dialect.format.expects_events(), is_aside(text));
        if expects_events && self.began {
            if self.printed.is_none() || !is_aside {
                self.printed = Some(cut(text));
            }
            each(&event);
        } else if is_aside && self.said.is_some() {
            each(&event);
        } else {
            self.take(&event, each);
        }
        if expects_events && !self.began && self.plain_lines == PLAIN_LINES {
            each(&unexpected());
        }
    }

    fn take(&mut self, event: &ClientEvent, each: &mut dyn FnMut(&ClientEvent)) {
        match event {
            ClientEvent::Used(report) => {
                // The model has answered since, unless these are the figures at the end.
                self.fault = self.fault.take().filter(|_| report.is_total);
                self.count(report);
            }
            ClientEvent::Tool(..) => (self.fault, self.used_tools) = (None, true),
            ClientEvent::Text(text) => self.said = Some(text.clone()),
            ClientEvent::Fault(fault) => self.fault = Some(fault.clone()),
            ClientEvent::Started(name) if is_conversation(name) => self.conversation = Some(name.clone()),
            ClientEvent::Started(_)
            | ClientEvent::Answered(_)
            | ClientEvent::Compacted
            | ClientEvent::BudgetReached
            | ClientEvent::Note(_)
            | ClientEvent::Warning(_)
            | ClientEvent::Ended => {}
        }
        let seen = self.guard.as_mut().and_then(|guard| guard.see(event, &self.used));
        self.stop = self.stop.or(seen);
        each(event);
    }

    fn count(&mut self, report: &UsageReport) {
        let usage = match report.is_total {
            true => self.dialect.format.own_part(&report.usage, &self.before),
            false => report.usage.clone(),
        };
        self.used.count(&UsageReport { usage, ..report.clone() });
    }
}

fn unexpected() -> ClientEvent {
    let text = "the output has an unknown format and is read as text; errors and usage may be missing";
    ClientEvent::Note(text.to_owned())
}

#[cfg(test)]
pub mod tests {
    use liza_core::model::Usage;

    use super::*;
    use crate::providers::event::{EventFormat, ToolAnswer, ToolExchange};

    /// All events of an output but the answers of tools.
    pub fn read(format: EventFormat, output: &str) -> Vec<ClientEvent> {
        let (mut stream, mut events) = (EventStream::new(format), Vec::new());
        stream.push(output.as_bytes(), &mut |event| events.push(event.clone()));
        stream.finish(&mut |event| events.push(event.clone()));
        events.retain(|event| !matches!(event, ClientEvent::Answered(_)));
        events
    }

    pub(crate) fn answers(format: EventFormat, output: &str) -> Vec<ToolAnswer> {
        let (mut stream, mut found) = (EventStream::new(format), Vec::new());
        stream.push(format!("{output}\n").as_bytes(), &mut |event| {
            if let ClientEvent::Answered(answer) = event {
                found.push(answer.clone());
            }
        });
        found
    }

    pub(crate) fn exchanges(format: EventFormat, output: &str) -> Vec<ToolExchange> {
        answers(format, output).into_iter().filter_map(|answer| answer.exchange).collect()
    }

    fn whole(dialect: impl Into<Dialect>, output: &[u8]) -> EventStream {
        let mut stream = EventStream::new(dialect);
        stream.push(output, &mut |_| {});
        stream.finish(&mut |_| {});
        stream
    }

    pub fn used(format: EventFormat, output: &str) -> SessionUsage {
        whole(format, output.as_bytes()).used
    }

    pub fn faults(format: EventFormat, output: &str) -> Vec<ClientFault> {
        let fault = |event| if let ClientEvent::Fault(fault) = event { Some(fault) } else { None };
        read(format, output).into_iter().filter_map(fault).collect()
    }

    pub fn outcome(dialect: impl Into<Dialect>, output: &str, code: Option<i32>) -> ClientOutcome {
        whole(dialect, output.as_bytes()).outcome(code)
    }

    const GOOD: &str =
        r#"{"type":"usage","input":100,"output":20,"cached":50,"cost_usd":0.25,"context_percent":34.9}"#;

    fn once() -> SessionUsage {
        let usage = Usage { input: 100, output: 20, cached: 50, cost_usd: 0.25, ..Usage::default() };
        SessionUsage { usage, context_percent: Some(34), events: 1 }
    }

    fn rehearsal(output: &[u8]) -> SessionUsage {
        whole(EventFormat::Rehearsal, output).used
    }

    /// Covers: AG-14
    #[test]
    fn events_add_up_and_the_last_context_counts() {
        assert_eq!(rehearsal(format!("Mode: Liza [Coder]\n{GOOD}\n").as_bytes()), once());
        let more = r#"{"type":"usage","output":1,"context_percent":91}"#;
        let silent = r#"{"type":"usage","output":1}"#;
        let all = rehearsal(format!("{GOOD}\nwords\n{more}\n{silent}").as_bytes());
        assert_eq!((all.usage.input, all.usage.output, all.events), (100, 22, 3), "the last line has no end");
        assert_eq!(
            (all.context_percent, all.should_hand_over(), once().should_hand_over()),
            (Some(91), true, false)
        );
    }

    /// Covers: AG-14
    #[test]
    fn output_in_pieces_of_any_size_reads_the_same() {
        let text = format!("x\n{GOOD}\ny");
        for size in 1..text.len() {
            let mut stream = EventStream::new(EventFormat::Rehearsal);
            text.as_bytes().chunks(size).for_each(|chunk| stream.push(chunk, &mut |_| {}));
            stream.finish(&mut |_| {});
            assert_eq!(stream.used, once(), "{size}");
        }
    }

    /// Covers: AG-14
    #[test]
    fn invalid_lines_count_for_nothing() {
        let deep = format!(r#"{{"type":"usage","x":{}"#, "[".repeat(100_000));
        let lines = [
            r#"{"type":"usage","input":-1}"#,
            r#"{"type":"usage","input":1.5}"#,
            r#"{"type":"usage","input":99999999999999999999999}"#,
            r#"{"type":"usage","input":1000000000001}"#,
            r#"{"type":"usage","output":"7"}"#,
            r#"{"type":"usage","input":1,"cost_usd":-0.01}"#,
            r#"{"type":"usage","input":1,"cost_usd":1e999}"#,
            r#"{"type":"usage","input":1,"cost_usd":1e300}"#,
            r#"{"type":"usage","input":1,"cost_usd":NaN}"#,
            r#"{"type":"usage","input":1,"context_percent":101}"#,
            r#"{"type":"usage","input":1,"context_percent":-3}"#,
            r#"{"type":"usage","input":1,"input":2}"#,
            r#"{"type":"usage","input":1"#,
            r#"{"type":"says","input":1}"#,
            r#"{"input":1}"#,
            r#"  {"type":"usage","input":1}"#,
            r#"he says {"type":"usage","input":1}"#,
            r#"[{"type":"usage","input":1}]"#,
            "{}",
            "{",
            "\u{0}\u{1b}[31m",
            &deep,
        ];
        for line in lines {
            let seen = rehearsal(format!("{line}\n").as_bytes());
            assert_eq!(seen, SessionUsage::default(), "{}", line.chars().take(80).collect::<String>());
            assert_eq!(
                rehearsal(format!("{line}\n{GOOD}\n").as_bytes()),
                once(),
                "and does not stop the rest"
            );
        }
        assert_eq!(rehearsal(b"{\"type\":\"usage\",\"input\":1,\"x\":\"\xff\"}\n"), SessionUsage::default());
    }

    /// Covers: AG-14, SE-01
    #[test]
    fn a_gigabyte_without_a_line_break_is_not_stored() {
        for format in [EventFormat::None, EventFormat::Rehearsal, EventFormat::Claude] {
            let mut stream = EventStream::new(format);
            let chunk = vec![b'{'; 1 << 20];
            for _ in 0..1024 {
                stream.push(&chunk, &mut |_| {});
                assert!(stream.line.capacity() <= 2 * LINE_MAX, "{}", stream.line.capacity());
            }
            assert_eq!(stream.line.capacity(), 0, "what is skipped takes no memory");
            stream.push(format!("\n{GOOD}\n").as_bytes(), &mut |_| {});
            assert_eq!(stream.used.events, u64::from(format == EventFormat::Rehearsal));
        }
    }

    /// Covers: SE-01
    #[test]
    fn output_of_another_format_is_read_as_text_with_a_note() {
        let formats = [
            EventFormat::Claude,
            EventFormat::Codex,
            EventFormat::Gemini,
            EventFormat::Goose,
            EventFormat::Opencode,
            EventFormat::Vibe,
        ];
        for format in formats {
            let seen = read(format, "Hello\n{\"kind\":\"new\"}\n{\"broken\n\u{1b}[31mred\n");
            let text = |text: &str| ClientEvent::Text(text.to_owned());
            let expected =
                [text("Hello"), text("{\"kind\":\"new\"}"), text("{\"broken"), text("\u{1b}[31mred")];
            assert_eq!(seen.get(..4), Some(expected.as_slice()), "{format:?}");
            assert_eq!(seen.get(4..), Some([unexpected()].as_slice()), "{format:?}");
            let long = read(format, &"words\n".repeat(200));
            assert_eq!(long.iter().filter(|event| **event == unexpected()).count(), 1, "{format:?}");
            assert_eq!(read(format, ""), [], "{format:?}");
        }
        assert_eq!(read(EventFormat::None, "Hello\n"), [ClientEvent::Text("Hello".to_owned())]);
    }

    /// Covers: SE-01
    #[test]
    fn words_before_the_first_event_are_the_programs_own() {
        let refused = "Invalid API key · Please run /login\n";
        let end = outcome(EventFormat::Claude, refused, Some(1));
        assert_eq!(end.fault.map(|fault| fault.kind), Some(FaultKind::Auth));
        assert_eq!(end.said.as_deref(), Some("Invalid API key · Please run /login"));
        let quiet = outcome(EventFormat::Claude, refused, Some(0));
        assert_eq!(quiet.fault.map(|fault| fault.kind), Some(FaultKind::Auth), "whatever its exit code");
        assert_eq!(outcome(EventFormat::Claude, refused, None).fault, None, "it was stopped");
        assert_eq!(
            outcome(EventFormat::None, refused, Some(1)).fault,
            None,
            "ordinary output is not searched"
        );
        let said = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Hello"}]}}"#;
        let later = format!("{said}\n{refused}");
        assert_eq!(outcome(EventFormat::Claude, &later, Some(1)).fault, None, "it may quote the model");
    }

    /// Covers: AX-30
    #[test]
    fn a_session_without_tokens_or_events_has_no_model() {
        let part = |format, output: &str| outcome(format, output, Some(0)).model;
        let words =
            r#"{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"Hi"}]}}"#;
        let complete = |tokens: u32| format!("{words}\n{{\"type\":\"complete\",\"total_tokens\":{tokens}}}");
        assert_eq!(part(EventFormat::Goose, ""), ModelPart::Silent);
        assert_eq!(part(EventFormat::Goose, "garbage\n"), ModelPart::Silent);
        assert_eq!(part(EventFormat::Goose, &complete(0)), ModelPart::Silent);
        assert_eq!(part(EventFormat::Goose, &complete(9)), ModelPart::Words);
        assert_eq!(part(EventFormat::Goose, words), ModelPart::Words, "it was stopped before its figures");
        let tool = r#"{"type":"item.started","item":{"type":"command_execution","command":"ls"}}"#;
        assert_eq!(part(EventFormat::Codex, tool), ModelPart::Tools);
        assert_eq!(part(EventFormat::None, ""), ModelPart::Unknown);
        let banner = "starting session | provider: openai model: m";
        let lost = words.replace("Hi", "Network error: Could not connect to the provider");
        let lost = outcome(EventFormat::Goose, &format!("{banner}\n{lost}\n"), Some(0));
        assert_eq!(lost.fault.map(|fault| fault.kind), Some(FaultKind::Overloaded));
    }

    /// Covers: AX-31
    #[test]
    fn stack_traces_and_banners_are_never_the_reason() {
        let node = "/x/cli.js:12\n    throw e;\n    ^\n\nError: Cannot find module 'x'\n    at load (node:1:2) {\n  \
                    code: 'NO'\n}\n\nNode.js v22.1.0\n";
        let python = "Traceback (most recent call last):\n  File \"x\", line 1\nKeyError: 'y'\n";
        let indented = "    __( O)>  new session\n     L L     goose is ready\n\n  error: no such model\n";
        let goose =
            "Error: no such model\nstarting session | provider: a model: m\n    L L  goose is ready\n";
        let cases = [
            (EventFormat::Claude, node, "Error: Cannot find module 'x'"),
            (EventFormat::Vibe, python, "KeyError: 'y'"),
            (EventFormat::Goose, goose, "Error: no such model"),
            (EventFormat::Goose, indented, "error: no such model"),
        ];
        for (format, output, expected) in cases {
            assert_eq!(outcome(format, output, Some(1)).said.as_deref(), Some(expected));
        }
        let begun = format!("{}\n{node}", r#"{"type":"system","subtype":"init"}"#);
        let said = outcome(EventFormat::Claude, &begun, Some(1)).said;
        assert_eq!(said.as_deref(), Some("Error: Cannot find module 'x'"));
    }

    /// Covers: AX-32
    #[test]
    fn a_resumed_conversation_counts_its_difference() {
        let before = Usage { input: 300, output: 20, cached: 50, cost_usd: 0.4, ..Usage::default() };
        let resumed = |format, output: &str| {
            let allowance = Allowance { before: before.clone(), ..Allowance::default() };
            let mut stream = EventStream::guarded(Dialect::from(format), allowance);
            stream.push(format!("{output}\n").as_bytes(), &mut |_| {});
            stream.used.usage
        };
        let turn = r#"{"type":"turn.completed","usage":{"input_tokens":900,"cached_input_tokens":250,"output_tokens":30}}"#;
        let Usage { input, output, cached, .. } = resumed(EventFormat::Codex, turn);
        assert_eq!((input, output, cached), (350, 10, 200));
        let result =
            r#"{"type":"result","usage":{"input_tokens":90,"output_tokens":7},"total_cost_usd":0.5}"#;
        let own = resumed(EventFormat::Claude, result);
        assert_eq!((own.input, own.output, format!("{:.2}", own.cost_usd)), (90, 7, "0.10".to_owned()));
    }

    /// Covers: SE-01
    #[test]
    fn an_error_that_the_program_recovers_from_is_no_outcome() {
        let error = r#"{"type":"error","message":"You've hit your usage limit"}"#;
        let works = r#"{"type":"item.started","item":{"type":"command_execution","command":"ls"}}"#;
        let end = r#"{"type":"turn.completed","usage":{"input_tokens":1}}"#;
        let kind = |lines: &[&str]| {
            outcome(EventFormat::Codex, &lines.join("\n"), Some(0)).fault.map(|fault| fault.kind)
        };
        assert_eq!(kind(&[error, end]), Some(FaultKind::Quota));
        assert_eq!(kind(&[error, works, end]), None);
    }

    /// Covers: SE-05, AC-01
    #[test]
    fn a_log_line_beside_the_events_is_not_what_the_agent_said() {
        let said = r#"{"type":"item.completed","item":{"type":"agent_message","text":"Done."}}"#;
        let log = "2026-11-16T19:49:47.453076Z ERROR codex_core::session: failed to record";
        let last = |output: &str, code| outcome(EventFormat::Codex, output, Some(code)).said.unwrap();
        assert_eq!(last(&format!("{said}\n{log}\n"), 0), "Done.");
        assert_eq!(last(&format!("{said}\n{log}\n"), 1), "Done.");
        assert_eq!(last(&format!("{said}\na warning\n"), 0), "Done.");
        assert_eq!(last(&format!("{said}\nthread 'main' panicked\n{log}\n"), 1), "thread 'main' panicked");
        assert_eq!(last(&format!("{log}\n"), 1), log, "if there is nothing else");
    }

    /// Covers: UI-03
    #[test]
    fn the_answer_of_a_command_is_not_what_the_agent_said() {
        let submits =
            "writes a.sh\n$ liza submit-for-review t 1234\n  t is ready for review; end your turn now\n";
        for format in [EventFormat::Rehearsal, EventFormat::None] {
            assert_eq!(outcome(format, submits, Some(42)).said.as_deref(), Some("writes a.sh"));
        }
    }

    /// Covers: AX-34
    #[test]
    fn an_entry_names_the_errors_of_its_program() {
        let faults = r#"{"auth": {"words": ["Badge Refused"]}, "quota": {"exits": [75]}}"#;
        let config = serde_json::from_str(&format!(r#"{{"providers": {{"own": {{"faults": {faults}}}}}}}"#));
        let provider =
            crate::providers::Provider::choose(&config.unwrap(), liza_core::model::Role::Coder, Some("own"));
        let dialect = provider.unwrap().dialect();
        let kind = |dialect: &Dialect, said: &str, code: i32| {
            outcome(dialect.clone(), said, Some(code)).fault.map(|fault| fault.kind)
        };
        assert_eq!(kind(&dialect, "your badge refused\n", 1), Some(FaultKind::Auth));
        assert_eq!(kind(&dialect, "your badge refused\n", 0), None, "it has ended normally");
        assert_eq!(kind(&dialect, "nothing\n", 75), Some(FaultKind::Quota));
        assert_eq!(kind(&dialect, "nothing\n", 1), None);
        let codex = Dialect { format: EventFormat::Codex, ..dialect };
        let failed = r#"{"type":"turn.failed","error":{"message":"status 500: Badge refused"}}"#;
        assert_eq!(kind(&codex, failed, 1), Some(FaultKind::Auth), "before the words of all programs");
    }
}

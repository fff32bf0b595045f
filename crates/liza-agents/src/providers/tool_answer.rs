//! The answer of a tool, folded for people: its last lines, or the sentence with which Liza refused a
//! command. Bounded.

use liza_core::text::{ERROR_START, HINT_START};
use serde::Deserialize;
use serde_json::Value;

use super::event::{ToolAnswer, ToolEnd};

/// The number of lines that are kept.
const LINES: usize = 4;

/// The longest line that is kept, in characters.
const LINE_MAX: usize = 300;

/// The first words and the last line of a refusal by the parser of the command line.
const USAGE: (&str, &str) = ("error: ", "For more information, try '--help'.");

/// The part of an answer that is shown.
pub(super) fn folded(end: ToolEnd, answer: &[Option<&Value>], runs_liza: bool) -> ToolAnswer {
    let mut text = String::new();
    answer.iter().flatten().for_each(|part| add_text(part, &mut text));
    let lines = text.split(['\n', '\r']).map(str::trim_end);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let refusal = runs_liza.then(|| refusal(&lines, end)).flatten();
    let refused = refusal.is_some();
    let last = || lines.iter().rev().take(LINES).rev().map(|line| (*line).to_owned()).collect();
    let kept: Vec<String> = refusal.unwrap_or_else(last);
    let folded = lines.len().saturating_sub(kept.len());
    let cut = |line: String| line.chars().take(LINE_MAX).collect();
    ToolAnswer { exchange: None, end, lines: kept.into_iter().map(cut).collect(), folded, refused }
}

/// A call runs this program if a word of it is its name or its path.
pub(super) fn runs_liza(input: &str) -> bool {
    let is_end = |c: char| !(c.is_alphanumeric() || "/._-".contains(c));
    input.split(is_end).any(|word| word.rsplit('/').next().is_some_and(|name| name.starts_with("liza")))
}

/// The texts of an answer, whatever its program puts around them.
fn add_text(part: &Value, text: &mut String) {
    match part {
        Value::String(said) => {
            text.push_str(said);
            text.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| add_text(item, text)),
        Value::Object(fields) => {
            let said = ["text", "content", "output", "message"].iter().find_map(|name| fields.get(*name));
            said.into_iter().for_each(|said| add_text(said, text));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The answer of a command of Liza for programs.
#[derive(Deserialize)]
struct CommandAnswer {
    ok: bool,
    error: CommandFailure,
}

#[derive(Deserialize)]
struct CommandFailure {
    message: String,
    hint: Option<String>,
}

/// The lines with which Liza refused a command. If another one ran after it, so that its failure is not
/// known, it is recognized by its hint: a reminder of Liza has none.
fn refusal(lines: &[&str], end: ToolEnd) -> Option<Vec<String>> {
    let from_json = |line: &&str| {
        let answer: CommandAnswer = line.starts_with('{').then(|| serde_json::from_str(line).ok())??;
        let hint = answer.error.hint.map(|hint| format!("{HINT_START}{hint}"));
        (!answer.ok).then(|| std::iter::once(answer.error.message).chain(hint).collect())
    };
    let failed = end.is_failure();
    let is_usage = failed && lines.last() == Some(&USAGE.1);
    let begins = |place: &usize| {
        let starts = |at: usize, start: &str| lines.get(at).is_some_and(|line| line.starts_with(start));
        let is_error = starts(*place, ERROR_START) && (failed || starts(place + 1, HINT_START));
        is_error || (is_usage && starts(*place, USAGE.0))
    };
    lines.iter().rev().find_map(from_json).or_else(|| {
        let place = (0..lines.len()).rev().find(begins)?;
        Some(lines.iter().skip(place).take(2).map(|line| (*line).to_owned()).collect())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::event::EventFormat;
    use super::super::stream::tests::answers;
    use super::*;

    const CALL: &str = "cd /w && /opt/bin/liza submit-verdict t1 APPROVED";
    const SAID: &str = "liza: t1 has no submission\n  hint: liza show t1";

    /// A call and its answer, as each program prints them: a command that failed.
    fn printed(format: EventFormat, command: &str, said: &str) -> String {
        let lines = match format {
            EventFormat::Claude => vec![
                json!({"type": "assistant", "message": {"id": "m", "content": [
                    {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": command}}]}}),
                json!({"type": "user", "message": {"content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": format!("Exit code 1\n{said}"), "is_error": true}]}}),
            ],
            EventFormat::Codex => vec![
                json!({"type": "item.started", "item": {"id": "c", "type": "command_execution", "command": command}}),
                json!({"type": "item.completed", "item": {"id": "c", "type": "command_execution", "command": command,
                    "aggregated_output": said, "exit_code": 1, "status": "failed"}}),
            ],
            EventFormat::Gemini => vec![
                json!({"type": "tool_use", "tool_id": "c", "tool_name": "run_shell_command", "parameters": {"command": command}}),
                json!({"type": "tool_result", "tool_id": "c", "status": "success", "output": said}),
            ],
            EventFormat::Goose => vec![
                json!({"type": "message", "message": {"role": "assistant", "content": [{"type": "toolRequest", "id": "c",
                    "toolCall": {"status": "success", "value": {"name": "shell", "arguments": {"command": command}}}}]}}),
                json!({"type": "message", "message": {"role": "user", "content": [{"type": "toolResponse", "id": "c",
                    "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": said}], "isError": true,
                        "structuredContent": {"stdout": "", "stderr": said, "exit_code": 1}}}}]}}),
            ],
            EventFormat::Opencode => {
                vec![json!({"type": "tool_use", "sessionID": "s", "part": {"tool": "bash", "state":
                {"status": "completed", "input": {"command": command}, "output": said, "metadata": {"exit": 1}}}})]
            }
            EventFormat::Vibe => vec![
                json!({"role": "assistant", "tool_calls": [{"id": "c", "function":
                    {"name": "bash", "arguments": json!({"command": command}).to_string()}}]}),
                json!({"role": "tool", "tool_call_id": "c", "content": said}),
            ],
            EventFormat::Copilot => vec![
                json!({"type": "tool.execution_start", "data": {"toolCallId": "c", "toolName": "bash", "arguments": {"command": command}}}),
                json!({"type": "tool.execution_complete", "data": {"toolCallId": "c", "shellExecution": {"exitCode": 1},
                    "success": true, "result": {"content": said}}}),
            ],
            EventFormat::Qwen => {
                let report = format!(
                    "Command: {command}\nDirectory: (root)\nOutput: {said}\nError: (none)\nExit Code: 1\nSignal: (none)"
                );
                let content =
                    json!([{"type": "tool_result", "tool_use_id": "c", "content": report, "is_error": true}]);
                let call = json!([{"type": "tool_use", "id": "c", "name": "run_shell_command", "input": {"command": command}}]);
                vec![
                    json!({"type": "assistant", "message": {"id": "m", "content": call}}),
                    json!({"type": "user", "message": {"content": content}}),
                ]
            }
            EventFormat::None | EventFormat::Rehearsal => Vec::new(),
        };
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn answer(format: EventFormat, command: &str, said: &str) -> ToolAnswer {
        let mut found = answers(format, &printed(format, command, said));
        assert_eq!(found.len(), 1, "{format:?}");
        found.remove(0)
    }

    /// Covers: AX-19
    #[test]
    fn the_answer_of_a_tool_is_its_exit_status_and_its_last_lines() {
        let formats = [
            (EventFormat::Claude, ToolEnd::Exit(1)),
            (EventFormat::Codex, ToolEnd::Exit(1)),
            (EventFormat::Gemini, ToolEnd::Unknown),
            (EventFormat::Goose, ToolEnd::Exit(1)),
            (EventFormat::Opencode, ToolEnd::Exit(1)),
            (EventFormat::Vibe, ToolEnd::Unknown),
            (EventFormat::Copilot, ToolEnd::Exit(1)),
            (EventFormat::Qwen, ToolEnd::Exit(1)),
        ];
        let many: String = (1..=40).map(|number| format!("line {number}\n\n")).collect();
        for (format, end) in formats {
            let seen = answer(format, "make", &many);
            assert_eq!(seen.lines, ["line 37", "line 38", "line 39", "line 40"], "{format:?}");
            assert_eq!((seen.folded, seen.end, seen.refused), (36, end, false), "{format:?}");
            assert!(seen.exchange.is_some_and(|exchange| exchange.answer.is_some()), "{format:?}");
            let refused = answer(format, CALL, SAID);
            assert!(refused.refused, "{format:?}");
            assert_eq!(refused.lines, ["liza: t1 has no submission", "  hint: liza show t1"], "{format:?}");
        }
        let long = answer(EventFormat::Codex, "make", &format!("{}\r100 %", "x".repeat(1 << 19)));
        assert_eq!(
            (long.lines[0].len(), long.lines[1].as_str()),
            (LINE_MAX, "100 %"),
            "what is kept is bounded"
        );
    }

    /// Covers: AX-19
    #[test]
    fn only_what_liza_refuses_is_a_refusal() {
        let json = r#"{"error":{"code":"x","exit":1,"hint":"liza show t1","message":"t1 has no submission"},"ok":false}"#;
        let usage = "error: invalid value 'OK' for '<VERDICT>'\n\nFor more information, try '--help'.";
        let codex = |command: &str, said: &str| answer(EventFormat::Codex, command, said);
        let unknown = |command: &str, said: &str| answer(EventFormat::Gemini, command, said);
        assert_eq!(codex(CALL, json).lines, ["t1 has no submission", "  hint: liza show t1"]);
        assert!(codex(CALL, json).refused && unknown(CALL, json).refused && codex(CALL, usage).refused);
        assert!(codex(CALL, "liza: no").refused, "the command failed");
        assert!(!unknown(CALL, "liza: .liza/PAUSE is present.").refused, "it only reminds");
        assert!(!codex("cargo test", SAID).refused, "no command of Liza");
        assert!(!codex("cargo test && liza show t1", "error: test failed").refused, "another program's");
        let later =
            unknown("liza submit-verdict t1 APPROVED; cat log", &format!("{SAID}\n{}", "x\n".repeat(50)));
        assert!(
            later.refused && later.lines[0] == "liza: t1 has no submission" && later.folded == 50,
            "{later:?}"
        );
        for call in
            ["liza show t", "\"$X/liza\" show t", "liza-submit-verdict.sh t APPROVED", "(liza show t)"]
        {
            assert!(runs_liza(call), "{call}");
        }
        assert!(!runs_liza("cat /home/liza.d/x lizard/y"));
    }
}

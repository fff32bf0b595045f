//! The output of a session: its sentences, its commands, and its usage. Counts the bytes that pass, as a
//! stand-in for tokens. A closed pipe is not an error: the work continues.

use std::cell::Cell;
use std::io::{self, Write as _};

use serde_json::{Value, json};

use crate::playbook::Usage;

const BYTES_PER_TOKEN: u64 = 4;
/// The context window of a rehearsal, in tokens; about that of a model.
const CONTEXT_TOKENS: u64 = 200_000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputFormat {
    #[default]
    Text,
    /// One JSON object per line.
    JsonLines,
}

pub(crate) struct Transcript {
    agent: String,
    format: OutputFormat,
    read_bytes: Cell<u64>,
    written_bytes: Cell<u64>,
    /// The playbook has reported its own figures.
    usage_reported: Cell<bool>,
}

impl Transcript {
    pub(crate) fn new(agent: String, format: OutputFormat, prompt_bytes: usize) -> Self {
        let (written_bytes, usage_reported) = Default::default();
        Self { agent, format, read_bytes: Cell::new(prompt_bytes as u64), written_bytes, usage_reported }
    }

    pub(crate) fn count_read(&self, bytes: usize) {
        self.read_bytes.set(self.read_bytes.get().saturating_add(bytes as u64));
    }

    pub(crate) fn count_written(&self, bytes: usize) {
        self.written_bytes.set(self.written_bytes.get().saturating_add(bytes as u64));
    }

    pub(crate) fn say(&self, text: &str) {
        self.count_written(text.len());
        self.print(text, || json!({"event": "says", "text": text}));
    }

    pub(crate) fn ran(&self, command: &str, code: i32, output: &str) {
        self.count_written(command.len());
        self.count_read(output.len());
        let indented: String = output.lines().map(|line| format!("\n  {line}")).collect();
        let ending = if code == 0 { String::new() } else { format!("\n  exit {code}") };
        self.print(
            &format!("$ {command}{indented}{ending}"),
            || json!({"event": "ran", "command": command, "exit": code, "output": output}),
        );
    }

    fn print(&self, text: &str, event: impl FnOnce() -> Value) {
        let _ = match self.format {
            OutputFormat::Text => writeln!(io::stdout(), "{text}"),
            OutputFormat::JsonLines => {
                let mut event = event();
                event["agent"] = self.agent.as_str().into();
                writeln!(io::stdout(), "{event}")
            }
        };
    }

    /// Prints usage figures, in the one line that supervisors read.
    pub(crate) fn report_usage(&self, usage: &Usage) {
        self.usage_reported.set(true);
        let mut line = json!({
            "type": "usage",
            "agent": self.agent,
            "input": usage.input,
            "output": usage.output,
            "cached": usage.cached,
            "cost_usd": usage.cost_usd,
        });
        if let Some(percent) = usage.context_percent {
            line["context_percent"] = json!(percent);
        }
        let _ = writeln!(io::stdout(), "{line}");
    }

    /// Prints measured usage, unless the playbook has reported its own figures.
    pub(crate) fn report_measured_usage(&self) {
        if self.usage_reported.get() {
            return;
        }
        let tokens = |bytes: &Cell<u64>| bytes.get().div_ceil(BYTES_PER_TOKEN);
        let (input, output) = (tokens(&self.read_bytes), tokens(&self.written_bytes));
        let percent = ((input + output) * 100 / CONTEXT_TOKENS).min(100);
        let context_percent = u32::try_from(percent).ok().map(f64::from);
        self.report_usage(&Usage { input, output, context_percent, ..Usage::default() });
    }
}

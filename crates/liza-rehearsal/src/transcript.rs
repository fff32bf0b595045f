//! The output of a session: its sentences, its commands, and the usage that its playbook reports. No model runs, so nothing is
//! used otherwise. A closed pipe is not an error: the work continues.

use std::io::{self, Write as _};

use serde_json::{Value, json};

use crate::playbook::Usage;

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
}

impl Transcript {
    pub(crate) fn new(agent: String, format: OutputFormat) -> Self {
        Self { agent, format }
    }

    pub(crate) fn say(&self, text: &str) {
        self.print(text, || json!({"event": "says", "text": text}));
    }

    pub(crate) fn ran(&self, command: &str, code: i32, output: &str) {
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
}

//! `liza tail`: what an agent's session does, for a person; live, or the last one.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use liza_core::model::AgentId;
use serde_json::json;

use crate::activity::{describe, format_of_output, newest_output};
use crate::denied::denied_path;
use crate::project::Project;
use crate::providers::event::ClientEvent;
use crate::providers::stream::EventStream;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::{CYAN, DIM, RED, clean, paint};
use crate::cli::ui::output::Reply;

/// Show what an agent's session says and does; follows it while it runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza tail coder-1
  liza tail code-reviewer-1 --last 20
  liza tail planner-1 --no-follow")]
pub(crate) struct Args {
    /// The agent, such as coder-1.
    agent: AgentId,
    /// Begin with the last N lines.
    #[arg(long, short = 'n', value_name = "N")]
    last: Option<usize>,
    /// Print what is there and end.
    #[arg(long)]
    no_follow: bool,
}

impl Args {
    /// Whether it keeps printing.
    pub(crate) fn follows(&self) -> bool {
        !self.no_follow
    }
}

/// How often the output is read again.
const POLL: Duration = Duration::from_millis(300);

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let agent = args.agent;
    let Some(path) = newest_output(&project, agent) else {
        let message = format!("no session of {agent} has printed anything yet");
        return Err(CommandError::refused("no_output", message).hint("liza status lists the agents"));
    };
    let state = project.store().snapshot()?;
    let mut output = Output::open(&path, EventStream::new(format_of_output(&state, agent, &path)))?;
    let mut lines = output.read_new()?;
    let follows = args.follows() && !context.screen.json && is_running(&project, agent);
    if !follows {
        lines.extend(output.finish());
    }
    if let Some(last) = args.last {
        lines.drain(..lines.len().saturating_sub(last));
    }
    if !follows {
        let result = json!({"agent": agent.to_string(), "output": path, "lines": plain(&lines)});
        return Ok(Reply::new(lines.join("\n"), result));
    }
    while context.screen.stream(&lines.join("\n")) {
        // Asked before the last reading, so that what is printed at the end is shown.
        let running = is_running(&project, agent) && newest_output(&project, agent).as_ref() == Some(&path);
        lines = output.read_new()?;
        if !running {
            lines.extend(output.finish());
            let _ = context.screen.stream(&lines.join("\n"));
            break;
        }
        std::thread::sleep(POLL);
    }
    Ok(Reply::already_written())
}

fn is_running(project: &Project, agent: AgentId) -> bool {
    let entry = |state: &liza_core::model::State| {
        state.board.agents.ready().and_then(|agents| agents.get(&agent)).cloned()
    };
    let now = crate::project::now();
    let state = project.state().ok();
    state
        .and_then(|state| entry(&state))
        .is_some_and(|entry| entry.status.is_in_session() && entry.holds(now))
}

fn plain(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| clean(line)).collect()
}

/// A file with a session's output, read as far as it goes.
struct Output {
    file: File,
    stream: EventStream,
    /// Whether the session is confined, as its first line says.
    is_confined: bool,
}

/// How the first line of a confined session's output begins.
const CONFINED: [&str; 2] = ["[liza: confinement enforced", "[liza: confinement partly"];

/// What a person can do about a refused path.
fn hint(path: &str) -> String {
    let what = if path.is_empty() {
        "outside the workspace".to_owned()
    } else {
        format!("outside the workspace: {path}")
    };
    paint(DIM, &format!("  {}; to open it: config.sandbox_writable or config.sandbox_readable", clean(&what)))
}

impl Output {
    fn open(path: &Path, stream: EventStream) -> Result<Self, CommandError> {
        let unreadable =
            |error| CommandError::refused("no_output", format!("cannot read {}: {error}", path.display()));
        Ok(Self { file: File::open(path).map_err(unreadable)?, stream, is_confined: false })
    }

    /// The lines that are new.
    fn read_new(&mut self) -> Result<Vec<String>, CommandError> {
        let mut bytes = Vec::new();
        let read = self.file.read_to_end(&mut bytes);
        read.map_err(|error| CommandError::refused("no_output", format!("cannot read the output: {error}")))?;
        let mut lines = Vec::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.stream.push(line, &mut |event| lines.extend(render(event)));
            let text = String::from_utf8_lossy(line);
            self.is_confined |= CONFINED.iter().any(|start| text.starts_with(start));
            lines.extend(denied_path(&text).filter(|_| self.is_confined).map(hint));
        }
        Ok(lines)
    }

    fn finish(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        self.stream.finish(&mut |event| lines.extend(render(event)));
        lines
    }
}

fn render(event: &ClientEvent) -> Option<String> {
    let text = describe(event)?;
    let text: Vec<String> = text.lines().map(clean).collect();
    let text = text.join("\n");
    Some(match event {
        ClientEvent::Tool(..) => format!("{} {text}", paint(CYAN, "▸")),
        ClientEvent::Note(_) => paint(DIM, &text),
        ClientEvent::Fault(_) => paint(RED, &text),
        ClientEvent::Text(_) | ClientEvent::Started(_) | ClientEvent::Used(_) | ClientEvent::Ended => text,
    })
}

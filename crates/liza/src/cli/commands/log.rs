//! `liza log`: prints the activity log, and follows it with -f.

use std::time::Duration;

use liza_core::model::{AgentId, Refusal, TaskId};
use liza_host::local_time::LocalTime;
use liza_store::LogRecord;
use liza_team::project::Project;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::task_name::{is_known, meant_task};
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::{DIM, cut, pad, paint, style_of, wrap};
use crate::cli::ui::log_text::sentence_by;
use crate::cli::ui::output::Reply;

/// Print the activity log.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza log -n 20
  liza log -f --agent coder-1
  liza log retry-orders --json")]
pub(crate) struct Args {
    /// Keep printing new entries until stopped.
    #[arg(long, short)]
    follow: bool,
    /// Only entries about this task: its ID, or the beginning of it.
    #[arg(value_name = "TASK", conflicts_with = "task")]
    about: Option<TaskId>,
    /// The same as TASK.
    #[arg(long, value_name = "TASK")]
    task: Option<TaskId>,
    /// Only entries by this agent: an agent ID, human or system.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only the last N entries.
    #[arg(long, short = 'n', value_name = "N")]
    last: Option<usize>,
}

impl Args {
    /// True if it goes on until it is stopped.
    pub(crate) fn follows(&self) -> bool {
        self.follow
    }
}

/// The longest wait for a file event before reading anyway: not every file system sends them.
const POLL: Duration = Duration::from_secs(2);

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    check_agent(args.agent.as_deref())?;
    let project = context.project()?;
    let args = Args { task: args.task.or(args.about), about: None, ..args };
    let board = args.task.as_ref().map(|_| project.store().snapshot()).transpose()?.map(|state| state.board);
    let task = match (args.task, &board) {
        (Some(task), Some(board)) => Some(meant_task(board, task)?),
        (task, _) => task,
    };
    let args = Args { task, ..args };
    // Watched before the first read, so that no entry is missed in between.
    let watch = if args.follow { project.store().watch_log().ok() } else { None };
    let mut book = project.store().log_reader();
    let mut entries = wanted(&args, book.read_new()?);
    if let (Some(task), Some(board)) = (&args.task, &board)
        && entries.is_empty()
        && !is_known(board, task)
    {
        return Err(Refusal::UnknownTask { task: task.clone() }.into());
    }
    if let Some(last) = args.last {
        entries.drain(..entries.len().saturating_sub(last));
    }
    if !args.follow {
        let (columns, times) = (context.screen.page_columns(), context.screen.local_time());
        let lines: Vec<String> = entries.iter().flat_map(|entry| lines(entry, columns, &times)).collect();
        let text = if lines.is_empty() { "no entries".to_owned() } else { lines.join("\n") };
        return Ok(Reply::new(text, json!(entries)));
    }
    while print(&entries, context) {
        match &watch {
            Some(watch) => drop(watch.wait(POLL)),
            None => std::thread::sleep(POLL),
        }
        entries = wanted(&args, book.read_new()?);
        if gone(&project) {
            break;
        }
    }
    Ok(Reply::already_written())
}

fn gone(project: &Project) -> bool {
    !project.folder().exists()
}

fn check_agent(agent: Option<&str>) -> Result<(), CommandError> {
    match agent {
        None | Some("human" | "system") => Ok(()),
        Some(id) => id.parse::<AgentId>().map(|_| ()).map_err(CommandError::from),
    }
}

fn wanted(args: &Args, entries: Vec<LogRecord>) -> Vec<LogRecord> {
    let about = |entry: &LogRecord| match &args.task {
        // A write that changed several tasks names them in its detail.
        Some(task) => {
            let mut words = entry.detail.split(|c: char| !(c.is_alphanumeric() || c == '-'));
            entry.task.as_deref() == Some(task.as_str()) || words.any(|word| word == task.as_str())
        }
        None => true,
    };
    let by = |entry: &LogRecord| args.agent.as_ref().is_none_or(|agent| entry.agent == *agent);
    entries.into_iter().filter(|entry| about(entry) && by(entry)).collect()
}

/// Prints entries; false once the reader has closed the output.
fn print(entries: &[LogRecord], context: &Context) -> bool {
    let (columns, times) = (context.screen.page_columns(), context.screen.local_time());
    let shown = |entry: &LogRecord| match context.screen.json {
        true => json!(entry).to_string(),
        false => lines(entry, columns, &times).join("\n"),
    };
    let text: Vec<String> = entries.iter().map(shown).collect();
    context.screen.stream(&text.join("\n"))
}

/// One entry: time and agent at the left; the sentence beside them or, in a narrow terminal, below.
fn lines(entry: &LogRecord, columns: usize, times: &LocalTime) -> Vec<String> {
    let when = times.short(entry.timestamp);
    let who = pad(&cut(&entry.agent, 15), 15);
    let said = sentence_by(&entry.agent, &entry.action, entry.task.as_deref(), &entry.detail);
    let (left, first) = match columns {
        0..70 => (2, vec![format!("{}  {}", paint(DIM, &when), who.trim_end())]),
        _ => (when.len() + 2 + 15 + 2, Vec::new()),
    };
    let wrapped = wrap(&said.whole(), columns.saturating_sub(left).max(10));
    let mut lines = first;
    for (n, line) in wrapped.into_iter().enumerate() {
        let beside =
            if n == 0 && left > 2 { format!("{}  {who}  ", paint(DIM, &when)) } else { " ".repeat(left) };
        lines.push(format!("{beside}{}", paint(style_of(said.tone), &line)));
    }
    lines
}

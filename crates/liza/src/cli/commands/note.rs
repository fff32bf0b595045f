//! `liza note`: the human leaves a note for the agents.

use liza_core::model::{Role, TaskId};
use liza_core::protocol::{NoteWritten, WriteNote};
use liza_core::rules::notes::NoteReader;

use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::task_name::meant_task;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// The most readers that the answer names.
const MOST_READERS: usize = 8;

/// Leave a note for the agents.
///
/// It is in the prompt of every later session that it is for. A session that runs is told with the answer to its next
/// command. The answer says who reads it when; `liza show TASK` says who has read it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza note \"There is a retry helper in src/utils/retry.py\" --for retry-orders
  liza note \"No new dependencies, please\"")]
pub(crate) struct Args {
    /// The note; - reads standard input.
    #[arg(allow_hyphen_values = true)]
    text: Text,
    /// Only for agents that work on this task (its ID, or the beginning of it); default all agents.
    #[arg(long = "for", value_name = "TASK")]
    to: Option<TaskId>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let to = match args.to {
        Some(task) => Some(meant_task(&project.store().snapshot()?.board, task)?),
        None => None,
    };
    let command = WriteNote { message: args.text.read(context)?, to };
    context.run_in(&project, command, in_words)
}

/// The readers of the note, and the time at which each reads it.
fn in_words(written: &NoteWritten) -> String {
    let task = written.to.as_ref().map_or("a task", TaskId::as_str);
    let reading = |reader: &NoteReader| match reader {
        NoteReader::InSession(agent) => format!("{agent} with the answer to its next command"),
        NoteReader::Next(agent) => match agent.role() {
            Role::Coder => format!("{agent} in its next session"),
            Role::CodeReviewer => format!("{agent} in its next review"),
            Role::Planner => format!("{agent} when it plans next"),
        },
        NoteReader::NextOf(Role::Coder) => format!("the coder that takes {task}"),
        NoteReader::NextOf(Role::CodeReviewer) => format!("the code reviewer that takes {task}"),
        NoteReader::NextOf(Role::Planner) => "the planner when it plans next".to_owned(),
    };
    let mut readers: Vec<String> = written.readers.iter().take(MOST_READERS).map(reading).collect();
    if readers.is_empty() {
        return format!("note added, but no agent reads it: no session on {task} follows");
    }
    let more = written.readers.len().saturating_sub(MOST_READERS);
    readers.extend((more > 0).then(|| format!("{more} more")));
    format!("note added; it is read by {}", readers.join(", "))
}

//! `liza mark-blocked`: a task cannot continue without a decision.

use liza_core::model::TaskId;
use liza_core::protocol::MarkBlocked;

use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Block a task that cannot continue without a decision.
///
/// A coder gives a reason and 1 to 3 questions whose answers would unblock the task; this wakes the planner. A person
/// may block any open task, to have it planned again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza mark-blocked retry-orders --reason \"the spec does not cover partial failures\" \\
    --question \"Are partial results returned?\" --attempted \"searched src/api for a precedent\"")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// What exactly blocks the task.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Option<Text>,
    /// A question whose answer would unblock it; give 1 to 3.
    #[arg(long = "question", value_name = "TEXT", allow_hyphen_values = true)]
    questions: Vec<Text>,
    /// What you have tried; repeatable.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    attempted: Vec<Text>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let name = args.task.clone();
    let command = MarkBlocked {
        task: args.task,
        reason: Text::read_some(args.reason, context)?.unwrap_or_default(),
        questions: Text::read_all(args.questions, context)?,
        attempted: Text::read_all(args.attempted, context)?,
    };
    context.run(command, |_| {
        format!("{name} is BLOCKED; the planner decides: unblock-task, supersede-task or abandon-task")
    })
}

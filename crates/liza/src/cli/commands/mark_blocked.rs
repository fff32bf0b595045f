//! `liza mark-blocked`: a task cannot go on without a decision.

use liza_core::model::TaskId;
use liza_core::protocol::MarkBlocked;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::input::Text;
use crate::cli::ui::output::Reply;

/// Say that a task cannot go on without a decision.
///
/// A coder gives a reason and 1 to 3 questions that would unblock it; the planner is woken. A person may block any
/// open task, to have it planned anew.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza mark-blocked retry-orders --reason \"the spec says nothing about partial failures\" \\
    --question \"Are partial results returned?\" --attempted \"looked for a precedent in src/api\"")]
pub(crate) struct Args {
    /// Which task.
    task: TaskId,
    /// What exactly is in the way.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Option<Text>,
    /// A question whose answer would unblock it; 1 to 3 times.
    #[arg(long = "question", value_name = "TEXT", allow_hyphen_values = true)]
    questions: Vec<Text>,
    /// What you have tried; may be repeated.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    attempted: Vec<Text>,
}

/// Runs it.
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

//! `liza release-claim`: the human releases a claim.

use clap::ValueEnum;
use liza_core::model::{Status, TaskId};
use liza_core::protocol::{ClaimRole, ReleaseClaim};

use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Release the claim of an agent that is gone or stuck.
///
/// If a coder's claim is released, the task is UNCLAIMED again, and unmerged work is kept on a branch rescue/TASK-N. If a
/// code reviewer's claim is released, the task waits for another code reviewer.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza release-claim retry-orders
  liza release-claim retry-orders --role reviewer --force --reason \"the session hangs\"")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// Whose claim.
    #[arg(long, value_enum, default_value_t)]
    role: Whose,
    /// Release it even if its lease has not expired.
    #[arg(long)]
    force: bool,
    /// Why it is released.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Option<Text>,
}

/// Whose claim.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Whose {
    /// The coder's.
    Coder,
    /// The code reviewer's.
    #[value(aliases = ["code-reviewer", "code_reviewer"])]
    Reviewer,
    /// Either of them.
    #[default]
    Both,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let role = match args.role {
        Whose::Coder => ClaimRole::Coder,
        Whose::Reviewer => ClaimRole::Reviewer,
        Whose::Both => ClaimRole::Both,
    };
    let name = args.task.clone();
    let reason = Text::read_some(args.reason, context)?;
    let command = ReleaseClaim { task: args.task, role, force: args.force, reason };
    context.run(command, |reply| match reply.status {
        Some(Status::ReadyForReview) => format!("{name} is ready for another code reviewer"),
        _ => format!("{name} is UNCLAIMED, ready for another coder"),
    })
}

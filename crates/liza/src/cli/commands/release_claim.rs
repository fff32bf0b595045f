//! `liza release-claim`: the human takes a claim away.

use clap::ValueEnum;
use liza_core::model::{Status, TaskId};
use liza_core::protocol::{ClaimRole, ReleaseClaim};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::input::Text;
use crate::cli::ui::output::Reply;

/// Take a claim away from an agent that is gone or stuck.
///
/// A coder's claim goes back to UNCLAIMED, and what was not merged is saved on a rescue branch; a code reviewer's
/// is cleared.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza release-claim retry-orders
  liza release-claim retry-orders --role reviewer --force --reason \"the session hangs\"")]
pub(crate) struct Args {
    /// Which task.
    task: TaskId,
    /// Whose claim.
    #[arg(long, value_enum, default_value_t)]
    role: Whose,
    /// Even while its lease runs.
    #[arg(long)]
    force: bool,
    /// Why.
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
    /// Whichever there is.
    #[default]
    Both,
}

/// Runs it.
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
        Some(Status::ReadyForReview) => format!("{name} is free for another code reviewer"),
        _ => format!("{name} is UNCLAIMED, free for another coder"),
    })
}

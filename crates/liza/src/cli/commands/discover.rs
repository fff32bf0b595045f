//! `liza discover`: something else needs doing; the planner decides.

use clap::ValueEnum;
use liza_core::model::{self, TaskId};
use liza_core::protocol::Discover;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::input::Text;
use crate::cli::ui::output::Reply;

/// Write down something else that needs doing, instead of doing it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza discover --task retry-orders --desc \"the client has no timeout\" --severity high \\
    --recommendation \"a task of its own\"")]
pub(crate) struct Args {
    /// Found during which task.
    #[arg(long)]
    task: Option<TaskId>,
    /// What.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    desc: Text,
    /// How bad.
    #[arg(long, value_enum)]
    severity: Severity,
    /// How soon the planner has to look.
    #[arg(long, value_enum, default_value_t)]
    urgency: Urgency,
    /// What to do about it.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    recommendation: Option<Text>,
}

/// How bad.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Severity {
    /// Blocks the current task.
    Critical,
    /// Should be addressed soon.
    High,
    /// When convenient.
    Medium,
    /// Nice to have.
    Low,
}

/// How soon.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Urgency {
    /// Wakes the planner.
    Immediate,
    /// At the next planning.
    #[default]
    Deferred,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let severity = match args.severity {
        Severity::Critical => model::Severity::Critical,
        Severity::High => model::Severity::High,
        Severity::Medium => model::Severity::Medium,
        Severity::Low => model::Severity::Low,
    };
    let (urgency, when) = match args.urgency {
        Urgency::Immediate => (model::Urgency::Immediate, "the planner is woken"),
        Urgency::Deferred => (model::Urgency::Deferred, "the planner looks at it next time"),
    };
    let command = Discover {
        task: args.task,
        description: args.desc.read(context)?,
        severity,
        urgency,
        recommendation: Text::read_some(args.recommendation, context)?,
    };
    context.run(command, |reply| format!("{}: {when}", reply.discovery))
}

//! `liza discover`: an agent reports other work that needs doing; the planner decides.

use clap::ValueEnum;
use liza_core::model::{self, TaskId};
use liza_core::protocol::Discover;

use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Report other work that needs doing, instead of doing it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza discover --task retry-orders --desc \"the client has no timeout\" --severity high \\
    --recommendation \"a task of its own\"")]
pub(crate) struct Args {
    /// The task during which you found it.
    #[arg(long)]
    task: Option<TaskId>,
    /// What needs doing.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    desc: Text,
    /// How bad.
    #[arg(long, value_enum)]
    severity: Severity,
    /// How soon the planner has to decide.
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
    /// The planner decides when it next plans.
    #[default]
    Deferred,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let severity = match args.severity {
        Severity::Critical => model::Severity::Critical,
        Severity::High => model::Severity::High,
        Severity::Medium => model::Severity::Medium,
        Severity::Low => model::Severity::Low,
    };
    let (urgency, when) = match args.urgency {
        Urgency::Immediate => (model::Urgency::Immediate, "wakes the planner"),
        Urgency::Deferred => (model::Urgency::Deferred, "the planner decides when it next plans"),
    };
    let command = Discover {
        task: args.task,
        description: args.desc.read(context)?,
        severity,
        urgency,
        recommendation: Text::read_some(args.recommendation, context)?,
    };
    context.run(command, |reply| format!("{} added: {when}", reply.discovery))
}

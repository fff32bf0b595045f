//! `liza supersede-task`: the planner replaces a task by others.

use liza_core::model::TaskId;
use liza_core::protocol::SupersedeTask;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::input::{Tasks, Text};
use crate::cli::ui::output::Reply;

/// Replace a task by others, in one write.
///
/// The replacements exist already (`liza add-task --draft`); they are finalized here. Whoever waits for the
/// original waits for them from now on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza supersede-task retry-all --by retry-core,retry-orders --reason \"scope too broad\" \\
    --root-cause \"one task mixed the mechanism and its users\"")]
pub(crate) struct Args {
    /// Which task.
    task: TaskId,
    /// What takes its place.
    #[arg(long, value_name = "ID,…")]
    by: Tasks,
    /// Why: wrong granularity, ambiguity, missing dependency …
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Text,
    /// What was at the bottom of it, in one sentence.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    root_cause: Text,
    /// How the work stands to the goal now; written from the rest when absent.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: Option<Text>,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let names = args.by.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let name = args.task.clone();
    let command = SupersedeTask {
        task: args.task,
        by: args.by.0,
        reason: args.reason.read(context)?,
        root_cause: args.root_cause.read(context)?,
        summary: Text::read_some(args.summary, context)?,
    };
    context.run(command, |_| format!("{name} is SUPERSEDED; ready for coders: {names}"))
}

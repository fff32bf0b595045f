//! `liza supersede-task`: the planner replaces a task with others.

use liza_core::model::TaskId;
use liza_core::protocol::SupersedeTask;

use crate::cli::context::Context;
use crate::cli::input::{Tasks, Text};
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Replace a task with others, in one write.
///
/// Add the replacements first (`liza add-task --draft`); this command finalizes them. Tasks that depend on the
/// original depend on the replacements from then on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza supersede-task retry-all --by retry-core,retry-orders --reason \"scope too broad\" \\
    --root-cause \"one task mixed the mechanism and its users\"")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// The tasks that replace it.
    #[arg(long, value_name = "ID,…")]
    by: Tasks,
    /// Why: wrong granularity, ambiguity, missing dependency …
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Text,
    /// The root cause, in one sentence.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    root_cause: Text,
    /// How the work relates to the goal now; default built from the other options.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: Option<Text>,
}

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

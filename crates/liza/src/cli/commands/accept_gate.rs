//! `liza accept-gate`: the human accepts that a task changes what judges it.

use liza_core::model::TaskId;
use liza_core::protocol::AcceptGate;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Accept that an APPROVED task changes what judges it.
///
/// Work is judged by the integration test and other protected files of the integration branch (gate.runs and
/// gate.watched). A task that changes them
/// waits for your word, which holds for its commit and for this change only; see it with liza diff TASK. To refuse it:
/// liza submit-verdict TASK REJECTED "...".
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza accept-gate new-test
  liza accept-gate new-test --old-fails")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// Accept it although the merge fails under the protected files of the integration branch.
    #[arg(long)]
    old_fails: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let Args { task, old_fails } = args;
    context.run(AcceptGate { task, old_fails }, |reply| {
        format!("{} may change what judges it; its merge goes on", reply.task)
    })
}

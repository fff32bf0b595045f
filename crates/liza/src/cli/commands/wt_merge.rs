//! `liza wt-merge`: merges an approved commit into the integration branch.

use liza_core::model::{GateChange, TaskId, TestFailure};
use liza_core::protocol::MergeFailure;
use liza_core::text::count;
use liza_team::lifecycle::{MergeOutcome, merge_without_validation, wt_merge};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::Reply;

/// Test and merge an APPROVED task: exactly the approved commit.
///
/// Needs no checkout. If you have the integration branch checked out, its files are updated, or nothing is merged. After
/// a conflict or a failed scripts/integration-test.sh, the branch is unchanged and the task is INTEGRATION_FAILED
/// (exit 3). If the test fails without the task too, or the task changes the test, it stays APPROVED and you are asked.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza wt-merge retry-orders
  liza wt-merge retry-orders --without-validation")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// Merge without the commands that validate the task. Only for you: your word replaces them, and `liza verify` shows the merge as
    /// OVERRIDDEN. The integration test runs even then.
    #[arg(long)]
    without_validation: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let engine = context.engine(&project)?;
    let task = &args.task;
    let merged = if args.without_validation {
        context.human_only("wt-merge --without-validation")?;
        merge_without_validation(&engine, task)
    } else {
        wt_merge(&engine, task)
    };
    let done = match context.reported(&engine, merged)? {
        MergeOutcome::Merged(done) => done,
        MergeOutcome::Failed(failure) => return Err(failed(task, &failure)),
        MergeOutcome::Held(failure) => return Err(held(task, &failure)),
        MergeOutcome::GateChanged(change) => return Err(gate_changed(task, &change)),
        MergeOutcome::CheckoutRefused { path, message } => {
            let path = path.display();
            let message =
                format!("cannot update the checkout of the integration branch in {path}: {message}");
            let hint = format!("commit or stash your changes in {path}, then: liza wt-merge {task}");
            return Err(CommandError::refused("checkout_refused", message).hint(hint).exit(Exit::Git));
        }
    };
    context.report_effects(&done.effects);
    let drift = count(done.reply.drift_commits as usize, "commit");
    let text = format!("{task} is MERGED at {} (drift {drift})", done.reply.merge_commit);
    let mut reply = context.reply(&done, text);
    if let Some((_, rescue)) = done.effects.rescued.first() {
        reply.result["rescued"] = rescue.branch.as_str().into();
    }
    Ok(reply)
}

fn held(task: &TaskId, failure: &TestFailure) -> CommandError {
    let TestFailure { what, output, .. } = failure;
    let message =
        format!("{task} stays APPROVED: the {what} even without its change; its output is in {output}");
    let hint =
        "correct the test on your branch, then: liza sync; or correct what it needs, then: liza resume";
    CommandError::refused("integration_test_broken", message).hint(hint).exit(Exit::Git)
}

fn gate_changed(task: &TaskId, change: &GateChange) -> CommandError {
    let files = change.files.join(", ");
    let (under_old, option) = match &change.old_failure {
        Some(TestFailure { what, output, .. }) => {
            (format!("; under the gate of the integration branch the {what}, see {output}"), " --old-fails")
        }
        None => (String::new(), ""),
    };
    let message = format!("{task} stays APPROVED: it changes what judges it ({files}){under_old}");
    let hint = format!(
        "the human looks at it (liza diff {task}) and says: liza accept-gate {task}{option}, or liza submit-verdict \
         {task} REJECTED \"...\""
    );
    CommandError::refused("gate_changed", message).hint(hint)
}

fn failed(task: &TaskId, failure: &MergeFailure) -> CommandError {
    let error = match failure {
        MergeFailure::Conflict { files } => {
            let files = files.join(", ");
            let message = format!("{task} conflicts with the integration branch in {files}");
            CommandError::refused("conflict", message)
        }
        MergeFailure::Unrelated => {
            let message = format!("{task} has no common history with the integration branch");
            CommandError::refused("unrelated", message)
        }
        MergeFailure::Test { what, output } => {
            CommandError::refused("integration_test", format!("{task}: {what}; its output is in {output}"))
        }
        MergeFailure::Holdout { .. } => CommandError::refused("holdout", format!("{task}: {failure}")),
    };
    error.hint("the branch is unchanged; a coder claims the task again and fixes it").exit(Exit::Git)
}

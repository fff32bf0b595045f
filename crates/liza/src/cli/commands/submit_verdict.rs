//! `liza submit-verdict`: the code reviewer's binding verdict on exactly one commit.

use std::path::{Path, PathBuf};

use liza_core::model::{Sha, Status, TaskId};
use liza_core::protocol::Verdict;
use liza_team::lifecycle::submit_verdict;

use crate::cli::context::Context;
use crate::cli::input::{Text, read_file};
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Approve or reject the submitted commit.
///
/// Refused if the checkout of the review has changed: it is created again, and you have to review it again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza submit-verdict retry-orders APPROVED
  liza submit-verdict retry-orders REJECTED \"orders.rs:12 retries POST without an idempotency key\"
  liza submit-verdict retry-orders REJECTED --reason-file review.md
  liza submit-verdict retry-orders REJECTED - < review.md
  liza submit-verdict retry-orders APPROVED --commit 3f2c1d9
  liza submit-verdict retry-orders APPROVED --without-validation")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// The verdict.
    #[arg(value_enum, ignore_case = true)]
    verdict: VerdictWord,
    /// The reason of a rejection, or the evidence of an approval: what was run, with what result. Only people may approve
    /// without evidence. `-` reads standard input.
    #[arg(allow_hyphen_values = true)]
    reason: Option<Text>,
    /// Read it from a file; `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "reason")]
    reason_file: Option<PathBuf>,
    /// The commit that you judge. Only a task that a person has set to APPROVED and that names no commit needs it.
    #[arg(long, value_name = "SHA")]
    commit: Option<Sha>,
    /// Approve, and merge without the commands that validate the task. Only for you: your word replaces them, and `liza verify` shows the
    /// merge as OVERRIDDEN. The integration test runs even then.
    #[arg(long)]
    without_validation: bool,
}

impl Args {
    pub(crate) fn reason_file(&self) -> Option<&Path> {
        self.reason_file.as_deref()
    }
}

/// The two verdicts, as they are typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum VerdictWord {
    /// Clear to merge.
    #[value(name = "APPROVED")]
    Approved,
    /// Back to the coder.
    #[value(name = "REJECTED")]
    Rejected,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let reason = match (args.reason, args.reason_file) {
        (Some(text), _) => text.read(context)?,
        (None, Some(file)) => read_file(context, &file, "--reason-file")?,
        (None, None) => String::new(),
    };
    let evidence = || Some(reason.clone()).filter(|text| !text.trim().is_empty());
    let verdict = match (args.verdict, args.without_validation) {
        (VerdictWord::Approved, false) => Verdict::Approved(evidence()),
        (VerdictWord::Approved, true) => {
            context.human_only("submit-verdict --without-validation")?;
            Verdict::WithoutValidation(evidence())
        }
        (VerdictWord::Rejected, false) => Verdict::Rejected(reason),
        (VerdictWord::Rejected, true) => {
            let message = "--without-validation belongs to APPROVED: what is rejected is not merged";
            return Err(CommandError::refused("usage", message));
        }
    };
    let project = context.project()?;
    let engine = context.engine(&project)?;
    let done =
        context.reported(&engine, submit_verdict(&engine, &args.task, verdict, args.commit.as_ref()))?;
    let (task, status) = (args.task, done.reply.status.map_or("?", Status::name));
    let next = match (args.verdict, done.reply.status) {
        (VerdictWord::Approved, Some(Status::ReadyForReview)) => {
            ": its impact is high, so another code reviewer has to approve it too".to_owned()
        }
        (VerdictWord::Approved, _) => {
            format!(": a running code reviewer merges it; by hand: liza wt-merge {task}")
        }
        (VerdictWord::Rejected, Some(Status::Blocked)) => {
            ", its rejections are used up; the planner decides: unblock-task, supersede-task or abandon-task"
                .to_owned()
        }
        // Its status was written by hand, without a coder.
        (VerdictWord::Rejected, Some(Status::Unclaimed)) => ": any coder may take it".to_owned(),
        (VerdictWord::Rejected, _) => ": it goes back to its coder".to_owned(),
    };
    Ok(context.reply(&done, format!("{task} is {status}{next}")))
}

//! `liza submit-verdict`: the code reviewer's binding judgement of exactly one commit.

use std::path::PathBuf;

use liza_core::model::TaskId;
use liza_core::protocol::Verdict;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::input::{Text, read_file};
use crate::cli::ui::output::{Reply, to_json, word};

/// Approve or reject what was submitted.
///
/// Refused when the worktree is no longer as it was submitted: it is put back, and has to be judged again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza submit-verdict retry-orders APPROVED
  liza submit-verdict retry-orders REJECTED \"orders.rs:12 retries POST without an idempotency key\"
  liza submit-verdict retry-orders REJECTED --reason-file review.md
  liza submit-verdict retry-orders REJECTED - < review.md")]
pub(crate) struct Args {
    /// Which task.
    task: TaskId,
    /// The judgement.
    #[arg(value_enum, ignore_case = true)]
    verdict: Word,
    /// Why; a rejection needs it. `-` reads it from standard input.
    #[arg(allow_hyphen_values = true)]
    reason: Option<Text>,
    /// Read the reason from a file; `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "reason")]
    reason_file: Option<PathBuf>,
}

/// The two judgements, as they are typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Word {
    /// Clear to merge.
    #[value(name = "APPROVED")]
    Approved,
    /// Back to the coder.
    #[value(name = "REJECTED")]
    Rejected,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let reason = match (args.reason, args.reason_file) {
        (Some(text), _) => text.read(context)?,
        (None, Some(file)) => read_file(&context.directory, &file, "--reason-file")?,
        (None, None) => String::new(),
    };
    let verdict = match args.verdict {
        Word::Approved => Verdict::Approved,
        Word::Rejected => Verdict::Rejected(reason),
    };
    let project = context.project()?;
    let work = context.work(&project)?;
    let written = work.submit_verdict(&args.task, verdict);
        let written = written?;
    let next = match args.verdict {
        Word::Approved => "its code reviewer's supervisor merges it",
        Word::Rejected => "it goes back to its coder",
    };
    let text = format!("{} is {}: {next}", args.task, word(&written.reply, "status"));
    Ok(Reply::new(text, to_json(&written.reply)).at(written.revision.0))
}

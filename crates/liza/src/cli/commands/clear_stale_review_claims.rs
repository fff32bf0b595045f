//! `liza clear-stale-review-claims`: reviews whose lease has run out become free.

use liza_core::protocol::ClearStaleReviewClaims;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::{Reply, word};

/// Free the reviews whose lease has run out.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza clear-stale-review-claims")]
pub(crate) struct Args {}

/// Runs it.
pub(crate) fn run(context: &Context) -> Result<Reply, CommandError> {
    context.run(ClearStaleReviewClaims, |reply| {
        match word(reply, "cleared").as_str() {
            "" => "no review claim is stale".to_owned(),
            tasks => format!("free for another code reviewer: {tasks}"),
        }
    })
}

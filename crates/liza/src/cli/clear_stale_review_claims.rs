//! `liza clear-stale-review-claims`: reviews whose lease has run out become free.

use liza_core::protocol::{ClearStaleReviewClaims, Command};

use super::context::Context;
use super::error::CommandError;
use super::output::{Reply, word};

/// Free the reviews whose lease has run out.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza clear-stale-review-claims")]
pub(super) struct Args {}

/// Runs it.
pub(super) fn run(context: &Context) -> Result<Reply, CommandError> {
    context.submit_and_tell(Command::from(ClearStaleReviewClaims), |reply| {
        match word(reply, "cleared").as_str() {
            "" => "no review claim is stale".to_owned(),
            tasks => format!("free for another code reviewer: {tasks}"),
        }
    })
}

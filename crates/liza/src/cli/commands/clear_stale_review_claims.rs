//! `liza clear-stale-review-claims`: releases review claims whose lease has expired.

use liza_core::protocol::ClearStaleReviewClaims;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::list;
use crate::cli::ui::output::Reply;

/// Release review claims whose lease has expired.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza clear-stale-review-claims")]
pub(crate) struct Args {}

pub(crate) fn run(_: Args, context: &Context) -> Result<Reply, CommandError> {
    context.run(ClearStaleReviewClaims, |reply| match reply.cleared.as_slice() {
        [] => "no stale review claims".to_owned(),
        tasks => format!("released for another code reviewer: {}", list(tasks)),
    })
}

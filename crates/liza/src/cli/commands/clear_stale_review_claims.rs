//! `liza clear-stale-review-claims`: reviews whose lease has run out become free.

use liza_core::protocol::ClearStaleReviewClaims;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::list;
use crate::cli::ui::output::Reply;

/// Free the reviews whose lease has run out.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza clear-stale-review-claims")]
pub(crate) struct Args {}

/// Runs it.
pub(crate) fn run(_: Args, context: &Context) -> Result<Reply, CommandError> {
    context.run(ClearStaleReviewClaims, |reply| match reply.cleared.as_slice() {
        [] => "no review claim is stale".to_owned(),
        tasks => format!("free for another code reviewer: {}", list(tasks)),
    })
}

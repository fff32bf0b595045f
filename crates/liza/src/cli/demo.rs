//! `liza demo`: a whole team at work on a sample project.

use super::context::Context;
use super::error::CommandError;
use super::output::Reply;

/// See a whole team at work on a sample project (not built yet).
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Says honestly that it is not there yet.
pub(super) fn run(_: &Args, _: &Context) -> Result<Reply, CommandError> {
    let message = "the demo is not built yet: the supervisors that it needs come first";
    Err(CommandError::refused("not_built", message)
        .hint("./check runs everything that is; CHANGELOG.md lists it"))
}

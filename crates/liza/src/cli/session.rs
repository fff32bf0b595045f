//! `liza session`: the helper process of one agent session. Called by supervisors only.

use super::error::CommandError;
use super::exit_code::Exit;
use super::output::Reply;

/// Run one agent session for a supervisor (reads its order from standard input).
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs it. The reports on standard output are the supervisor's; nothing else may be written there.
pub(super) fn run() -> Result<Reply, CommandError> {
    let code = crate::supervisor::helper::serve();
    Ok(Reply::default().ending(Exit::Session(code)))
}

//! `liza session`: the helper process of one agent session. Called by supervisors only.

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::Reply;

/// Run one agent session for a supervisor; reads its instructions from standard input.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The project, the agent and its registration: read by the commands of the session, from the list of processes.
    #[arg(long, num_args = 3, value_names = ["ROOT", "AGENT", "GENERATION"])]
    of: Vec<std::ffi::OsString>,
}

/// Runs it. Standard output carries the reports to the supervisor; nothing else may be written there.
pub(crate) fn run(Args { of: _ }: Args, _: &Context) -> Result<Reply, CommandError> {
    let code = liza_team::supervisor::helper::serve();
    Ok(Reply::already_written().exit(Exit::Session(code)))
}

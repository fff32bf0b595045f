//! `liza confine`: restricts itself and becomes an agent program. Called by the helper of a session only.

use std::ffi::OsString;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::Reply;

/// Confine a program for a session; reads its instructions from standard input.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// True for the arguments of the stage, which name its session if it has one. It is recognized before the command line is parsed: an agent waits
/// for it, and nothing around it matters to it.
pub(crate) fn is_stage(arguments: &[OsString]) -> bool {
    matches!(arguments, [_, verb] | [_, verb, _, _, _, _] if verb == "confine")
}

/// True for the arguments of the keeper of a program, which starts a stage.
pub(crate) fn is_keeper(arguments: &[OsString]) -> bool {
    matches!(arguments, [_, verb, option] if verb == "confine" && option == liza_sandbox::confine::KEEP)
}

/// Runs it; returns only if the program could not be started.
pub(crate) fn run(Args {}: Args, _: &Context) -> Result<Reply, CommandError> {
    let code = liza_sandbox::confine::serve();
    Ok(Reply::already_written().exit(Exit::Session(code)))
}

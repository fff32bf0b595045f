//! `liza check`: runs a command of a session that must not speak for the session.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use liza_core::text::shell_word;
use liza_team::project::identity::check_arguments;
use liza_team::project::{AGENT_ID, Project};
use liza_team::session::check::{VALIDATION_VARIABLE, is_outside, run_here, run_outside};
use liza_team::session::check_keeper::{Caller, detach, run_kept};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::Reply;

/// Run a command on code under review, without access to Liza.
///
/// In a session the command runs in a copy of the checkout, with what is not committed: what it writes there does not come back.
/// It and everything that it starts is confined again: it can use the copy and a folder for temporary files, but no command of Liza, and not
/// the login of your program. Exits as the command does.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza check
  liza check -- cargo test
  liza check -- 'npm ci && npm test'")]
pub(crate) struct Args {
    /// The project: read by the supervisor, from the list of processes.
    #[arg(long, hide = true, value_name = "ROOT")]
    of: Option<PathBuf>,
    /// Start the keeper of the command, and end.
    #[arg(long, hide = true, requires = "of")]
    detach: bool,
    /// The command and its arguments, or one line for the shell; without one, all commands that validate your task.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The commands that validate the task of this session, or the project's for a person, as one command that ends with the
/// first failure.
fn validation(context: &Context) -> Result<Vec<OsString>, CommandError> {
    let of_session = std::env::var(VALIDATION_VARIABLE).ok();
    let lines: Vec<String> = match &of_session {
        Some(lines) => lines.lines().map(str::to_owned).collect(),
        None if std::env::var_os(AGENT_ID).is_some() => Vec::new(),
        None => context.project()?.state()?.board.config()?.validation.clone(),
    };
    if lines.is_empty() {
        let message = "no command validates this work".to_owned();
        return Err(CommandError::refused("nothing_to_do", message).hint("name one: liza check -- COMMAND"));
    }
    let step = |line: &String| format!("echo {} >&2\n({line}\n) || exit\n", shell_word(&format!("+ {line}")));
    let script: String = lines.iter().map(step).collect();
    Ok(["/bin/sh", "-c", &script].map(OsString::from).into())
}

/// The words of a command. One word with white space is a line for the shell, whatever files there are: those of the work decide
/// nothing about what runs.
fn words(command: Vec<OsString>) -> Vec<OsString> {
    match command.as_slice() {
        [line] if line.to_string_lossy().contains(char::is_whitespace) => {
            vec!["/bin/sh".into(), "-c".into(), line.clone()]
        }
        _ => command,
    }
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let failed = |error| CommandError::refused("confinement", format!("cannot run the command: {error}"));
    let in_session = std::env::var_os(AGENT_ID).is_some();
    let exit = |code| Ok(Reply::already_written().exit(Exit::Session(code)));
    let command = if args.command.is_empty() { validation(context)? } else { words(args.command) };
    let args = Args { command, ..args };
    match &args.of {
        None if is_outside() => exit(run_outside(&args.command).map_err(failed)?),
        None => {
            // Once more with arguments that the supervisor recognizes, whatever options came before.
            let root = Project::find(&context.directory).unwrap_or_else(|| context.directory.clone());
            if in_session {
                return exit(run_kept(&context.program, &root, &args.command).map_err(failed)?);
            }
            let mut again = Command::new(&context.program);
            Err(failed(again.args(check_arguments(&root)).arg("--").args(&args.command).exec()))
        }
        Some(root) if args.detach => {
            detach(&context.program, root, &args.command).map_err(failed)?;
            exit(0)
        }
        Some(root) => {
            let caller = in_session.then(Caller::of_this_process).transpose().map_err(failed)?;
            let code = run_here(root, &args.command, caller.as_ref()).map_err(failed)?;
            if let Some(caller) = caller {
                caller.answer(code);
            }
            exit(code)
        }
    }
}

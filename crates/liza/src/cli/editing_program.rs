//! The program that edits a copy of the blackboard for `lock` and `modify`.

use std::io;
use std::process::{Command, ExitStatus};

use serde_json::json;

use super::ui::error::CommandError;
use super::ui::exit_code::Exit;

/// One argument is for the shell, several are a program with its arguments.
pub(crate) fn shell_or_program(command: &[String]) -> io::Result<Command> {
    match command {
        [line] => {
            let mut shell = Command::new("sh");
            shell.args(["-c", line]);
            Ok(shell)
        }
        [program, arguments @ ..] => {
            let mut child = Command::new(program);
            child.args(arguments);
            Ok(child)
        }
        [] => Err(io::ErrorKind::InvalidInput.into()),
    }
}

pub(crate) fn not_successful(status: ExitStatus) -> CommandError {
    let message = format!("the command failed ({status}); the blackboard is unchanged");
    CommandError::refused("command_failed", message).with("status", json!(status.code()))
}

pub(crate) fn not_run(command: &[String], error: &io::Error) -> CommandError {
    let message = format!("cannot run {}: {error}", command.first().map_or("", String::as_str));
    let exit = if error.kind() == io::ErrorKind::NotFound { Exit::Missing } else { Exit::Refused };
    CommandError::refused("no_program", message).exit(exit)
}

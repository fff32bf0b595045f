//! The session's side: sends a command and its files to the supervisor, and prints the answer.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use liza_team::channel::SessionCall;
use liza_team::project::Project;
use liza_team::project::identity::{SessionAround, session_in};
use rustix::fs::OFlags;

use crate::cli::context::{Caller, enter};
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::Screen;
use crate::cli::verb::{Cli, RunsIn};

use super::client::{CONTENT_MAX, SessionClient};
use super::modify;
use super::verbs::{named_file, runs_in};

/// Sends a command of a session that is for the session's own project to its supervisor; `None` if it is to run here.
pub(in crate::cli) fn forward(
    cli: &Cli,
    arguments: &[OsString],
    caller: &Caller,
    screen: &Screen,
) -> Option<Exit> {
    let session = session_for(cli, caller)?;
    let sent = SessionClient::new(session, caller).and_then(|client| match cli.verb.lock_modify() {
        Some(command) => modify::modify_copy(&client, command, screen),
        None => send_command(&client, cli, arguments),
    });
    Some(sent.unwrap_or_else(|error| {
        screen.error(&error);
        error.exit
    }))
}

/// The session whose project the command is for. Where no project is found, it is for the session's.
fn session_for<'c>(cli: &Cli, caller: &'c Caller) -> Option<&'c SessionAround> {
    if caller.sessions.is_empty() || runs_in(&cli.verb) == RunsIn::Session {
        return None;
    }
    let directory = match &cli.global.directory {
        Some(folder) => enter(&caller.directory, folder).ok()?,
        None => caller.directory.clone(),
    };
    match Project::find(&directory) {
        Some(root) => session_in(&root, &caller.sessions),
        None => caller.sessions.first(),
    }
}

fn send_command(client: &SessionClient<'_>, cli: &Cli, arguments: &[OsString]) -> Result<Exit, CommandError> {
    let text = |argument: &OsString| {
        argument.to_str().map(str::to_owned).ok_or_else(|| {
            let message = format!("the argument {argument:?} is not UTF-8 text");
            CommandError::refused("bad_text", message)
        })
    };
    let arguments = arguments.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let reads_input = arguments.iter().skip(1).any(|argument| argument == "-" || argument.ends_with("=-"));
    let input = if reads_input { Some(client.input()?) } else { None };
    let named = named_file(&cli.verb).filter(|file| file.as_os_str() != "-");
    let files = match named {
        Some(file) => vec![(file.display().to_string(), content(&client.caller.directory.join(file))?)],
        None => Vec::new(),
    };
    let answer = client.send(SessionCall { arguments, input, files, ..SessionCall::default() })?;
    Ok(client.print(&answer))
}

/// The text of a regular file that is not too large; a link is not followed, a pipe not waited for.
fn content(path: &Path) -> Result<String, CommandError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let read = || {
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(CONTENT_MAX + 1).read_to_end(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
    };
    read().map_err(|error| {
        if error.kind() == io::ErrorKind::PermissionDenied {
            let message = format!("outside the workspace: {}", path.display());
            return CommandError::refused("io", message).hint("copy the file to your worktree or TMPDIR");
        }
        CommandError::refused("io", format!("cannot read {}: {error}", path.display()))
            .hint("name a text file of at most 1 MiB that is not a link, or - for standard input")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-02
    #[test]
    fn only_regular_files_of_limited_size_are_sent() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str| place.path().join(name);
        std::fs::write(file("text"), "a reason").unwrap();
        assert_eq!(content(&file("text")).unwrap(), "a reason");
        std::os::unix::fs::symlink(file("text"), file("link")).unwrap();
        std::fs::write(file("bytes"), [0xff]).unwrap();
        let pipe = std::process::Command::new("mkfifo").arg(file("pipe")).status().unwrap();
        assert!(pipe.success());
        for name in ["link", "bytes", "pipe", ".", "missing"] {
            let error = content(&file(name)).unwrap_err();
            assert!(error.message.starts_with("cannot read "), "{name}: {error:?}");
        }
    }
}

//! `lock modify` in a session: the agent's command changes a copy, with the session's rights and without the
//! lock; only the result travels, with the revision that it was based on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use liza_host::private;
use liza_team::channel::{Answer, SessionCall, WrittenTo};
use serde_json::{Value, json};

use crate::cli::editing_program::{not_run, not_successful, shell_or_program};
use crate::cli::ui::console::Stream;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::{Reply, Screen};

use super::client::SessionClient;

/// The most runs of the command if the blackboard changes meanwhile.
const ATTEMPTS: usize = 10;

/// Runs the command on a copy of the blackboard and sends the result.
pub(super) fn modify_copy(
    client: &SessionClient<'_>,
    command: &[String],
    screen: &Screen,
) -> Result<Exit, CommandError> {
    let scratch = Scratch::create().map_err(|error| io_error("create a copy of the blackboard", &error))?;
    for attempt in 1.. {
        let (text, revision) = copy(client)?;
        let changed = scratch.run(&text, command, client, screen)?;
        if changed == text {
            screen.reply(&Reply::new("nothing was changed", json!({"changed": false})));
            return Ok(Exit::Success);
        }
        let answer = client.send(apply_call(changed, revision, command, screen))?;
        if answer.exit != Exit::Inconsistent.code() || attempt >= ATTEMPTS {
            return Ok(client.print(&answer));
        }
    }
    Ok(Exit::Success)
}

/// The blackboard and its revision.
fn copy(client: &SessionClient<'_>) -> Result<(String, u64), CommandError> {
    let arguments = ["liza", "--json", "lock", "copy"].map(str::to_owned).into();
    let answer = client.send(SessionCall { arguments, ..SessionCall::default() })?;
    let read = |answer: &Answer| {
        let output = answer.written.iter().find(|(to, _)| *to == WrittenTo::Output)?;
        let reply: Value = serde_json::from_str(&output.1).ok()?;
        Some((reply["result"]["text"].as_str()?.to_owned(), reply["revision"].as_u64()?))
    };
    read(&answer).ok_or_else(|| {
        let texts: Vec<&str> = answer.written.iter().map(|(_, text)| text.trim()).collect();
        CommandError::refused("no_copy", format!("cannot copy the blackboard: {}", texts.join(" ")))
    })
}

fn apply_call(text: String, revision: u64, command: &[String], screen: &Screen) -> SessionCall {
    let mut arguments: Vec<String> = vec!["liza".to_owned()];
    arguments.extend(screen.json.then(|| "--json".to_owned()));
    arguments.extend(screen.quiet.then(|| "--quiet".to_owned()));
    let log: String = command.join(" ").chars().take(1_000).collect();
    arguments.extend(["lock", "apply", "--at", &revision.to_string(), "--command", &log].map(str::to_owned));
    SessionCall { arguments, input: Some(text), ..SessionCall::default() }
}

/// A folder for the copy; removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn create() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("liza-modify-{}", std::process::id()));
        private::create_folder(&path.join(".liza"))?;
        Ok(Self(path))
    }

    /// Runs the command on the copy; returns the new text.
    fn run(
        &self,
        text: &str,
        command: &[String],
        client: &SessionClient<'_>,
        screen: &Screen,
    ) -> Result<String, CommandError> {
        let file = self.0.join(".liza/state.yaml");
        fs::write(&file, text).map_err(|error| io_error("write a copy of the blackboard", &error))?;
        let status = self.status(&file, command, client, screen).map_err(|error| not_run(command, &error))?;
        if !status.success() {
            return Err(not_successful(status));
        }
        fs::read_to_string(&file).map_err(|error| {
            let message = format!("the command left no state.yaml that can be read: {error}");
            CommandError::refused("invalid", message).hint("the blackboard is unchanged")
        })
    }

    fn status(
        &self,
        file: &Path,
        command: &[String],
        client: &SessionClient<'_>,
        screen: &Screen,
    ) -> io::Result<ExitStatus> {
        let console = &client.caller.console;
        // With --json, standard output belongs to the one JSON object.
        let output = if screen.json { Stream::Error } else { Stream::Output };
        let mut child: Command = shell_or_program(command)?;
        child
            .stdin(console.for_child(Stream::Input)?)
            .stdout(console.for_child(output)?)
            .stderr(console.for_child(Stream::Error)?)
            .current_dir(&self.0)
            .env("LIZA_STATE", file)
            .status()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn io_error(action: &str, error: &io::Error) -> CommandError {
    CommandError::refused("io", format!("cannot {action}: {error}"))
}

//! Runs git for a session as an agent's shell would: in the folder of its work, with the user's own identity.

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{io, thread};

use crate::error::{RehearsalError, require_success};
use crate::process::{Finished, command_line, run};
use crate::session::Session;

/// The number of attempts while another git holds a lock, with pauses that add up to about 2.5 s.
const LOCK_ATTEMPTS: u32 = 10;
const FIRST_PAUSE: Duration = Duration::from_millis(5);

impl Session {
    /// Runs git and returns its output as text without the last line break; any failure is an error.
    pub(crate) fn git(&self, arguments: &[&str]) -> Result<String, RehearsalError> {
        let not_text = |_| git_failed(arguments, 0, "its output is not UTF-8".to_owned());
        let mut text = String::from_utf8(self.git_bytes(arguments)?).map_err(not_text)?;
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text)
    }

    /// Runs git and returns its output; any failure is an error.
    pub(crate) fn git_bytes(&self, arguments: &[&str]) -> Result<Vec<u8>, RehearsalError> {
        let finished = self.run_git(arguments)?;
        match finished.code {
            0 => Ok(finished.stdout),
            code => Err(git_failed(arguments, code, message(&finished))),
        }
    }

    /// Runs git, shows it in the transcript, and returns its exit code and message.
    pub(crate) fn try_git(&self, arguments: &[&str]) -> Result<(i32, String), RehearsalError> {
        let finished = self.run_git(arguments)?;
        let message = message(&finished);
        self.transcript.ran(&command_line("git", arguments), finished.code, &message);
        Ok((finished.code, message))
    }

    fn run_git(&self, arguments: &[&str]) -> Result<Finished, RehearsalError> {
        let mut pause = FIRST_PAUSE;
        for _ in 1..LOCK_ATTEMPTS {
            let finished = git_once(self.work_dir(), arguments)?;
            if !String::from_utf8_lossy(&finished.stderr).contains(".lock': File exists") {
                return Ok(finished);
            }
            thread::sleep(pause);
            pause *= 2;
        }
        git_once(self.work_dir(), arguments)
    }

    pub(crate) fn git_resolves(&self, name: &str) -> bool {
        self.run_git(&["rev-parse", "--quiet", "--verify", name]).is_ok_and(|finished| finished.code == 0)
    }

    pub(crate) fn head(&self) -> Result<String, RehearsalError> {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Returns the file names that a git command prints, each followed by NUL.
    pub(crate) fn git_files(&self, arguments: &[&str]) -> Result<Vec<String>, RehearsalError> {
        let output = self.git(arguments)?;
        Ok(output.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// Commits everything; false if there is nothing to commit.
    pub(crate) fn commit_all(&self, message: &[&str]) -> Result<bool, RehearsalError> {
        self.git(&["add", "--all"])?;
        if self.git(&["status", "--porcelain"])?.is_empty() && !self.git_resolves("MERGE_HEAD") {
            return Ok(false);
        }
        let (code, message) = self.try_git(&[&["commit", "--quiet"], message].concat())?;
        require_success("git commit", code, message).map(|()| true)
    }
}

fn git_once(folder: &Path, arguments: &[&str]) -> Result<Finished, RehearsalError> {
    let mut command = Command::new("git");
    // A daemon that watches files would outlive the session in a worktree that is to be removed.
    command.args(["-c", "core.fsmonitor=false"]).args(arguments).current_dir(folder);
    // Ask nothing, take no lock only to speed up the next command, and print messages in English.
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    // A missing folder and a missing program are the same error to the operating system.
    let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound && folder.is_dir();
    run(&mut command, "").map_err(|error| match missing(&error) {
        true => RehearsalError::GitMissing(error),
        false => RehearsalError::io("run git in", folder)(error),
    })
}

fn git_failed(arguments: &[&str], code: i32, message: String) -> RehearsalError {
    RehearsalError::Git { command: command_line("git", arguments), code, message }
}

/// Returns git's error message, or its output if there is none.
fn message(finished: &Finished) -> String {
    let complaint = finished.stderr.trim_ascii();
    let text = if complaint.is_empty() { finished.stdout.trim_ascii() } else { complaint };
    String::from_utf8_lossy(text).into_owned()
}

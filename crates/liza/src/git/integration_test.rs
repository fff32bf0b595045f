//! Runs the project's `scripts/integration-test.sh` on a commit, in a worktree of its own.
//!
//! Leaves no process and no worktree behind. The script's exit status and the time limit alone decide the result.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use liza_core::model::Sha;

use super::command::TREE_LIMIT;
use super::error::GitError;
use super::leftovers::{leftovers, temporary_name};
use super::repo::Repo;
use crate::sys::family::ScopedFamily;

/// The script, if a project has one.
const SCRIPT: &str = "scripts/integration-test.sh";

/// The prefix of our worktrees; no task ID starts with a dot.
const PREFIX: &str = ".integration-test-";

/// The result of an integration test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the branch must not move after a failed test"]
pub enum IntegrationTestResult {
    /// The commit has no such script.
    NoScript,
    /// It exited with status 0.
    Passed,
    /// It exited with another status, or was killed by a signal.
    Failed {
        /// Its exit status; `None` when a signal killed it.
        status: Option<i32>,
        /// The signal that killed it.
        signal: Option<i32>,
    },
    /// It took too long and was killed with everything that it had started.
    TimedOut,
}

/// A checkout of one commit beside the worktrees of the tasks, removed on drop.
#[derive(Debug)]
pub(crate) struct ScratchCheckout {
    repo: Repo,
    path: PathBuf,
}

impl ScratchCheckout {
    /// Its folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchCheckout {
    fn drop(&mut self) {
        self.repo.remove_test_worktree(&self.path);
    }
}

impl Repo {
    /// Runs the test of `commit`, if it has one, and writes its output to the file `output`.
    ///
    /// # Errors
    ///
    /// When the worktree or the file cannot be created.
    pub fn run_integration_test(
        &self,
        commit: &Sha,
        output: &Path,
        limit: Duration,
    ) -> Result<IntegrationTestResult, GitError> {
        let Some(executable) = self.test_script(commit)? else { return Ok(IntegrationTestResult::NoScript) };
        let action = "running the integration test";
        let file = || {
            output.parent().map_or(Ok(()), fs::create_dir_all)?;
            File::create(output).and_then(|file| Ok((file.try_clone()?, file)))
        };
        let (stdout, stderr) = file().map_err(|error| GitError::io(action, output, error))?;
        let worktree = self.scratch_checkout(commit)?;
        let script = worktree.path.join(SCRIPT);
        let mut command = if executable { Command::new(&script) } else { Command::new("sh") };
        if !executable {
            command.arg(&script);
        }
        command
            .current_dir(&worktree.path)
            .env_clear()
            .envs(self.git().environment().iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr);
        let deadline = Instant::now() + limit;
        let family = match ScopedFamily::spawn(&mut command) {
            Ok(family) => family,
            Err(error) => {
                // As a shell does: the reason goes to the output, and the status is 126.
                let _ = fs::write(output, format!("{SCRIPT} could not be started: {error}\n"));
                return Ok(IntegrationTestResult::Failed { status: Some(126), signal: None });
            }
        };
        let ended = family.finish(deadline).map_err(|error| GitError::io(action, &script, error))?;
        Ok(ended.map_or(IntegrationTestResult::TimedOut, result_of))
    }

    /// Removes test worktrees of dead processes; returns them.
    pub(crate) fn remove_test_leftovers(&self) -> Vec<PathBuf> {
        let left = leftovers(&self.root().join(".worktrees"), PREFIX);
        left.iter().for_each(|path| self.remove_test_worktree(path));
        left
    }

    /// Whether the script of the commit is executable; `None` if there is no script.
    fn test_script(&self, commit: &Sha) -> Result<Option<bool>, GitError> {
        let command = self.command("looking for the integration test");
        let output = command.args(["ls-tree", "-z", "--full-tree", commit.as_str(), "--", SCRIPT]).read()?;
        let is_file = output.starts_with(b"100") || output.starts_with(b"120000");
        Ok(is_file.then(|| !output.starts_with(b"100644")))
    }

    /// Checks out a commit in a folder of its own.
    ///
    /// # Errors
    ///
    /// When the folder cannot be created.
    pub(crate) fn scratch_checkout(&self, commit: &Sha) -> Result<ScratchCheckout, GitError> {
        self.remove_test_leftovers();
        let path = self.root().join(".worktrees").join(temporary_name(PREFIX));
        // Before git runs, so that an incomplete worktree is removed too.
        let worktree = ScratchCheckout { repo: self.clone(), path };
        let action = "creating a scratch checkout".to_owned();
        self.add_at(&worktree.path, action, &["--detach"], commit.as_str())?;
        Ok(worktree)
    }

    fn remove_test_worktree(&self, path: &Path) {
        // The folder first: git refuses to remove a worktree with missing files, but not one without a folder.
        // What cannot be removed now is removed by a later process; the result of the test does not depend on it.
        let _ = fs::remove_dir_all(path);
        let command =
            self.command("removing a test worktree").args(["worktree", "remove", "--force", "--force", "--"]);
        let _ = command.arg(path).limit(TREE_LIMIT).run();
    }
}

fn result_of(status: ExitStatus) -> IntegrationTestResult {
    if status.success() {
        IntegrationTestResult::Passed
    } else {
        IntegrationTestResult::Failed { status: status.code(), signal: status.signal() }
    }
}

//! Runs the project's `scripts/integration-test.sh` on a commit, in a worktree of its own.
//!
//! Ends with nothing left: no process, no worktree. Judges nothing but the script's exit status and the time.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use liza_core::ids::Sha;

use super::error::GitError;
use super::repo::Repo;
use super::run::TREE_LIMIT;
use super::worktree::leftovers;
use crate::sys::family::ScopedFamily;

/// The script that a project may have.
const SCRIPT: &str = "scripts/integration-test.sh";

/// Begins the names of our worktrees; no task can be called so.
const PREFIX: &str = ".integration-test-";

/// What came of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a red test must keep the branch where it is"]
pub enum IntegrationTest {
    /// The commit has no such script.
    Absent,
    /// It ended with 0.
    Passed,
    /// It ended otherwise.
    Failed {
        /// Its exit status; `None` when a signal ended it.
        status: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// It did not end in time and was killed, with everything that it had started.
    TimedOut,
}

/// A worktree that is removed when it is no longer needed.
struct Stage<'a> {
    repo: &'a Repo,
    path: PathBuf,
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        self.repo.remove_stage(&self.path);
    }
}

impl Repo {
    /// Runs the test of `commit`, if it has one; what it prints goes to the file `output`,
    /// which is made with its folder.
    ///
    /// # Errors
    ///
    /// When the worktree or the file cannot be made.
    pub fn integration_test(
        &self,
        commit: &Sha,
        output: &Path,
        limit: Duration,
    ) -> Result<IntegrationTest, GitError> {
        let Some(executable) = self.test_script(commit)? else { return Ok(IntegrationTest::Absent) };
        let doing = "running the integration test";
        let file = || {
            output.parent().map_or(Ok(()), fs::create_dir_all)?;
            File::create(output).and_then(|file| Ok((file.try_clone()?, file)))
        };
        let (stdout, stderr) = file().map_err(|error| GitError::io(doing, output, error))?;
        let stage = self.stage(commit)?;
        let script = stage.path.join(SCRIPT);
        let mut command = if executable { Command::new(&script) } else { Command::new("sh") };
        if !executable {
            command.arg(&script);
        }
        command
            .current_dir(&stage.path)
            .env_clear()
            .envs(self.git().environment().iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr);
        let deadline = Instant::now() + limit;
        let tree = match ScopedFamily::spawn(&mut command) {
            Ok(tree) => tree,
            Err(error) => {
                // As a shell does it: the reason is with the output, and the status is 126.
                let _ = fs::write(output, format!("{SCRIPT} could not be started: {error}\n"));
                return Ok(IntegrationTest::Failed { status: Some(126), signal: None });
            }
        };
        let ended = tree.finish(deadline).map_err(|error| GitError::io(doing, &script, error))?;
        Ok(ended.map_or(IntegrationTest::TimedOut, verdict))
    }

    /// Removes test worktrees of processes that are gone; says which.
    pub(crate) fn sweep_integration_tests(&self) -> Vec<PathBuf> {
        let left = leftovers(&self.root().join(".worktrees"), PREFIX);
        left.iter().for_each(|path| self.remove_stage(path));
        left
    }

    /// Whether the commit has the script, and if so, whether it can be executed.
    fn test_script(&self, commit: &Sha) -> Result<Option<bool>, GitError> {
        let call = self.here("looking for the integration test");
        let answer = call.args(["ls-tree", "-z", "--full-tree", commit.as_str(), "--", SCRIPT]).ok()?;
        let is_file = answer.starts_with(b"100") || answer.starts_with(b"120000");
        Ok(is_file.then(|| !answer.starts_with(b"100644")))
    }

    fn stage(&self, commit: &Sha) -> Result<Stage<'_>, GitError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        self.sweep_integration_tests();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = self.root().join(format!(".worktrees/{PREFIX}{}-{number}", std::process::id()));
        // Made first, so that a worktree that git leaves half-made is removed too.
        let stage = Stage { repo: self, path };
        let doing = "making a worktree for the integration test".to_owned();
        self.add_at(&stage.path, doing, &["--detach"], commit.as_str())?;
        Ok(stage)
    }

    fn remove_stage(&self, path: &Path) {
        // The folder first: git refuses to remove a worktree whose files are half gone, but not one without.
        // What cannot be removed is swept by a later process; the test's result does not depend on it.
        let _ = fs::remove_dir_all(path);
        let call =
            self.here("removing a test worktree").args(["worktree", "remove", "--force", "--force", "--"]);
        let _ = call.arg(path).limit(TREE_LIMIT).run();
    }
}

fn verdict(status: ExitStatus) -> IntegrationTest {
    if status.success() {
        IntegrationTest::Passed
    } else {
        IntegrationTest::Failed { status: status.code(), signal: status.signal() }
    }
}

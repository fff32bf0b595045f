//! Finds merges in the history: which task each one merged, from the lines at the end of its message.
//!
//! Anyone who can push can write such lines, so they only say what to look for; [`Repo::is_merge_of`] checks the rest.

use liza_core::model::{Sha, TaskId};

use super::error::GitError;
use super::repo::{Repo, sha};

/// A commit on the first-parent line of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BranchStep {
    /// The commit.
    pub(crate) commit: Sha,
    /// The commit of the branch before.
    pub(crate) before: Option<Sha>,
    /// The task that it merged, and the approved commit, if its message says so.
    pub(crate) merged: Option<(TaskId, Sha)>,
}

impl Repo {
    /// The steps by which a branch went from one commit to another, the oldest first.
    ///
    /// # Errors
    ///
    /// When one of them does not exist.
    pub(crate) fn steps_between(&self, from: &Sha, to: &Sha) -> Result<Vec<BranchStep>, GitError> {
        let range = format!("{from}..{to}");
        let command = self.command("reading merges").args(["log", "-z", "--first-parent", "--reverse"]);
        let output = command.args(["--format=%H%n%P%n%B", &range, "--"]).read()?;
        let text = String::from_utf8_lossy(&output).into_owned();
        Ok(text.split('\0').filter_map(parse).collect())
    }
}

fn parse(entry: &str) -> Option<BranchStep> {
    let mut lines = entry.lines();
    let commit = sha(lines.next()?.as_bytes())?;
    let before = lines.next()?.split(' ').next().and_then(|parent| sha(parent.as_bytes()));
    let body: Vec<&str> = lines.collect();
    let value = |key: &str| body.iter().rev().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let merged = value("Liza-Task: ")
        .and_then(|task| task.parse().ok())
        .zip(value("Liza-Commit: ").and_then(|commit| commit.parse().ok()).filter(Sha::is_full));
    Some(BranchStep { commit, before, merged })
}

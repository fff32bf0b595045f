//! Reads the history: the task of each merge, from the lines at the end of its message, and the authors of
//! commits. Anyone who can push can write such lines; [`Repo::is_merge_of`] checks them.

use std::path::Path;

use liza_ids::{AgentId, CommitAuthor, Digest, Sha, TaskId};
use liza_ids::{BranchMerge, BranchSteps};

use crate::program::error::GitError;
use crate::program::refs::Branch;
use crate::program::refs_on_disk::ref_on_disk;
use crate::program::repo::{Repo, sha};

/// A commit on the first-parent line of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchStep {
    pub commit: Sha,
    /// The commit of the branch before.
    pub before: Option<Sha>,
    /// The merged task and the approved commit, according to its message.
    pub merged: Option<(TaskId, Sha)>,
    /// The statement that its message names.
    pub statement: Option<Digest>,
}

impl Repo {
    /// The steps of a branch from one commit to another, the oldest first.
    pub fn steps_between(&self, from: &Sha, to: &Sha) -> Result<Vec<BranchStep>, GitError> {
        let range = format!("{from}..{to}");
        let command = self.command("reading merges").args(["log", "-z", "--first-parent", "--reverse"]);
        let output = command.args(["--format=%H%n%P%n%B", &range, "--"]).read()?;
        let text = String::from_utf8_lossy(&output).into_owned();
        Ok(text.split('\0').filter_map(parse).collect())
    }

    /// The commits of `to` beyond `from`: exact merges of tasks, and whether there are others.
    pub fn branch_steps(&self, from: &Sha, to: &Sha) -> Result<BranchSteps, GitError> {
        let mut beyond = BranchSteps::default();
        for BranchStep { commit: merge_commit, before, merged, .. } in self.steps_between(from, to)? {
            match (merged, before) {
                (Some((task, commit)), Some(before))
                    if self.has_commit(&commit)? && self.is_merge_of(&merge_commit, &before, &commit)? =>
                {
                    beyond.merges.push(BranchMerge { task, commit, merge_commit });
                }
                (Some(_) | None, _) => beyond.has_others = true,
            }
        }
        Ok(beyond)
    }

    /// The head of a branch, read from its file or packed-refs without git; `None` if git keeps it elsewhere.
    pub fn head_on_disk(common_dir: &Path, branch: &Branch) -> Option<Sha> {
        ref_on_disk(common_dir, &branch.full())
    }
}

impl Repo {
    /// The authors of the commits that none of these branches has, the oldest first. An agent is named as the
    /// author or in a line `Liza-Agent`.
    pub fn authors(&self, branches: &[Branch], commit: &Sha) -> Result<Vec<CommitAuthor>, GitError> {
        let format = "--format=%H %(trailers:key=Liza-Agent,valueonly,unfold,separator=%x2C)%x09%an";
        let command = self.command("reading authors").args(["log", "--reverse", format, commit.as_str()]);
        let known = branches.iter().map(Branch::full);
        let text = command.arg("--not").args(known).arg("--").read_text()?;
        let author = |line: &str| {
            let (head, name) = line.split_once('\t')?;
            let (commit, agents) = head.split_once(' ')?;
            let agent = named_agent(agents).or_else(|| named_agent(name));
            Some(CommitAuthor { commit: sha(commit.as_bytes())?, name: name.to_owned(), agent })
        };
        Ok(text.lines().filter_map(author).collect())
    }
}

fn named_agent(text: &str) -> Option<AgentId> {
    text.split(|c: char| c.is_whitespace() || c == ',').find_map(|word| word.parse().ok())
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
    let statement = value("Liza-Statement: ").and_then(|digest| digest.parse().ok());
    Some(BranchStep { commit, before, merged, statement })
}

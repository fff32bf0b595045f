//! Merged work that is no longer on the integration branch: someone moved the branch. Reads only; a person
//! decides whether the branch or the blackboard is wrong.

use std::fmt;

use liza_core::model::{Board, Sha, Status, TaskId};
use liza_git::{Branch, Repo};

use crate::engine::{EngineError, integration_branch};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostMerge {
    pub task: TaskId,
    pub commit: Sha,
    pub branch: Branch,
}

impl LostMerge {
    /// The command that brings it back.
    pub fn command(&self) -> String {
        format!("git switch {} && git merge refs/liza/merged/{}", self.branch, self.task)
    }
}

impl fmt::Display for LostMerge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, commit, branch } = self;
        write!(f, "{task} is MERGED at {}, which is not on the branch {branch}", commit.short())
    }
}

pub fn merged_commits(board: &Board) -> Vec<(TaskId, Sha)> {
    let commit = |task: TaskId| {
        let commit = board.body(&task).ok()?.record().merge_commit.clone()?;
        Some((task, commit))
    };
    board.in_status(Status::Merged).filter_map(commit).collect()
}

/// The merged tasks that the integration branch lacks; none if there is no such branch.
pub fn lost_merges(repo: &Repo, board: &Board) -> Result<Vec<LostMerge>, EngineError> {
    let branch = integration_branch(board)?;
    let merged = merged_commits(board);
    let full: Vec<(TaskId, Sha)> =
        merged.into_iter().filter_map(|(task, commit)| Some((task, repo.full_hash(&commit).ok()?))).collect();
    let commits: Vec<Sha> = full.iter().map(|(_, commit)| commit.clone()).collect();
    let missing = repo.missing_from(&branch, &commits)?;
    let lost = full.into_iter().filter(|(_, commit)| missing.contains(commit));
    Ok(lost.map(|(task, commit)| LostMerge { task, commit, branch: branch.clone() }).collect())
}

//! Keeps the integration branch here in step with the remote's. It moves forward, or back over merges that
//! were taken back; a person's checkout of it is updated with it, or the branch stays behind.

use std::path::PathBuf;
use std::time::Duration;

use liza_core::model::{Section, Sha};
use liza_git::MergeError;

use crate::engine::{EngineError, FileLock};

use super::{Exchange, ProblemKind};

/// The longest wait for another process that moves the branch here.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// The number of reads while the remote moves.
const READS: u32 = 5;

#[derive(Debug)]
pub struct Followed {
    /// The head of the remote's branch, which this repository has.
    pub head: Sha,
    /// The checkout that keeps the branch here behind, and git's message.
    pub held: Option<(PathBuf, String)>,
}

impl Exchange<'_> {
    pub fn follow(&self) -> Result<Followed, EngineError> {
        self.noted(ProblemKind::Branch, self.follow_branch())
    }

    /// Fetches the head of the remote's branch. Moves no branch.
    pub(crate) fn fetch_head(&self) -> Result<Sha, EngineError> {
        self.noted(ProblemKind::Unreachable, self.remote_head())
    }

    fn follow_branch(&self) -> Result<Followed, EngineError> {
        let _lock = FileLock::at(&FileLock::of_branch(self.project.folder()), LOCK_TIMEOUT)?;
        let mut local = None;
        for _ in 0..READS {
            // Before the remote is read: a merge is pushed first and recorded then.
            let recorded = self.recorded_head()?;
            let head = self.remote_head()?;
            self.check_not_rewound(recorded, &head)?;
            match self.catch_up(&head) {
                Err(EngineError::LocalCommits { local: here, .. }) if local.as_ref() != Some(&here) => {
                    // A merge of this machine may have reached the remote after it was read.
                    local = Some(here);
                }
                Err(EngineError::LocalCommits { local: here, .. })
                    if self.was_taken_back(&here, &head)? =>
                {
                    return Ok(Followed { held: self.move_to(&here, &head)?, head });
                }
                held => return held.map(|held| Followed { head, held }),
            }
        }
        let (remote, branch) = (self.remote().to_owned(), self.integration.clone());
        Err(EngineError::RemoteBusy { remote, branch, attempts: READS })
    }

    fn remote_head(&self) -> Result<Sha, EngineError> {
        let missing = || EngineError::NoRemoteBranch {
            remote: self.remote().to_owned(),
            branch: self.integration.clone(),
        };
        self.remote.fetch_branch(&self.integration)?.ok_or_else(missing)
    }

    fn recorded_head(&self) -> Result<Option<Sha>, EngineError> {
        let board = self.project.store().read_parts(&[Section::Goal], &[])?;
        Ok(board.goal.ready().and_then(|goal| goal.integration_head.clone()))
    }

    /// Checks that merged work is on the remote's branch.
    fn check_not_rewound(&self, recorded: Option<Sha>, head: &Sha) -> Result<(), EngineError> {
        let Some(recorded) = recorded.filter(|recorded| recorded != head) else { return Ok(()) };
        let repo = self.project.repo()?;
        if repo.has_commit(&recorded)? && repo.is_ancestor(&recorded, head)? {
            return Ok(());
        }
        let (remote, branch, found) = (self.remote().to_owned(), self.integration.clone(), head.clone());
        Err(EngineError::RemoteRewound { remote, branch, recorded, found })
    }

    /// Moves the branch here forward to a commit of the remote; returns the checkout that prevents it.
    pub(crate) fn catch_up(&self, head: &Sha) -> Result<Option<(PathBuf, String)>, EngineError> {
        let repo = self.project.repo()?;
        let Some(local) = repo.tip(&self.integration)? else {
            return Ok(repo.create_branch(&self.integration, head).map(|_| None)?);
        };
        if local == *head {
            return Ok(None);
        }
        if !repo.is_ancestor(&local, head)? {
            let (remote, branch, found) = (self.remote().to_owned(), self.integration.clone(), head.clone());
            return Err(EngineError::LocalCommits { remote, branch, local, found });
        }
        self.move_to(&local, head)
    }

    /// True if the branch here has only merges of tasks that the remote lacks: another machine published
    /// them, and took them back because the blackboard refused them. Each step must be exactly the merge that
    /// its message names: a person can amend a merge.
    fn was_taken_back(&self, local: &Sha, head: &Sha) -> Result<bool, EngineError> {
        let repo = self.project.repo()?;
        for step in repo.steps_between(head, local)? {
            let (Some((_, commit)), Some(before)) = (&step.merged, &step.before) else { return Ok(false) };
            if !repo.has_commit(commit)? || !repo.is_merge_of(&step.commit, before, commit)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves the branch here; returns the checkout that prevents it.
    fn move_to(&self, local: &Sha, head: &Sha) -> Result<Option<(PathBuf, String)>, EngineError> {
        match self.project.repo()?.forward_branch(&self.integration, local, head) {
            Ok(()) | Err(MergeError::BranchMoved) => Ok(None),
            Err(MergeError::CheckoutRefused { path, message }) => Ok(Some((path, message))),
            Err(MergeError::Git(error) | MergeError::UpdateFailed(error)) => Err(error.into()),
            Err(MergeError::Conflict { .. } | MergeError::Unrelated | MergeError::NoBranch { .. }) => {
                Ok(None)
            }
        }
    }
}

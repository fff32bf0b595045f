//! Publishes a merge: one push that expects the old head. The remote's compare-and-swap decides who is first.

use std::time::Duration;

use liza_core::model::{Refusal, Sha, TaskId};
use liza_git::{GitError, PendingMerge, PushOutcome, RefChange, merged_ref};

use crate::engine::{EngineError, FileLock};

use super::{Exchange, ProblemKind};

/// The longest wait for another process that moves the branch here.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// The number of pushes while other machines add receipts.
const PUSHES: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// It is on the remote's branch.
    Done,
    /// Another machine was faster: it has to be computed again on the new head.
    Moved,
}

impl Exchange<'_> {
    /// Publishes a merge, or a branch that a person merged (without a task).
    pub fn publish(&self, task: Option<&TaskId>, merge: &PendingMerge) -> Result<Published, EngineError> {
        let published = self.noted(ProblemKind::Refused, self.push_merge(task, merge))?;
        if published == Published::Done {
            // The remote decides; a checkout that cannot follow now follows later.
            let _lock = FileLock::at(&FileLock::of_branch(self.project.folder()), LOCK_TIMEOUT)?;
            let _ = self.catch_up(&merge.new);
        }
        Ok(published)
    }

    fn push_merge(&self, task: Option<&TaskId>, merge: &PendingMerge) -> Result<Published, EngineError> {
        let name = self.integration.full();
        let (from, to) = (Some(merge.old.clone()), merge.new.clone());
        let mut changes = vec![RefChange::Move { name, from, to: to.clone() }];
        changes.extend(task.map(|task| RefChange::Set { name: merged_ref(task), to }));
        for _ in 0..PUSHES {
            let receipts = self.new_receipts()?;
            let outcome = self.remote.push(&[&changes[..], receipts.as_slice()].concat());
            if let Ok(PushOutcome::Done) = &outcome {
                self.see_receipts(receipts.as_ref())?;
                return Ok(Published::Done);
            }
            // The branch decides, whatever was reported.
            let head = self.remote.fetch_branch(&self.integration)?;
            if let Some(head) = &head
                && self.contains(head, &merge.new)?
            {
                return Ok(Published::Done);
            }
            if head.as_ref() != Some(&merge.old) {
                return Ok(Published::Moved);
            }
            match outcome? {
                // Another machine has added receipts.
                PushOutcome::Done | PushOutcome::Moved => self.bring_receipts()?,
                PushOutcome::Refused { message } => {
                    return Err(self.refused(&self.integration.to_string(), message));
                }
            }
        }
        Ok(Published::Moved)
    }

    /// Takes back a published merge that the blackboard refuses, there and here.
    pub(crate) fn take_back(&self, task: &TaskId, merge: &PendingMerge) -> Result<(), EngineError> {
        self.push_back(task, merge)?;
        // The remote decides; a checkout that cannot follow now follows later.
        let _ = self.undo_here(task, merge);
        Ok(())
    }

    fn push_back(&self, task: &TaskId, merge: &PendingMerge) -> Result<(), EngineError> {
        let (from, to) = (Some(merge.new.clone()), merge.old.clone());
        let back = RefChange::Move { name: self.integration.full(), from, to };
        let forget = RefChange::Delete { name: merged_ref(task), at: merge.new.clone() };
        let outcome = self.remote.push(&[back, forget]);
        if let Ok(PushOutcome::Done) = &outcome {
            return Ok(());
        }
        // The branch decides, whatever was reported.
        let head = self.remote.fetch_branch(&self.integration)?;
        let Some(found) = head else { return Ok(()) };
        if !self.contains(&found, &merge.new)? {
            return Ok(());
        }
        let refused = |message: String| self.refused(&self.integration.to_string(), message);
        match outcome? {
            PushOutcome::Refused { message } => Err(refused(message)),
            PushOutcome::Done | PushOutcome::Moved if found == merge.new => {
                Err(refused("it does not let the branch go back".to_owned()))
            }
            PushOutcome::Done | PushOutcome::Moved => {
                Err(Refusal::ForeignCommits { recorded: merge.new.clone(), found }.into())
            }
        }
    }

    fn undo_here(&self, task: &TaskId, merge: &PendingMerge) -> Result<(), EngineError> {
        let _lock = FileLock::at(&FileLock::of_branch(self.project.folder()), LOCK_TIMEOUT)?;
        let repo = self.project.repo()?;
        self.remote.see_branch(&self.integration, &merge.old)?;
        if repo.undo_merge(&self.integration, merge)? {
            repo.forget_merge(task)?;
        }
        Ok(())
    }

    /// Makes the branch here and the remote's the same, as the human wants it: pushes commits that only the
    /// branch here has. Returns its head.
    pub fn publish_branch(&self) -> Result<Sha, EngineError> {
        let _lock = FileLock::at(&FileLock::of_branch(self.project.folder()), LOCK_TIMEOUT)?;
        let repo = self.project.repo()?;
        let head = self.noted(ProblemKind::Unreachable, Ok(self.remote.fetch_branch(&self.integration)?))?;
        let local = repo.tip(&self.integration)?;
        let is_ahead = match (&head, &local) {
            (Some(head), Some(local)) => head != local && repo.is_ancestor(head, local)?,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if let Some(local) = local.filter(|_| is_ahead) {
            let name = self.integration.full();
            let change = RefChange::Move { name: name.clone(), from: head, to: local.clone() };
            self.noted(ProblemKind::Refused, self.push_all(&[change], &name))?;
            return Ok(local);
        }
        let missing = || EngineError::NoRemoteBranch {
            remote: self.remote().to_owned(),
            branch: self.integration.clone(),
        };
        let head = head.ok_or_else(missing)?;
        self.noted(ProblemKind::Branch, self.catch_up(&head))?;
        Ok(head)
    }

    fn contains(&self, head: &Sha, commit: &Sha) -> Result<bool, EngineError> {
        Ok(head == commit || self.project.repo()?.is_ancestor(commit, head)?)
    }

    pub fn refused(&self, what: &str, message: String) -> EngineError {
        let (remote, what) = (self.remote().to_owned(), format!("a push to {what}"));
        GitError::RemoteRefused { remote, what, message }.into()
    }
}

//! submit-for-review, claim-review, submit-verdict: what git says about the worktree, told to the rules.
//!
//! Changes a tree in one case only: a review that wrote into it has it put back to the submitted commit.

use liza_core::command::{Verdict, WorktreeFacts};
use liza_core::ids::{AgentId, Sha, TaskId};
use liza_core::record::{Status, TaskRecord};
use liza_core::{Command, Refusal};

use crate::git::{FileChange, RestoredWorktree, WorktreeState};

use super::error::WorkError;
use super::{Work, Written};

impl Work<'_> {
    /// Asks for a review of exactly this commit.
    ///
    /// # Errors
    ///
    /// When the rules refuse it, or git does not know the commit.
    pub fn submit_for_review(&self, task: &TaskId, commit: &Sha) -> Result<Written, WorkError> {
        let commit = self.repo()?.resolve(commit)?;
        let facts = self.facts(task)?;
        self.submit(Command::SubmitForReview { task: task.clone(), commit, facts })
    }

    /// Takes a review for a code reviewer.
    ///
    /// # Errors
    ///
    /// When the rules refuse it; also when the worktree moved after the submission, which sends the task back.
    pub fn claim_review(&self, task: &TaskId, reviewer: AgentId) -> Result<Written, WorkError> {
        let head = self.repo()?.worktree_head(task)?;
        self.submit(Command::ClaimReview { task: task.clone(), reviewer, head })
    }

    /// Gives the verdict. A tree that is no longer as it was submitted is put back, whatever the verdict was.
    ///
    /// # Errors
    ///
    /// When the rules refuse it.
    pub fn submit_verdict(&self, task: &TaskId, verdict: Verdict) -> Result<Written, WorkError> {
        let facts = self.facts(task)?;
        let result = self.submit(Command::SubmitVerdict { task: task.clone(), verdict, facts });
        if let Err(error) = &result
            && is_touched(error.refusal())
        {
            self.restore_submitted(task)?;
        }
        result
    }

    /// Puts a worktree back to the commit that was submitted.
    fn restore_submitted(&self, task: &TaskId) -> Result<Option<RestoredWorktree>, WorkError> {
        let lock = self.task_lock(task)?;
        let submitted = |record: &TaskRecord| record.status == Some(Status::ReadyForReview);
        let commit = self.record(task)?.filter(submitted).and_then(|record| record.review_commit);
        let restored =
            commit.map(|commit| self.repo()?.restore_worktree(task, &commit).map_err(WorkError::from));
        drop(lock);
        restored.transpose()
    }

    fn record(&self, task: &TaskId) -> Result<Option<TaskRecord>, WorkError> {
        Ok(self.glance(&[task])?.body(task).ok().map(|body| body.record.clone()))
    }

    /// How the task's worktree stands; nothing where there is none.
    pub fn facts(&self, task: &TaskId) -> Result<Option<WorktreeFacts>, WorkError> {
        let repo = self.repo()?;
        let Some(head) = repo.worktree_head(task)? else { return Ok(None) };
        // Old files may lack it; then there is nothing that would have to be contained.
        let base = self.record(task)?.and_then(|record| record.base_commit).unwrap_or(head);
        Ok(Some(told(repo.worktree_state(task, &base)?)))
    }
}

/// Whether the rules refused a verdict because of what the worktree looks like.
fn is_touched(refusal: Option<&Refusal>) -> bool {
    matches!(refusal, Some(Refusal::HeadMoved { .. } | Refusal::ReviewTouched { .. }))
}

fn told(facts: WorktreeState) -> WorktreeFacts {
    let name = |change: &FileChange| change.path().to_string_lossy().into_owned();
    WorktreeFacts {
        dirty: facts.changes.iter().map(name).collect(),
        changed_tracked: facts.tracked_changes().map(name).collect(),
        head: facts.head,
        on_task_branch: facts.on_task_branch,
        has_base: facts.has_base,
    }
}

//! submit-for-review, claim-review, submit-verdict: collects the facts about the worktree for the rules.
//!
//! Changes a worktree in one case only: if a review has modified it, it is restored to the submitted commit.

use liza_core::model::{AgentId, Refusal, Sha, TaskId, TaskRecord, TaskStatus};
use liza_core::protocol::{
    ClaimReview, ReviewClaimed, SubmitForReview, SubmitVerdict, Submitted, TaskReply, Verdict, WorktreeFacts,
};

use crate::engine::{Engine, EngineError, Executed, lock_task};
use crate::git::FileChange;

/// Submits exactly this commit for review.
///
/// # Errors
/// When the rules refuse it, or git does not know the commit.
pub fn submit_for_review(
    engine: &Engine<'_>,
    task: &TaskId,
    commit: &Sha,
) -> Result<Executed<Submitted>, EngineError> {
    let commit = engine.repo()?.resolve(commit)?;
    refuse_reserved_path(engine, task, &commit)?;
    let facts = worktree_facts(engine, task)?;
    engine.execute(SubmitForReview { task: task.clone(), commit, facts })
}

/// Refuses a commit whose files would overwrite Liza's own: checked out in the project, they would replace the blackboard.
///
/// # Errors
/// When it has such files, or git does not know the commit.
pub(super) fn refuse_reserved_path(
    engine: &Engine<'_>,
    task: &TaskId,
    commit: &Sha,
) -> Result<(), EngineError> {
    match engine.repo()?.reserved_path(commit)? {
        Some(path) => Err(Refusal::ReservedPath { task: task.clone(), commit: commit.clone(), path }.into()),
        None => Ok(()),
    }
}

/// Claims a review for a code reviewer.
///
/// # Errors
/// When the rules refuse it; also when the worktree has moved since the submission, which rejects the task.
pub fn claim_review(
    engine: &Engine<'_>,
    task: &TaskId,
    reviewer: AgentId,
) -> Result<Executed<ReviewClaimed>, EngineError> {
    let head = engine.repo()?.worktree_head(task)?;
    engine.execute(ClaimReview { task: task.clone(), reviewer, head })
}

/// Submits a verdict. A worktree that differs from what was submitted is restored, for either verdict.
///
/// # Errors
/// When the rules refuse it.
pub fn submit_verdict(
    engine: &Engine<'_>,
    task: &TaskId,
    verdict: Verdict,
) -> Result<Executed<TaskReply>, EngineError> {
    let facts = worktree_facts(engine, task)?;
    let result = engine.execute(SubmitVerdict { task: task.clone(), verdict, facts });
    let refusal = result.as_ref().err().and_then(EngineError::refusal);
    if matches!(refusal, Some(Refusal::HeadMoved { .. } | Refusal::ReviewTouched { .. })) {
        restore_submitted(engine, task)?;
    }
    result
}

/// Restores a worktree to the commit that was submitted.
fn restore_submitted(engine: &Engine<'_>, task: &TaskId) -> Result<(), EngineError> {
    let _lock = lock_task(engine.project(), task)?;
    if let Ok(task) = engine.read(&[task])?.task(task)
        && let TaskStatus::ReadyForReview { commit, .. } = &task.status
    {
        engine.repo()?.restore_worktree(&task.id, commit)?;
    }
    Ok(())
}

/// The state of the task's worktree; `None` if there is none.
///
/// # Errors
/// When git fails.
pub fn worktree_facts(engine: &Engine<'_>, task: &TaskId) -> Result<Option<WorktreeFacts>, EngineError> {
    let repo = engine.repo()?;
    let Some(head) = repo.worktree_head(task)? else { return Ok(None) };
    let base = |record: &TaskRecord| record.base_commit.clone();
    let base = engine.read(&[task])?.body(task).ok().and_then(|body| base(body.record()));
    // Old files may have no base; then no commit has to be contained.
    let state = repo.worktree_state(task, &base.unwrap_or(head))?;
    let name = |change: &FileChange| change.path().to_string_lossy().into_owned();
    Ok(Some(WorktreeFacts {
        dirty: state.changes.iter().map(name).collect(),
        changed_tracked: state.tracked_changes().map(name).collect(),
        head: state.head,
        on_task_branch: state.on_task_branch,
        has_base: state.has_base,
    }))
}

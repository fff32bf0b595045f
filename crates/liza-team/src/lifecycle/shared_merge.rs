//! The merge of a task where several machines merge: computed on the head of the remote's branch, published
//! by one push that expects this head, repeated if another machine was faster.
//!
//! A merge is published, then recorded. The next merge finds an unrecorded one by the statement that its message
//! names, and records it before anything is merged on top: the records are in the order of the branch.

use liza_core::model::{Sha, TaskId, TaskStatus};
use liza_core::protocol::{AdoptIntegration, MergeRecorded, Mergeable, RecordMerge, TaskReply};
use liza_git::{BranchStep, MergeError};

use crate::engine::{
    Discarded, EffectResults, Engine, EngineError, Exchange, Executed, Published, discard, is_stated_merge,
};

use super::wt_merge::{MergeJob, MergeOutcome, NotOnBranch, OnBranch, finish, foreign};

/// The number of attempts while the branch moves. Each time, another task has been merged.
const ATTEMPTS: u32 = 50;

impl MergeJob<'_, '_> {
    pub(super) fn attempt_shared(
        &self,
        exchange: &Exchange<'_>,
        approved: &Mergeable,
    ) -> Result<OnBranch, NotOnBranch> {
        for _ in 0..ATTEMPTS {
            let followed = exchange.follow()?;
            if let Some((path, message)) = followed.held {
                return Err(NotOnBranch::Git(MergeError::CheckoutRefused { path, message }));
            }
            record_found_merges(self.engine, &followed.head)?;
            if self.is_merged()? {
                return Err(NotOnBranch::Recorded);
            }
            exchange.bring_submission(self.task, &self.commit)?;
            // Another machine may have reviewed it.
            exchange.bring_receipts()?;
            if let Some(on_branch) = self.attempt_onto(exchange, approved, &followed.head)? {
                return Ok(on_branch);
            }
        }
        let (remote, branch) = (exchange.remote().to_owned(), self.integration.clone());
        Err(EngineError::RemoteBusy { remote, branch, attempts: ATTEMPTS }.into())
    }

    /// One attempt; `None` if the branch moved meanwhile.
    fn attempt_onto(
        &self,
        exchange: &Exchange<'_>,
        approved: &Mergeable,
        head: &Sha,
    ) -> Result<Option<OnBranch>, NotOnBranch> {
        let (repo, task) = (self.engine.repo()?, self.task);
        let draft = repo.draft_merge(head, &self.commit).map_err(NotOnBranch::Git)?;
        let merge = self.judge(approved, &draft)?;
        repo.movable_checkouts(&self.integration, &merge).map_err(NotOnBranch::Git)?;
        match exchange.publish(Some(task), &merge)? {
            Published::Moved => Ok(None),
            Published::Done => {
                // The branch of the remote contains it; this reference is one more.
                let _ = repo.keep_merge(task, &merge.new);
                Ok(Some(OnBranch::moved(merge)))
            }
        }
    }

    pub(super) fn is_merged(&self) -> Result<bool, EngineError> {
        let board = self.engine.read(&[self.task])?;
        Ok(matches!(board.task(self.task)?.status, TaskStatus::Merged { .. }))
    }

    /// The outcome of a merge that another machine recorded; the worktree here is removed.
    pub(super) fn recorded_elsewhere(&self) -> Result<MergeOutcome, EngineError> {
        let board = self.engine.read(&[self.task])?;
        let task = board.task(self.task)?;
        let recorded = board.body(self.task)?.record().merge_commit.clone();
        let merge_commit = recorded.unwrap_or_else(|| self.commit.clone());
        let mut effects = EffectResults::default();
        match discard(self.engine.project(), self.task) {
            Ok(Discarded::Removed(removed)) => {
                effects.rescued.extend(removed.rescued.map(|rescue| (self.task.clone(), rescue)));
            }
            Ok(Discarded::Needed) => {}
            Err(error) => effects.left.push((self.task.clone(), error)),
        }
        let reply = MergeRecorded { task: TaskReply::from(&task), merge_commit, drift_commits: 0 };
        Ok(MergeOutcome::Merged(Executed { revision: board.revision, reply, effects }))
    }
}

/// Records the merges on the remote's branch that the blackboard lacks: of a machine that has not recorded
/// its own yet, or that died, or from before the blackboard was set back. Returns the tasks.
pub(super) fn record_found_merges(engine: &Engine<'_>, head: &Sha) -> Result<Vec<TaskId>, EngineError> {
    let recorded = engine.project().store().snapshot()?.board.goal()?.integration_head.clone();
    let Some(recorded) = recorded else {
        engine.execute(AdoptIntegration { head: head.clone() })?;
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    if recorded == *head || engine.repo()?.is_ancestor(head, &recorded)? {
        return Ok(found);
    }
    if let Some(exchange) = Exchange::of(engine.project())? {
        exchange.bring_receipts()?;
    }
    for step in engine.repo()?.steps_between(&recorded, head)? {
        match record_step(engine, &step)? {
            StepResult::Recorded(task) => found.push(task),
            StepResult::Known => {}
            StepResult::Foreign => return Err(foreign(&recorded, head)),
        }
    }
    Ok(found)
}

enum StepResult {
    Recorded(TaskId),
    /// Another machine has recorded it meanwhile.
    Known,
    /// It is no merge of an approved task with its statement.
    Foreign,
}

fn record_step(engine: &Engine<'_>, step: &BranchStep) -> Result<StepResult, EngineError> {
    let (Some((task, commit)), Some(before)) = (&step.merged, &step.before) else {
        return Ok(StepResult::Foreign);
    };
    let is_known = |engine: &Engine<'_>| -> Result<bool, EngineError> {
        let board = engine.read(&[task])?;
        let status = board.task(task).map(|task| task.status);
        Ok(matches!(status, Ok(TaskStatus::Merged { merge_commit: Some(at) }) if at == step.commit))
    };
    if is_known(engine)? {
        return Ok(StepResult::Known);
    }
    let board = engine.read(&[task])?;
    let Ok(TaskStatus::Approved { work, commit: approved, .. }) = board.task(task).map(|task| task.status)
    else {
        return Ok(StepResult::Foreign);
    };
    let repo = engine.repo()?;
    if approved != *commit || !is_stated_merge(repo, step)? {
        return Ok(StepResult::Foreign);
    }
    let drift = work.base.and_then(|base| repo.count_commits(&base, before).ok()).unwrap_or_default();
    let recorded = engine.submit(RecordMerge {
        task: task.clone(),
        commit: commit.clone(),
        merge_commit: step.commit.clone(),
        drift_commits: u32::try_from(drift).unwrap_or(u32::MAX),
        old_head: Some(before.clone()),
    });
    match recorded {
        Ok(recorded) => finish(engine, recorded).map(|_| StepResult::Recorded(task.clone())),
        Err(EngineError::Refused(_)) if is_known(engine)? => Ok(StepResult::Known),
        Err(error) => Err(error),
    }
}

//! unblock-task: a blocked task becomes claimable again.

use crate::model::{
    Actor, Anomaly, AnomalyType, Appended, Effect, EventName, Fields, MAX_FAILED_CODERS, PriorWork,
    REVIEW_DEADLOCK, Refusal, Section, Task, TaskId, TaskStatus,
};

use crate::rules::session_budget::SessionBudget;

use super::budget::{check_budget, refill, refill_planner};
use super::gates::{missing_gates, needs_approval};
use super::operation::{LoadScope, Rule};
use super::permission::{PLANNING, Rights};
use super::reply::TaskReply;
use super::tx::{Tx, non_blank};

/// Releases a BLOCKED task, unless two coders have failed at it.
#[derive(Debug, Clone, PartialEq)]
pub struct UnblockTask {
    pub task: TaskId,
    /// If true, the count of rejections starts again at zero.
    pub reset_cycles: bool,
    /// If true, it goes back to its coder.
    pub same_coder: bool,
    /// If true, another coder continues in its worktree.
    pub keep_worktree: bool,
    /// The planner's assessment of the deadlock.
    pub assessment: Option<String>,
}

impl Rule for UnblockTask {
    type Reply = TaskReply;
    const VERB: &'static str = "unblock-task";
    const RIGHTS: Rights = PLANNING;
    const LOADS: LoadScope = LoadScope::named(&[Section::Config, Section::Handoff, Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn is_result(&self) -> bool {
        true
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let id = &self.task;
        let mut task = tx.task(id)?;
        let TaskStatus::Blocked { block, prior } = task.status.clone() else {
            return Err(tx.wrong_status(&task, "BLOCKED"));
        };
        let failed_by = task.record.failed_by.clone().unwrap_or_default();
        if failed_by.len() >= MAX_FAILED_CODERS {
            return Err(Refusal::HypothesisExhausted { task: id.clone(), failed_by });
        }
        let budget = SessionBudget::of_task(id, &task.record);
        if tx.actor == Actor::Human {
            refill(tx, &budget)?;
            refill_planner(tx)?;
        } else {
            check_budget(tx, &budget)?;
            check_blocks(tx, &task)?;
        }
        let assessment = non_blank(self.assessment.as_deref());
        if block.reason == REVIEW_DEADLOCK && assessment.is_none() && tx.actor != Actor::Human {
            return Err(Refusal::AssessmentNeeded { task: id.clone(), cause: block.reason });
        }
        let (prior_coder, was_draft) = (prior.coder, task.record.is_blocked_draft());
        let next = self.kept(prior)?;
        if next.worktree.is_none() {
            task.record.handoff_pending = task.record.handoff_pending.map(|_| false);
            task.record.integration_fix = task.record.integration_fix.map(|_| false);
            tx.drop_handoff(id)?;
            tx.effect(Effect::RemoveWorktree(id.clone()));
        }
        if self.reset_cycles {
            task.record.review_cycles_current = Some(0);
        }
        if tx.actor == Actor::Human {
            task.record.iteration = None;
        }
        task.record.previous_coder = prior_coder.filter(|_| !self.same_coder);
        let event = tx.event(EventName::Unblocked).with("was", block.reason.as_str());
        task.push_event(event.with_some("assessment", assessment));
        if let Some(assessment) = assessment {
            record_assessment(tx, &task, &block.reason, assessment);
        }
        let detail = match (self.same_coder, next.coder) {
            (true, Some(coder)) => format!("back to {coder}"),
            _ if next.worktree.is_some() => "for another coder, worktree kept".to_owned(),
            _ => "for another coder".to_owned(),
        };
        let past = task.record.past();
        let never_approved = past.proposed.is_some() && !past.is_finalized;
        if never_approved && needs_approval(tx)? {
            task.push_event(tx.event(EventName::Proposed));
            task.status = TaskStatus::Draft;
            return Ok(tx.save(task, EventName::Unblocked, "waits for the human's approval"));
        }
        if was_draft && !missing_gates(&task.record, true).is_empty() {
            task.status = TaskStatus::Draft;
            return Ok(tx.save(task, EventName::Unblocked, "a draft again: it is not complete"));
        }
        task.status = TaskStatus::Unclaimed { prior: next };
        Ok(tx.save(task, EventName::Unblocked, &detail))
    }
}

/// Refuses the planner another round if the task was blocked too often since the human unblocked it.
fn check_blocks(tx: &Tx<'_>, task: &Task) -> Result<(), Refusal> {
    let (blocks, limit) = (task.record.past().blocks_since_human, tx.config()?.max_blocks);
    if u32::try_from(blocks).is_ok_and(|blocks| blocks < limit) {
        return Ok(());
    }
    Err(Refusal::BlockLimit { task: task.id.clone(), blocks })
}

impl UnblockTask {
    /// The part of the prior work that the next coder gets.
    fn kept(&self, prior: PriorWork) -> Result<PriorWork, Refusal> {
        let nothing = |what| Refusal::NothingKept { task: self.task.clone(), what };
        if self.same_coder {
            prior.coder.ok_or_else(|| nothing("coder"))?;
            return Ok(prior);
        }
        if self.keep_worktree {
            prior.worktree.as_ref().ok_or_else(|| nothing("worktree"))?;
            return Ok(PriorWork { coder: None, ..prior });
        }
        Ok(PriorWork::default())
    }
}

/// A deadlock or an exhausted hypothesis is recorded as an anomaly, with the planner's assessment.
pub(super) fn record_assessment(tx: &mut Tx<'_>, task: &Task, blocked_reason: &str, assessment: &str) {
    let exhausted = task.record.failed_by.as_ref().is_some_and(|failed| failed.len() >= MAX_FAILED_CODERS);
    let kind = match (blocked_reason == REVIEW_DEADLOCK, exhausted) {
        (true, _) => AnomalyType::ReviewDeadlock,
        (false, true) => AnomalyType::HypothesisExhaustion,
        (false, false) => return,
    };
    let details = Fields::from_iter([("assessment".to_owned(), assessment.into())]);
    tx.append(Appended::Anomaly(Anomaly::new(tx.now, kind, Some(&task.id), tx.actor, details)));
}

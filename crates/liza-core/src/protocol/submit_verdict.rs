//! submit-verdict: the binding verdict on exactly one commit.

use crate::model::{
    AgentStatus, EventName, LogAction, PRIOR_FEEDBACK, Refusal, Section, Task, TaskId, TaskStatus,
};
use crate::text::one_line;

use super::claim_review::{end_review_handoff, reject};
use super::operation::{LoadScope, Rule};
use super::ownership::own_review;
use super::permission::{REVIEWING, Rights};
use super::reply::{TaskReply, WorktreeFacts};
use super::tx::{Tx, required};

/// Approves or rejects what was submitted; refused if the worktree has moved.
#[derive(Debug, Clone, PartialEq)]
pub struct SubmitVerdict {
    /// Which task.
    pub task: TaskId,
    /// The verdict.
    pub verdict: Verdict,
    /// The state of the worktree; `None` if there is no worktree.
    pub facts: Option<WorktreeFacts>,
}

/// A review's outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Clear to merge.
    Approved,
    /// Sent back, with the reason.
    Rejected(String),
}

impl Rule for SubmitVerdict {
    type Reply = TaskReply;
    const VERB: &'static str = "submit-verdict";
    const RIGHTS: Rights = REVIEWING;
    const LOADS: LoadScope = LoadScope::named(&[Section::Config, Section::Handoff, Section::Sprint]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let id = &self.task;
        let mut task = tx.task(id)?;
        let (reviewer, work, commit) = own_review(tx, &task)?;
        let facts = self.facts.as_ref().ok_or_else(|| Refusal::WorktreeMissing { task: id.clone() })?;
        if !facts.head.names_same_commit(&commit) {
            return Err(Refusal::HeadMoved { task: id.clone(), head: facts.head.clone(), commit });
        }
        if !facts.changed_tracked.is_empty() {
            return Err(Refusal::ReviewTouched { task: id.clone(), paths: facts.changed_tracked.clone() });
        }
        match &self.verdict {
            Verdict::Approved => {
                task.push_event(tx.event(EventName::Approved).with("commit", commit.as_str()));
                let detail = format!("commit {}", commit.short());
                task.status = TaskStatus::Approved { work, commit, by: Some(reviewer) };
                tx.log(LogAction::Task(EventName::Approved), Some(id), &detail);
            }
            Verdict::Rejected(reason) => {
                let reason = check_reason(&task, reason)?;
                let summary = one_line(&reason, 200);
                let event = tx.event(EventName::Rejected).with("commit", commit.as_str());
                let event = event.with("reason", reason.as_str());
                reject(tx, &mut task, work, commit, reason, event)?;
                tx.log(LogAction::Task(EventName::Rejected), Some(id), &summary);
            }
        }
        end_review_handoff(tx, &mut task)?;
        task.record.clear_exit_counts();
        tx.free_agents([reviewer], id, AgentStatus::Idle)?;
        Ok(tx.put(task))
    }
}

/// From the second rejection on, the reason has to say what became of the earlier feedback.
fn check_reason(task: &Task, reason: &str) -> Result<String, Refusal> {
    let reason = required(reason, "the reason for the rejection")?;
    let again = task.record.review_cycles_current.unwrap_or(0) >= 1;
    if again && !reason.to_lowercase().contains(&PRIOR_FEEDBACK.to_lowercase()) {
        return Err(Refusal::PriorFeedbackMissing { task: task.id.clone() });
    }
    Ok(reason.to_owned())
}

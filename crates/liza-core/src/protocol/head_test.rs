//! The integration test on the integration branch itself: its result, and the merges that wait because it fails there.
//!
//! A task is not blamed for a test that fails without it. Its merge waits until the branch moves or the human says so.

use serde::Serialize;

use crate::model::{
    EventName, HeadTest, HistoryEvent, LogAction, Refusal, Section, Sha, TaskId, TaskStatus, TestFailure,
};

use super::operation::{LoadScope, Rule};
use super::permission::{Rights, SUPERVISION};
use super::reply::TaskReply;
use super::tx::Tx;
use super::wt_merge::{approved, check_commit, merger};

/// Records how the test ended on the integration branch itself.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordHeadTest {
    /// The commit that was tested.
    pub head: Sha,
    /// How it failed; `None` if it passed.
    pub failure: Option<TestFailure>,
}

/// Lets a merge wait, since the test fails without the task too. The task stays APPROVED.
#[derive(Debug, Clone, PartialEq)]
pub struct HoldMerge {
    /// Which task.
    pub task: TaskId,
    /// The approved commit that was tried.
    pub commit: Sha,
    /// The head on which the test fails.
    pub head: Sha,
}

/// A recorded result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeadTested {
    /// The commit that was tested.
    pub head: Sha,
    /// Whether it passed.
    pub passed: bool,
}

impl Rule for RecordHeadTest {
    type Reply = HeadTested;
    const VERB: &'static str = "wt-merge (head tested)";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::named(&[Section::Goal]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<HeadTested, Refusal> {
        let (head, failure, time) = (self.head.clone(), self.failure.clone(), tx.now);
        let detail = match &failure {
            Some(TestFailure { what, output, .. }) => {
                format!("without the change of any task, at {}: {what}; see {output}", head.short())
            }
            None => {
                format!("the integration test passes without the change of any task, at {}", head.short())
            }
        };
        tx.goal()?.head_test = Some(HeadTest { head: head.clone(), time, failure });
        tx.log_as("system", LogAction::HeadTested, None, &detail);
        Ok(HeadTested { head, passed: self.failure.is_none() })
    }
}

impl Rule for HoldMerge {
    type Reply = TaskReply;
    const VERB: &'static str = "wt-merge (held)";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::named(&[Section::Goal]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let mut task = tx.task(&self.task)?;
        let (work, commit, by) = approved(tx, &task)?;
        check_commit(&task, &commit, &self.commit)?;
        let held_at = Some(self.head.clone());
        let known =
            matches!(&task.status, TaskStatus::Approved { held_at: before, .. } if *before == held_at);
        if known {
            return Ok(TaskReply::from(&task));
        }
        let failure = tx.board.goal()?.failing_head().map(|(_, failure)| failure.clone());
        let what = failure.as_ref().map_or_else(String::new, |failure| format!(": {}", failure.what));
        let reason = format!("the integration test fails without this change too{what}");
        let event = HistoryEvent::new(tx.now, EventName::MergeHeld, merger(tx, by));
        let event = event.with("commit", commit.as_str()).with("reason", reason.as_str());
        task.push_event(event.with_some("output", failure.map(|failure| failure.output)));
        task.status = TaskStatus::Approved { work, commit, by, held_at };
        tx.log_as(merger(tx, by), LogAction::Task(EventName::MergeHeld), Some(&task.id), &reason);
        Ok(tx.put(task))
    }
}

//! The integration test on the integration branch itself: its result, and the merges that it holds.
//!
//! A task is not blamed for a test that fails without it. Its merge waits for a new head or for the human.

use serde::Serialize;

use crate::model::{
    EventName, GateChange, HeadTest, HistoryEvent, LogAction, MergeHold, Refusal, Section, Sha, TaskId,
    TaskStatus, TestFailure,
};

use crate::rules::judging_settings::{failing_head, joined};

use super::operation::{LoadScope, Rule};
use super::permission::{Rights, SUPERVISION};
use super::reply::TaskReply;
use super::tx::Tx;
use super::wt_merge::{approved, check_commit, merger};

/// Records the result of the test on the integration branch itself.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordHeadTest {
    pub head: Sha,
    /// `None` if it passed.
    pub failure: Option<TestFailure>,
    /// The word for the settings under which it was run.
    pub settings: String,
}

/// Lets a merge wait for the human. The task stays APPROVED.
#[derive(Debug, Clone, PartialEq)]
pub struct HoldMerge {
    pub task: TaskId,
    /// The approved commit that was tried.
    pub commit: Sha,
    pub cause: HoldCause,
}

/// The reason that a merge waits for the human.
#[derive(Debug, Clone, PartialEq)]
pub enum HoldCause {
    /// The test fails without the task too.
    HeadFails {
        /// The head on which it fails.
        head: Sha,
    },
    /// The task changes protected files.
    Gate {
        /// The number of the gate that the merge was judged by.
        version: u32,
        change: GateChange,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeadTested {
    pub head: Sha,
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
        let goal = tx.goal()?;
        let earlier = goal.head_test.take().filter(|test| test.head == head && test.failure.is_some());
        let settings = match (&failure, earlier) {
            (Some(_), Some(earlier)) => joined(&earlier.settings, std::slice::from_ref(&self.settings)),
            (None, _) | (Some(_), None) => vec![self.settings.clone()],
        };
        goal.head_test = Some(HeadTest { head: head.clone(), time, failure, settings });
        tx.log_as("system", LogAction::HeadTested, None, &detail);
        Ok(HeadTested { head, passed: self.failure.is_none() })
    }
}

impl Rule for HoldMerge {
    type Reply = TaskReply;
    const VERB: &'static str = "wt-merge (held)";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::named(&[Section::Config, Section::Goal]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let mut task = tx.task(&self.task)?;
        let (work, commit, by) = approved(tx, &task)?;
        check_commit(&task, &commit, &self.commit)?;
        let held = Some(self.cause.hold());
        let is_held = matches!(&task.status, TaskStatus::Approved { held: before, .. } if *before == held);
        if is_held && self.cause.is_asked(task.record.gate_change.as_ref()) {
            return Ok(TaskReply::from(&task));
        }
        let (reason, output) = self.cause.reason(tx)?;
        let event = HistoryEvent::new(tx.now, EventName::MergeHeld, merger(tx, by));
        let event = event.with("commit", commit.as_str()).with("reason", reason.as_str());
        task.push_event(event.with_some("output", output));
        task.status = TaskStatus::Approved { work, commit, by, held };
        if let HoldCause::Gate { change, .. } = &self.cause {
            task.record.gate_change = Some(change.clone());
        }
        tx.log_as(merger(tx, by), LogAction::Task(EventName::MergeHeld), Some(&task.id), &reason);
        Ok(tx.put(task))
    }
}

impl HoldCause {
    fn hold(&self) -> MergeHold {
        match self {
            HoldCause::HeadFails { head } => MergeHold::HeadFails(head.clone()),
            HoldCause::Gate { version, .. } => MergeHold::Gate(*version),
        }
    }

    /// True if the human is already asked: the recorded change is the one of this cause.
    fn is_asked(&self, recorded: Option<&GateChange>) -> bool {
        match self {
            HoldCause::HeadFails { .. } => true,
            HoldCause::Gate { change, .. } => recorded == Some(change),
        }
    }

    /// The reason in one line, and the file with the output of a failed test.
    fn reason(&self, tx: &Tx<'_>) -> Result<(String, Option<String>), Refusal> {
        let (reason, failure) = match self {
            HoldCause::HeadFails { .. } => {
                let failure = failing_head(tx.board).map(|(_, failure)| failure.clone());
                ("the integration test fails without this change too".to_owned(), failure)
            }
            HoldCause::Gate { change, .. } => {
                let files = change.files.join(", ");
                let fails = match change.old_failure {
                    Some(_) => "; under the gate of the integration branch",
                    None => "",
                };
                (format!("it changes what judges it ({files}){fails}"), change.old_failure.clone())
            }
        };
        let what = failure.as_ref().map_or_else(String::new, |failure| format!(": {}", failure.what));
        Ok((format!("{reason}{what}"), failure.map(|failure| failure.output)))
    }
}

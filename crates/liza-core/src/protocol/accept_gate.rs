//! accept-gate: the human's word on a task that changes what judges it.
//!
//! It is valid for one commit and one change of the protected files; any other asks again.

use crate::model::{
    EventName, GateAcceptance, LogAction, MergeHold, Refusal, Section, Task, TaskId, TaskStatus,
};

use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::reply::TaskReply;
use super::tx::Tx;

/// Accepts the change of protected files that a merge waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptGate {
    pub task: TaskId,
    /// If true, it is valid although the merge fails under the gate of the integration branch.
    pub old_fails: bool,
}

impl Rule for AcceptGate {
    type Reply = TaskReply;
    const VERB: &'static str = "accept-gate";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::named(&[Section::Goal]);

    fn target(&self) -> Option<&TaskId> {
        Some(&self.task)
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<TaskReply, Refusal> {
        let mut task = tx.task(&self.task)?;
        let Task { record, status, .. } = &mut task;
        let no_question = || Refusal::NoGateChange { task: self.task.clone() };
        let TaskStatus::Approved { commit, held: held @ Some(MergeHold::Gate(_)), .. } = status else {
            return Err(no_question());
        };
        let change = record.gate_change.as_mut().filter(|change| change.commit.names_same_commit(commit));
        let change = change.ok_or_else(no_question)?;
        if let (Some(failure), false) = (&change.old_failure, self.old_fails) {
            return Err(Refusal::OldGateFails { task: self.task.clone(), what: failure.what.clone() });
        }
        let old_fails = self.old_fails && change.old_failure.is_some();
        change.accepted = Some(GateAcceptance { time: tx.now, old_fails });
        *held = None;
        let files = change.files.join(", ");
        let under_old = if old_fails { ", although it fails under the old gate" } else { "" };
        let detail = format!("at {}: {files}{under_old}", commit.short());
        let event = tx.event(EventName::GateAccepted).with("commit", commit.as_str());
        let event = event.with("before", change.before.as_str()).with("after", change.after.as_str());
        let event = if old_fails { event.with("old_fails", true) } else { event };
        task.push_event(event);
        tx.log(LogAction::Task(EventName::GateAccepted), Some(&self.task), &detail);
        Ok(tx.put(task))
    }
}

//! The outlook of a task by its status: its phase, owner, reason and next step. Only data.

use serde::Serialize;

use crate::command_line::{CommandLine, liza};
use crate::forecast::{Next, What};
use liza_core::model::{AgentId, Status, TaskId, TaskRecord, Timestamp};

/// The phase of a task, in the order in which a person wants to see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskPhase {
    /// It needs a decision, or its record is broken.
    Stuck,
    Working,
    /// A coder has left it and continues it later.
    Stopped,
    /// Submitted, reviewed or to be merged.
    Reviewing,
    /// Any free agent may take it.
    Ready,
    Waiting,
    Draft,
    Ended,
}

pub(super) struct Outlook {
    pub(super) phase: TaskPhase,
    pub(super) owner: Option<AgentId>,
    pub(super) lease: Option<Timestamp>,
    pub(super) stopped: bool,
    pub(super) reason: Option<String>,
    pub(super) next: Next,
    pub(super) command: Option<CommandLine>,
    pub(super) broken: Vec<String>,
}

impl Outlook {
    pub(super) fn new(phase: TaskPhase, next: Next, command: Option<CommandLine>) -> Self {
        let (owner, lease, reason, broken) = (None, None, None, Vec::new());
        Self { phase, owner, lease, stopped: false, reason, next, command, broken }
    }

    /// Work that its agent has left and continues later.
    pub(super) fn stopped(agent: AgentId, command: Option<CommandLine>) -> Self {
        Self { stopped: true, ..Self::new(TaskPhase::Stopped, Next::agent(agent, What::Return), command) }
    }

    pub(super) fn owner(self, owner: impl Into<Option<AgentId>>, lease: Option<Timestamp>) -> Self {
        Self { owner: owner.into(), lease, ..self }
    }

    pub(super) fn reason(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }
}

/// The outlook of a task that no command can work with.
pub(super) fn broken_outlook(id: &TaskId, record: &TaskRecord, missing: &[String]) -> Outlook {
    let ended = record.status.is_some_and(Status::is_terminal);
    let phase = if ended { TaskPhase::Ended } else { TaskPhase::Stuck };
    let outlook = Outlook::new(phase, Next::you(What::FixRecord), Some(liza!("edit", id)));
    let broken = vec![format!("the record of {id} is broken: {}", missing.join("; "))];
    let reason = record.blocked_reason.as_ref().or(record.rejection_reason.as_ref());
    let outlook = outlook.owner(record.assigned_to, record.lease_expires);
    Outlook { broken, reason: reason.cloned(), ..outlook }
}

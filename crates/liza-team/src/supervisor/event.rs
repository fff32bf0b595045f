use liza_core::model::{TaskId, Timestamp};
use liza_core::supervise::{AfterSession, WorkKind};

use super::error::SupervisorError;
use super::helper_protocol::HelperReport;
use super::message::{MessageLevel, TeamMessage};
use super::session::Session;

pub(super) type MemberIndex = usize;

#[derive(Debug)]
pub(super) enum Event {
    /// The blackboard or a stop file may have changed.
    Changed,
    Session(MemberIndex, HelperReport),
    /// Others were faster to claim these tasks, and the agent went on to another one.
    ClaimsLost(MemberIndex, Vec<FailedClaim>),
    /// A background job has ended.
    JobDone(MemberIndex, Result<JobOutcome, SupervisorError>),
    /// The leases were renewed, or could not be.
    LeasesRenewed(Result<(), SupervisorError>),
    /// An observer has something to report.
    Observed(Vec<TeamMessage>),
    Timer,
    /// A person or the system asks the supervisor to end.
    Signal {
        /// Ctrl-C in the terminal.
        interrupt: bool,
    },
}

/// A task that an agent could not claim: another one was faster, or the task has changed.
#[derive(Debug)]
pub(super) struct FailedClaim {
    pub kind: WorkKind,
    pub task: TaskId,
    pub why: String,
}

#[derive(Debug)]
pub(super) enum JobOutcome {
    /// The agent can start to work; these repairs came before.
    Ready(Vec<String>),
    /// A merge has ended; the text says how.
    Merged(TaskId, String),
    Started(Box<Session>),
    Judged(SessionVerdict),
    StatusShown,
    /// The agent is deregistered, or the reason why it could not be; its lease then expires.
    Left(Option<SupervisorError>),
}

#[derive(Debug)]
pub(super) struct SessionVerdict {
    /// A planner has none.
    pub task: Option<TaskId>,
    pub next: AfterSession,
    /// The error of a planner that has reached the limit of sessions without a result.
    pub gave_up: Option<SupervisorError>,
    /// The notes announce the next step.
    pub is_reported: bool,
    /// The session's achievement and its time, if they are known.
    pub result: Option<(Option<Timestamp>, String)>,
    pub notes: Vec<(MessageLevel, String)>,
}

//! What a command does to the blackboard, as data: the store writes it, `State::absorb` does the same in memory.

use indexmap::IndexMap;

use crate::agent::AgentRecord;
use crate::breaker::CircuitBreaker;
use crate::effect::Effect;
use crate::event::LogEntry;
use crate::goal::{Alignment, Goal};
use crate::ids::{AgentId, Revision, TaskId};
use crate::notes::{Anomaly, Discovery, Handoff, HumanNote, SpecChange};
use crate::record::TaskRecord;
use crate::refusal::Refusal;
use crate::sprint::Sprint;
use crate::value::Fields;

/// One more entry of a list that only grows.
#[derive(Debug, Clone, PartialEq)]
pub enum Appended {
    /// `anomalies`
    Anomaly(Anomaly),
    /// `human_notes`
    HumanNote(HumanNote),
    /// `spec_changes`
    SpecChange(SpecChange),
    /// `goal.alignment_history`
    Alignment(Alignment),
}

/// The whole outcome of a command.
#[must_use = "a change has to be written, and its effects still have to run"]
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    /// The revision of this write.
    pub revision: Revision,
    /// New and changed tasks; new ones go to the end.
    pub tasks: IndexMap<TaskId, TaskRecord>,
    /// Tasks that move to the archive; their last records are in `tasks`.
    pub archived: Vec<TaskId>,
    /// New, changed and removed agents.
    pub agents: IndexMap<AgentId, Option<AgentRecord>>,
    /// The goal, where it changed.
    pub goal: Option<Goal>,
    /// The sprint, where it changed.
    pub sprint: Option<Sprint>,
    /// A goal that is over and goes to the archive.
    pub closed_goal: Option<Goal>,
    /// A sprint that is over and goes to the archive.
    pub closed_sprint: Option<Sprint>,
    /// The breaker, where it changed.
    pub circuit_breaker: Option<CircuitBreaker>,
    /// The discoveries, where they changed.
    pub discovered: Option<Vec<Discovery>>,
    /// The handoff notes, where they changed.
    pub handoff: Option<IndexMap<TaskId, Handoff>>,
    /// What is added to lists that only grow.
    pub appended: Vec<Appended>,
    /// The one log entry of this write; heartbeats, reservations and metrics have none.
    pub log: Option<LogEntry>,
    /// What to do in the world.
    pub effects: Vec<Effect>,
    /// What to tell the caller.
    pub reply: Fields,
    /// Why the caller did not get what it asked for, although this was written: a lost race, a limit reached.
    pub refusal: Option<Refusal>,
}

impl Change {
    /// Whether nothing would be written.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
            && self.archived.is_empty()
            && self.agents.is_empty()
            && self.goal.is_none()
            && self.sprint.is_none()
            && self.closed_goal.is_none()
            && self.closed_sprint.is_none()
            && self.circuit_breaker.is_none()
            && self.discovered.is_none()
            && self.handoff.is_none()
            && self.appended.is_empty()
            && self.log.is_none()
    }
}

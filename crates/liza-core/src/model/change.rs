//! The outcome of a command as data: the store writes it, `State::apply` does the same in memory.

use indexmap::IndexMap;
use liza_ids::{AgentId, FileVersion, Revision, TaskId};

use crate::model::agent::AgentRecord;
use crate::model::breaker::CircuitBreaker;
use crate::model::direct_edit::DirectEdit;
use crate::model::event::LogEntry;
use crate::model::goal::{Alignment, Goal};
use crate::model::notes::{Anomaly, Discovery, Handoff, HumanNote, SpecChange};
use crate::model::record::TaskRecord;
use crate::model::sprint::Sprint;
use crate::model::stop_file::StopFile;

/// One more entry of a list that only grows.
#[derive(Debug, Clone, PartialEq)]
pub enum Appended {
    Anomaly(Anomaly),
    HumanNote(HumanNote),
    SpecChange(SpecChange),
    Alignment(Alignment),
}

/// A step outside the blackboard, to be taken once the change is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Save unmerged work, then remove the task's worktree and branch.
    RemoveWorktree(TaskId),
    RemoveStopFile(StopFile),
    /// Write `.liza/sprint_summary.md` for the person who reviews the sprint.
    WriteSprintSummary,
    /// Every task of the sprint has ended: send the command that completes it, which has its own log entry.
    CompleteSprint,
}

/// The whole outcome of a command.
#[must_use = "a change has to be written, and its effects still have to run"]
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    pub revision: Revision,
    pub version: Option<FileVersion>,
    /// New and changed tasks; new ones go to the end.
    pub tasks: IndexMap<TaskId, TaskRecord>,
    /// Tasks that move to the archive; their last records are in `tasks`.
    pub archived: Vec<TaskId>,
    /// New and changed agents; `None` removes one.
    pub agents: IndexMap<AgentId, Option<AgentRecord>>,
    pub goal: Option<Goal>,
    pub sprint: Option<Sprint>,
    /// A goal that has ended and goes to the archive.
    pub closed_goal: Option<Goal>,
    /// A sprint that has ended and goes to the archive.
    pub closed_sprint: Option<Sprint>,
    pub circuit_breaker: Option<CircuitBreaker>,
    pub discovered: Option<Vec<Discovery>>,
    pub handoff: Option<IndexMap<TaskId, Handoff>>,
    pub direct_edits: Option<Vec<DirectEdit>>,
    /// Entries added to lists that only grow.
    pub appended: Vec<Appended>,
    /// The one log entry of this write; heartbeats, reservations and metrics have none.
    pub log: Option<LogEntry>,
    /// Stop files that must exist before the change is written: a process killed in between has stopped
    /// everyone, and a missing file is never mistaken for one that a person removed.
    pub stop_files: Vec<StopFile>,
    pub effects: Vec<Effect>,
}

impl Change {
    /// True if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        // Destructured, so that the compiler asks about every new field.
        let Self {
            revision: _,
            version,
            tasks,
            archived,
            agents,
            goal,
            sprint,
            closed_goal,
            closed_sprint,
            circuit_breaker,
            discovered,
            handoff,
            direct_edits,
            appended,
            log,
            stop_files: _,
            effects: _,
        } = self;
        tasks.is_empty()
            && version.is_none()
            && archived.is_empty()
            && agents.is_empty()
            && (goal, sprint, closed_goal, closed_sprint) == (&None, &None, &None, &None)
            && (circuit_breaker, discovered, handoff, direct_edits) == (&None, &None, &None, &None)
            && appended.is_empty()
            && log.is_none()
    }
}

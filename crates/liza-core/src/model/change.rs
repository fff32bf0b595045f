//! What a command does to the blackboard, as data: the store writes it, `State::apply` does the same in memory.

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

/// What remains to be done outside the blackboard once the change is written.
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
    /// The revision of this write.
    pub revision: Revision,
    /// The format of the file, if it changed.
    pub version: Option<FileVersion>,
    /// New and changed tasks; new ones go to the end.
    pub tasks: IndexMap<TaskId, TaskRecord>,
    /// Tasks that move to the archive; their last records are in `tasks`.
    pub archived: Vec<TaskId>,
    /// New, changed and removed agents.
    pub agents: IndexMap<AgentId, Option<AgentRecord>>,
    /// The goal, if it changed.
    pub goal: Option<Goal>,
    /// The sprint, if it changed.
    pub sprint: Option<Sprint>,
    /// A goal that has ended and goes to the archive.
    pub closed_goal: Option<Goal>,
    /// A sprint that has ended and goes to the archive.
    pub closed_sprint: Option<Sprint>,
    /// The breaker, if it changed.
    pub circuit_breaker: Option<CircuitBreaker>,
    /// The discoveries, if they changed.
    pub discovered: Option<Vec<Discovery>>,
    /// The handoff notes, if they changed.
    pub handoff: Option<IndexMap<TaskId, Handoff>>,
    /// The direct edits that wait for the human, if they changed.
    pub direct_edits: Option<Vec<DirectEdit>>,
    /// Entries added to lists that only grow.
    pub appended: Vec<Appended>,
    /// The one log entry of this write; heartbeats, reservations and metrics have none.
    pub log: Option<LogEntry>,
    /// Stop files that must exist before the change is written: a process killed in between has stopped everyone,
    /// and a missing file is never mistaken for one that a person removed.
    pub stop_files: Vec<StopFile>,
    /// What to do once it is written.
    pub effects: Vec<Effect>,
}

impl Change {
    /// Whether there is nothing to write.
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

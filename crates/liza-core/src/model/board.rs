//! The blackboard for rules: summaries of all tasks, and the records and sections that a command needs.
//!
//! A [`Board`] may be partly loaded: the rest is a refusal, never a guess. A [`State`] is the whole file.

use std::sync::Arc;

use indexmap::{IndexMap, map};
use liza_ids::{AgentId, Approver, FileVersion, Revision, TaskId, Timestamp};

use crate::model::agent::AgentRecord;
use crate::model::breaker::CircuitBreaker;
use crate::model::change::{Appended, Change};
use crate::model::config::Config;
use crate::model::direct_edit::DirectEdit;
use crate::model::goal::{Alignment, Goal};
use crate::model::lease::lease_is_live;
use crate::model::merge_hold::MergeHold;
use crate::model::notes::{Anomaly, Discovery, Handoff, HumanNote, SpecChange};
use crate::model::record::{Fault, Reservation, Status, TaskRecord};
use crate::model::refusal::Refusal;
use crate::model::sprint::Sprint;
use crate::model::task::{Task, TaskBody};

/// The part of a task that decisions about other tasks need, cheap to read for thousands of tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSummary {
    pub id: TaskId,
    /// `None` if the file has an unknown status.
    pub status: Option<Status>,
    /// 1 (highest) to 5 (lowest).
    pub priority: i64,
    pub created: Option<Timestamp>,
    /// These must be MERGED first.
    pub depends_on: Vec<TaskId>,
    pub assigned_to: Option<AgentId>,
    /// The end of the coder's lease.
    pub lease_expires: Option<Timestamp>,
    /// The first step of a claim.
    pub reservation: Option<Reservation>,
    pub reviewing_by: Option<AgentId>,
    /// The end of the code reviewer's lease.
    pub review_lease_expires: Option<Timestamp>,
    pub approved_by: Option<Approver>,
    pub merge_held: Option<MergeHold>,
    pub failed_by: Vec<AgentId>,
    /// Code reviewers who no longer take its review.
    pub review_dropped_by: Vec<AgentId>,
    /// Code reviewers who have approved it, while others have to.
    pub approved_so_far: Vec<AgentId>,
    /// The coder who had it before it was unblocked for another one.
    pub previous_coder: Option<AgentId>,
    /// True if handoff notes of an earlier session are waiting.
    pub handoff_pending: bool,
    pub superseded_by: Vec<TaskId>,
    /// The write that last changed it.
    pub revision: Revision,
}

/// From the highest to the lowest.
pub const PRIORITIES: std::ops::RangeInclusive<i64> = 1..=5;

/// The priority of a task that names none.
pub const DEFAULT_PRIORITY: i64 = 3;

impl TaskSummary {
    pub fn of(id: &TaskId, record: &TaskRecord) -> Self {
        Self {
            id: id.clone(),
            status: record.status,
            priority: record.priority.unwrap_or(DEFAULT_PRIORITY),
            created: record.created,
            depends_on: record.depends_on.clone().unwrap_or_default(),
            assigned_to: record.assigned_to,
            lease_expires: record.lease_expires,
            reservation: record.reservation.clone(),
            reviewing_by: record.reviewing_by,
            review_lease_expires: record.review_lease_expires,
            approved_by: record.approved_by,
            merge_held: record.merge_held.clone(),
            failed_by: record.failed_by.clone().unwrap_or_default(),
            review_dropped_by: record.review_dropped_by.clone().unwrap_or_default(),
            approved_so_far: record.approvals.iter().flatten().map(|approval| approval.agent).collect(),
            previous_coder: record.previous_coder,
            handoff_pending: record.handoff_pending.unwrap_or(false),
            superseded_by: record.superseded_by.clone().unwrap_or_default(),
            revision: record.revision.unwrap_or_default(),
        }
    }

    pub fn is(&self, status: Status) -> bool {
        self.status == Some(status)
    }

    /// True if this agent is its coder or its code reviewer.
    pub fn is_held_by(&self, agent: AgentId) -> bool {
        (self.is(Status::Claimed) && self.assigned_to == Some(agent))
            || (self.is(Status::ReadyForReview) && self.reviewing_by == Some(agent))
    }

    /// The claim that is under way, if any.
    pub fn reserved(&self, now: Timestamp) -> Option<&Reservation> {
        self.reservation.as_ref().filter(|reservation| reservation.is_live(now))
    }

    /// True if no code reviewer has claimed it, or the reviewer's lease has expired.
    pub fn review_is_free(&self, now: Timestamp) -> bool {
        self.reviewing_by.is_none()
            || self.review_lease_expires.is_none_or(|expires| !lease_is_live(expires, now))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct TaskSlot {
    pub summary: TaskSummary,
    /// Only loaded if a command needs it. Separate, so that thousands of summaries stay close together in
    /// memory, and shared between one read of the blackboard and the next.
    pub body: Option<Arc<TaskBody>>,
}

/// The sections that a command may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs, reason = "each is the key in the file")]
pub enum Section {
    Agents,
    Config,
    Goal,
    Sprint,
    CircuitBreaker,
    Discovered,
    Handoff,
    DirectEdits,
}

impl Section {
    pub const ALL: &'static [Section] = <Section as strum::VariantArray>::VARIANTS;

    pub fn key(self) -> &'static str {
        self.into()
    }
}

/// The keys at the top of the file that the program knows.
pub(crate) const TOP_KEYS: [&str; 15] = [
    "version",
    "revision",
    "goal",
    "tasks",
    "agents",
    "discovered",
    "handoff",
    "human_notes",
    "spec_changes",
    "anomalies",
    "sprint",
    "circuit_breaker",
    "config",
    "archived",
    "direct_edits",
];

/// A section that may not have been read, or could not be understood.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Loaded<T> {
    #[default]
    Absent,
    Ready(T),
    /// In the file, but broken.
    Broken(Fault),
}

impl<T> Loaded<T> {
    pub fn get(&self, section: Section) -> Result<&T, Refusal> {
        match self {
            Loaded::Ready(content) => Ok(content),
            Loaded::Absent => Err(Refusal::NotLoaded { what: section.key().to_owned() }),
            Loaded::Broken(fault) => {
                Err(Refusal::BrokenSection { section: section.key(), fault: fault.message.clone() })
            }
        }
    }

    pub fn ready(&self) -> Option<&T> {
        match self {
            Loaded::Ready(content) => Some(content),
            Loaded::Absent | Loaded::Broken(_) => None,
        }
    }
}

impl<T> Loaded<Vec<T>> {
    /// The entries; none if there is no content.
    pub fn entries(&self) -> std::slice::Iter<'_, T> {
        self.ready().map(Vec::as_slice).unwrap_or_default().iter()
    }
}

impl<K, V> Loaded<IndexMap<K, V>> {
    /// The entries; none if there is no content.
    pub fn entries(&self) -> map::Iter<'_, K, V> {
        self.ready().map_or(map::Slice::new(), IndexMap::as_slice).iter()
    }
}

/// The part of the blackboard that a command sees.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Board {
    pub version: FileVersion,
    pub revision: Revision,
    /// All tasks, in the order of the file.
    pub tasks: IndexMap<TaskId, TaskSlot>,
    /// Tasks whose bodies were moved to the archive, and the state that they ended in.
    pub archived: IndexMap<TaskId, Status>,
    pub agents: Loaded<IndexMap<AgentId, AgentRecord>>,
    pub config: Loaded<Config>,
    pub goal: Loaded<Goal>,
    pub sprint: Loaded<Sprint>,
    pub circuit_breaker: Loaded<CircuitBreaker>,
    pub discovered: Loaded<Vec<Discovery>>,
    pub handoff: Loaded<IndexMap<TaskId, Handoff>>,
    pub direct_edits: Loaded<Vec<DirectEdit>>,
}

impl Board {
    pub fn summary(&self, task: &TaskId) -> Option<&TaskSummary> {
        self.tasks.get(task).map(|slot| &slot.summary)
    }

    /// All summaries, in the order of the file.
    pub fn summaries(&self) -> impl Iterator<Item = &TaskSummary> {
        self.tasks.values().map(|slot| &slot.summary)
    }

    /// The tasks in that state, in the order of the file.
    pub fn in_status(&self, status: Status) -> impl Iterator<Item = TaskId> {
        self.summaries().filter(move |summary| summary.is(status)).map(|summary| summary.id.clone())
    }

    /// The status of a live or archived task.
    pub fn status(&self, task: &TaskId) -> Option<Status> {
        self.archived.get(task).copied().or_else(|| self.summary(task).and_then(|summary| summary.status))
    }

    /// True if a live or an archived task has this name.
    pub fn knows(&self, task: &TaskId) -> bool {
        self.tasks.contains_key(task) || self.archived.contains_key(task)
    }

    /// The record of a task as it was read, faults included.
    pub fn body(&self, task: &TaskId) -> Result<&TaskBody, Refusal> {
        match self.tasks.get(task) {
            Some(TaskSlot { body: Some(body), .. }) => Ok(body.as_ref()),
            Some(TaskSlot { body: None, .. }) => Err(Refusal::NotLoaded { what: task.to_string() }),
            None if self.archived.contains_key(task) => Err(Refusal::Archived { task: task.clone() }),
            None => Err(Refusal::UnknownTask { task: task.clone() }),
        }
    }

    pub fn task(&self, task: &TaskId) -> Result<Task, Refusal> {
        Task::from_body(task, self.body(task)?)
    }

    /// The task that an agent's entry says it holds.
    pub fn held_by(&self, agent: AgentId) -> Option<&TaskId> {
        self.agents.ready()?.get(&agent)?.current_task.as_ref()
    }

    /// Dependencies of a task that are not MERGED.
    pub fn unmet<'a>(&'a self, summary: &'a TaskSummary) -> impl Iterator<Item = &'a TaskId> {
        summary.depends_on.iter().filter(|dependency| self.status(dependency) != Some(Status::Merged))
    }

    /// Puts a task into the board, in its place or at the end.
    pub fn put(&mut self, id: TaskId, record: TaskRecord) {
        let summary = TaskSummary::of(&id, &record);
        let body = Some(Arc::new(TaskBody::new(record, Vec::new())));
        self.tasks.insert(id, TaskSlot { summary, body });
    }
}

/// Declares the accessors of the sections: each returns the content, or the reason that there is none.
macro_rules! sections {
    ($($name:ident = $field:ident: $section:ident, $type:ty;)+) => {
        #[allow(missing_docs, clippy::missing_errors_doc, reason = "each is the section of that name")]
        impl Board {
            $(pub fn $name(&self) -> Result<&$type, Refusal> {
                self.$field.get(Section::$section)
            })+
        }
    };
}

sections! {
    agents = agents: Agents, IndexMap<AgentId, AgentRecord>;
    config = config: Config, Config;
    goal = goal: Goal, Goal;
    sprint = sprint: Sprint, Sprint;
    circuit_breaker = circuit_breaker: CircuitBreaker, CircuitBreaker;
    discovered = discovered: Discovered, Vec<Discovery>;
    handoffs = handoff: Handoff, IndexMap<TaskId, Handoff>;
    direct_edits = direct_edits: DirectEdits, Vec<DirectEdit>;
}

/// Lists that only grow. Read whole for screens and prompts, never for a change.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Journal {
    pub anomalies: Vec<Anomaly>,
    pub human_notes: Vec<HumanNote>,
    pub spec_changes: Vec<SpecChange>,
    pub alignment_history: Vec<Alignment>,
    /// Entries that could not be understood.
    pub faults: Vec<Fault>,
}

/// The whole blackboard, for screens, prompts and supervisors.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    pub board: Board,
    pub journal: Journal,
}

impl State {
    /// The loaded tasks, in the order of the file.
    pub fn bodies(&self) -> impl Iterator<Item = (&TaskId, &TaskBody)> {
        self.board.tasks.iter().filter_map(|(id, slot)| Some((id, slot.body.as_deref()?)))
    }

    /// Carries out a change in memory, as the store does in the file.
    pub fn apply(&mut self, change: &Change) {
        let board = &mut self.board;
        board.revision = change.revision;
        board.version = change.version.unwrap_or(board.version);
        for (id, record) in &change.tasks {
            board.put(id.clone(), record.clone());
        }
        for id in &change.archived {
            if let Some(slot) = board.tasks.shift_remove(id) {
                board.archived.insert(id.clone(), slot.summary.status.unwrap_or(Status::Abandoned));
            }
        }
        if let Loaded::Ready(agents) = &mut board.agents {
            for (id, entry) in &change.agents {
                match entry {
                    Some(entry) => drop(agents.insert(*id, entry.clone())),
                    None => drop(agents.shift_remove(id)),
                }
            }
        }
        replace(&mut board.goal, change.goal.as_ref());
        replace(&mut board.sprint, change.sprint.as_ref());
        replace(&mut board.circuit_breaker, change.circuit_breaker.as_ref());
        replace(&mut board.discovered, change.discovered.as_ref());
        replace(&mut board.handoff, change.handoff.as_ref());
        replace(&mut board.direct_edits, change.direct_edits.as_ref());
        if change.closed_goal.is_some() {
            // They go to the archive with their goal.
            self.journal.alignment_history.clear();
        }
        for note in &change.appended {
            self.journal.append(note.clone());
        }
    }
}

impl Journal {
    fn append(&mut self, note: Appended) {
        match note {
            Appended::Anomaly(anomaly) => self.anomalies.push(anomaly),
            Appended::HumanNote(note) => self.human_notes.push(note),
            Appended::SpecChange(change) => self.spec_changes.push(change),
            Appended::Alignment(alignment) => self.alignment_history.push(alignment),
        }
    }
}

fn replace<T: Clone>(place: &mut Loaded<T>, new: Option<&T>) {
    if let Some(new) = new {
        *place = Loaded::Ready(new.clone());
    }
}

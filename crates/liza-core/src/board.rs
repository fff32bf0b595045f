//! The blackboard as rules see it: the heads of all tasks, the bodies of those that a command touches, and the
//! sections that it needs.
//!
//! A [`Board`] may be partly loaded; asking it for what was not loaded is a refusal, never a guess. A [`State`] is
//! the whole file.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::agent::AgentRecord;
use crate::breaker::CircuitBreaker;
use crate::change::{Appended, Change};
use crate::config::Config;
use crate::goal::{Alignment, Goal};
use crate::ids::{AgentId, Revision, TaskId};
use crate::notes::{Anomaly, Discovery, Handoff, HumanNote, SpecChange};
use crate::record::{Reservation, Status, TaskRecord};
use crate::refusal::Refusal;
use crate::sprint::Sprint;
use crate::task::Task;
use crate::time::Timestamp;

/// Something in the file that could not be understood, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The key that is wrong, such as `status`.
    pub field: String,
    /// What is wrong with it, with line and column where they are known.
    pub message: String,
}

/// The part of a task that decisions about other tasks need, cheap to read for thousands of tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// Its name.
    pub id: TaskId,
    /// Its state; nothing where the file says something unknown.
    pub status: Option<Status>,
    /// 1 (highest) to 5 (lowest).
    pub priority: i64,
    /// When it was written down.
    pub created: Option<Timestamp>,
    /// What must be MERGED first.
    pub depends_on: Vec<TaskId>,
    /// The coder.
    pub assigned_to: Option<AgentId>,
    /// Until when the coder owns it.
    pub lease_expires: Option<Timestamp>,
    /// The first half of a claim.
    pub reservation: Option<Reservation>,
    /// The code reviewer who is at it.
    pub reviewing_by: Option<AgentId>,
    /// Until when the code reviewer owns the review.
    pub review_lease_expires: Option<Timestamp>,
    /// Who approved it.
    pub approved_by: Option<AgentId>,
    /// The coders who failed at it.
    pub failed_by: Vec<AgentId>,
    /// Whether notes of an earlier session wait to be read.
    pub handoff_pending: bool,
    /// The tasks that took its place.
    pub superseded_by: Vec<TaskId>,
    /// The write that last changed it.
    pub revision: Revision,
}

/// The priority of a task that names none.
pub const DEFAULT_PRIORITY: i64 = 3;

impl Head {
    /// The head of a task whose body is known.
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
            failed_by: record.failed_by.clone().unwrap_or_default(),
            handoff_pending: record.handoff_pending.unwrap_or(false),
            superseded_by: record.superseded_by.clone().unwrap_or_default(),
            revision: record.revision.unwrap_or_default(),
        }
    }

    /// Whether the task is in that state.
    pub fn is(&self, status: Status) -> bool {
        self.status == Some(status)
    }

    /// Whether this agent has it in hand, as its coder or as its code reviewer.
    pub fn is_held_by(&self, agent: AgentId) -> bool {
        (self.is(Status::Claimed) && self.assigned_to == Some(agent))
            || (self.is(Status::ReadyForReview) && self.reviewing_by == Some(agent))
    }

    /// Whether somebody else is in the middle of claiming it.
    pub fn reserved(&self, now: Timestamp) -> Option<&Reservation> {
        self.reservation.as_ref().filter(|reservation| reservation.is_live(now))
    }

    /// Whether nobody reviews it, or whoever did has lost the lease.
    pub fn review_is_free(&self, now: Timestamp) -> bool {
        self.reviewing_by.is_none() || self.review_lease_expires.is_none_or(|expires| expires < now)
    }
}

/// The whole of a task, with what in it could not be understood.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Body {
    /// What could be read.
    pub record: TaskRecord,
    /// What could not.
    pub faults: Vec<Fault>,
}

/// A task on the board.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// Always there.
    pub head: Head,
    /// Only where a command asked for it; apart, so that thousands of heads stay close together in memory, and shared
    /// between one look at the blackboard and the next.
    pub body: Option<Arc<Body>>,
}

/// The sections that a command may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// `agents`
    Agents,
    /// `config`
    Config,
    /// `goal`
    Goal,
    /// `sprint`
    Sprint,
    /// `circuit_breaker`
    CircuitBreaker,
    /// `discovered`
    Discovered,
    /// `handoff`
    Handoff,
}

impl Section {
    /// All of them.
    pub const ALL: [Section; 7] = [
        Section::Agents,
        Section::Config,
        Section::Goal,
        Section::Sprint,
        Section::CircuitBreaker,
        Section::Discovered,
        Section::Handoff,
    ];

    /// The key in the file.
    pub fn key(self) -> &'static str {
        match self {
            Section::Agents => "agents",
            Section::Config => "config",
            Section::Goal => "goal",
            Section::Sprint => "sprint",
            Section::CircuitBreaker => "circuit_breaker",
            Section::Discovered => "discovered",
            Section::Handoff => "handoff",
        }
    }
}

/// A section that may not have been read, or could not be understood.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Loaded<T> {
    /// Not asked for.
    #[default]
    Absent,
    /// There it is.
    Ready(T),
    /// In the file, but broken.
    Broken(Fault),
}

impl<T> Loaded<T> {
    /// The content, or why there is none.
    pub fn get(&self, section: Section) -> Result<&T, Refusal> {
        match self {
            Loaded::Ready(content) => Ok(content),
            Loaded::Absent => Err(Refusal::NotLoaded { what: section.key().to_owned() }),
            Loaded::Broken(fault) => {
                Err(Refusal::BrokenSection { section: section.key(), fault: fault.message.clone() })
            }
        }
    }

    /// The content, where it is there.
    pub fn ready(&self) -> Option<&T> {
        match self {
            Loaded::Ready(content) => Some(content),
            Loaded::Absent | Loaded::Broken(_) => None,
        }
    }
}

/// What a command sees of the blackboard.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Board {
    /// The number of the last write.
    pub revision: Revision,
    /// All tasks, in the order of the file.
    pub tasks: IndexMap<TaskId, Slot>,
    /// Tasks whose bodies were moved to the archive, and the state that they ended in.
    pub archived: IndexMap<TaskId, Status>,
    /// The agents by name.
    pub agents: Loaded<IndexMap<AgentId, AgentRecord>>,
    /// The settings.
    pub config: Loaded<Config>,
    /// The goal.
    pub goal: Loaded<Goal>,
    /// The sprint.
    pub sprint: Loaded<Sprint>,
    /// The breaker.
    pub circuit_breaker: Loaded<CircuitBreaker>,
    /// The discoveries.
    pub discovered: Loaded<Vec<Discovery>>,
    /// The handoff notes by task.
    pub handoff: Loaded<IndexMap<TaskId, Handoff>>,
}

impl Board {
    /// The head of that task, if it is on the board.
    pub fn head(&self, task: &TaskId) -> Option<&Head> {
        self.tasks.get(task).map(|slot| &slot.head)
    }

    /// All heads, in the order of the file.
    pub fn heads(&self) -> impl Iterator<Item = &Head> {
        self.tasks.values().map(|slot| &slot.head)
    }

    /// The state of a task, live or archived.
    pub fn status(&self, task: &TaskId) -> Option<Status> {
        self.archived.get(task).copied().or_else(|| self.head(task).and_then(|head| head.status))
    }

    /// Whether the name is taken, by a live task or an archived one.
    pub fn knows(&self, task: &TaskId) -> bool {
        self.tasks.contains_key(task) || self.archived.contains_key(task)
    }

    /// The record of a task as it was read, faults and all.
    pub fn body(&self, task: &TaskId) -> Result<&Body, Refusal> {
        match self.tasks.get(task) {
            Some(Slot { body: Some(body), .. }) => Ok(body.as_ref()),
            Some(Slot { body: None, .. }) => Err(Refusal::NotLoaded { what: task.to_string() }),
            None if self.archived.contains_key(task) => Err(Refusal::Archived { task: task.clone() }),
            None => Err(Refusal::UnknownTask { task: task.clone() }),
        }
    }

    /// The typed task; refused where its record lacks what its state needs.
    pub fn task(&self, task: &TaskId) -> Result<Task, Refusal> {
        Task::from_body(task, self.body(task)?)
    }

    /// The agents by name.
    pub fn agents(&self) -> Result<&IndexMap<AgentId, AgentRecord>, Refusal> {
        self.agents.get(Section::Agents)
    }

    /// The settings.
    pub fn config(&self) -> Result<&Config, Refusal> {
        self.config.get(Section::Config)
    }

    /// Dependencies of a task that are not MERGED.
    pub fn unmet<'a>(&'a self, head: &'a Head) -> impl Iterator<Item = &'a TaskId> {
        head.depends_on.iter().filter(|dependency| self.status(dependency) != Some(Status::Merged))
    }

    /// Writes a task into the board, at its place or at the end.
    pub fn put(&mut self, id: TaskId, record: TaskRecord) {
        let head = Head::of(&id, &record);
        self.tasks.insert(id, Slot { head, body: Some(Arc::new(Body { record, faults: Vec::new() })) });
    }
}

/// What only grows, and is read whole only by those who look, never by those who change.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Journal {
    /// Observations.
    pub anomalies: Vec<Anomaly>,
    /// The human's notes.
    pub human_notes: Vec<HumanNote>,
    /// Changes of the specification.
    pub spec_changes: Vec<SpecChange>,
    /// How the work stood to the goal.
    pub alignment_history: Vec<Alignment>,
    /// Entries that could not be understood.
    pub faults: Vec<Fault>,
}

/// The whole blackboard, for those who look at it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    /// What rules see.
    pub board: Board,
    /// What only grows.
    pub journal: Journal,
}

impl State {
    /// The tasks that could be read, with their names.
    pub fn records(&self) -> impl Iterator<Item = (&TaskId, &TaskRecord)> {
        self.board.tasks.iter().filter_map(|(id, slot)| Some((id, &slot.body.as_ref()?.record)))
    }

    /// Carries out a change in memory: what the store does to the file.
    pub fn absorb(&mut self, change: &Change) {
        let board = &mut self.board;
        board.revision = change.revision;
        for (id, record) in &change.tasks {
            board.put(id.clone(), record.clone());
        }
        for id in &change.archived {
            if let Some(slot) = board.tasks.shift_remove(id) {
                board.archived.insert(id.clone(), slot.head.status.unwrap_or(Status::Abandoned));
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
        if change.closed_goal.is_some() {
            // It goes to the archive with its goal.
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

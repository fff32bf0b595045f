//! A whole blackboard in memory with a clock that the test sets. Every command runs twice: on the whole board
//! and on one reduced to its scope. Checks every write: append-only histories, revisions, one log line.

mod steps;

use std::collections::BTreeSet;

use liza_core::model::{
    Actor, AgentId, AgentRecord, Board, Change, Config, Effect, Generation, Goal, HistoryEvent, LogEntry,
    Refusal, Revision, Role, Seconds, Section, Sha, Sprint, State, Status, StopFiles, TaskRecord, TaskSlot,
    Timestamp, Worktree,
};
use liza_core::protocol::{Command, Decided, NewTask, Operation, Reply, Request, apply};
use liza_core::rules::invariants::{DiskFacts, Violation, introduced, validate};
use liza_core::rules::metrics::sprint_metrics;

use crate::boards;
pub use crate::boards::{sha, task};
pub use steps::*;

pub fn coder(number: u32) -> AgentId {
    AgentId::new(Role::Coder, number)
}

pub fn reviewer(number: u32) -> AgentId {
    AgentId::new(Role::CodeReviewer, number)
}

pub fn planner() -> AgentId {
    AgentId::new(Role::Planner, 1)
}

/// The head of the integration branch that claims start from.
pub fn base() -> Sha {
    sha('0')
}

/// A task with all gates.
pub fn ready() -> NewTask {
    NewTask {
        description: "Add retries".into(),
        spec_ref: Some("specs/retry.md#auth".into()),
        done_when: Some("it retries three times".into()),
        scope: Some("the client".into()),
        ..NewTask::default()
    }
}

pub fn draft() -> NewTask {
    NewTask { draft: true, ..ready() }
}

pub const FEEDBACK: &str = "Blockers: 1\nPrior Feedback Status:\n- RESOLVED: all of it";

#[derive(Debug, PartialEq)]
pub enum No {
    Refused(Refusal),
    Violates(Vec<Violation>),
}

/// A decision that was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    pub change: Change,
    pub answer: Result<Reply, Refusal>,
}

impl std::ops::Deref for Done {
    type Target = Change;

    fn deref(&self) -> &Change {
        &self.change
    }
}

impl Done {
    /// One field of the reply, as in JSON.
    pub fn reply(&self, key: &str) -> serde_json::Value {
        serde_json::to_value(self.answer.as_ref().unwrap()).unwrap()[key].clone()
    }
}

#[derive(Debug, Clone, Default)]
pub struct Disk {
    pub worktrees: BTreeSet<Worktree>,
    pub missing_specs: BTreeSet<String>,
}

impl DiskFacts for Disk {
    fn worktree_exists(&self, worktree: &Worktree) -> bool {
        self.worktrees.contains(worktree)
    }

    fn spec_exists(&self, path: &str) -> bool {
        !self.missing_specs.contains(path)
    }
}

#[derive(Debug, Clone)]
pub struct World {
    pub state: State,
    pub now: Timestamp,
    pub stop_files: StopFiles,
    pub if_revision: Option<Revision>,
    pub disk: Disk,
    pub log: Vec<LogEntry>,
}

impl World {
    /// A goal, an empty sprint, no agents.
    pub fn empty() -> Self {
        let now: Timestamp = "2025-01-17T14:00:00Z".parse().unwrap();
        let state = boards::empty("Retries everywhere", now);
        let (disk, log) = (Disk::default(), Vec::new());
        Self { state, now, stop_files: StopFiles::default(), if_revision: None, disk, log }
    }

    /// A planner, two coders and two code reviewers, and one task `t` that any coder may claim.
    pub fn new() -> Self {
        let mut world = Self::empty();
        for agent in [planner(), coder(1), coder(2), reviewer(1), reviewer(2)] {
            world.register(agent);
        }
        world.add("t", ready());
        world
    }

    pub fn agent(&self, id: AgentId) -> Actor {
        Actor::Agent(id, self.generation(id))
    }

    pub fn supervisor(&self, id: AgentId) -> Actor {
        Actor::Supervisor(id, self.generation(id))
    }

    pub fn generation(&self, id: AgentId) -> Generation {
        self.entry(id).generation.unwrap()
    }

    pub fn entry(&self, id: AgentId) -> &AgentRecord {
        self.state.board.agents().unwrap().get(&id).unwrap_or_else(|| panic!("{id} is not registered"))
    }

    pub fn record(&self, id: &str) -> &TaskRecord {
        boards::record_of(&self.state, id)
    }

    pub fn status(&self, id: &str) -> Status {
        self.state.board.status(&task(id)).unwrap()
    }

    pub fn events(&self, id: &str) -> Vec<&str> {
        self.record(id).history.iter().flatten().map(|event| event.event.as_str()).collect()
    }

    pub fn last_event(&self, id: &str) -> &HistoryEvent {
        self.record(id).history.as_ref().and_then(|history| history.last()).unwrap()
    }

    pub fn last_log(&self) -> &LogEntry {
        self.log.last().unwrap()
    }

    pub fn sprint(&self) -> &Sprint {
        self.state.board.sprint.ready().unwrap()
    }

    pub fn goal(&self) -> &Goal {
        self.state.board.goal.ready().unwrap()
    }

    pub fn violations(&self) -> Vec<String> {
        validate(&self.state, &self.disk, self.now).iter().map(ToString::to_string).collect()
    }

    pub fn config(&mut self) -> &mut Config {
        boards::config(&mut self.state)
    }

    pub fn edit_sprint(&mut self) -> &mut Sprint {
        boards::sprint(&mut self.state)
    }

    pub fn edit_goal(&mut self) -> &mut Goal {
        boards::goal(&mut self.state)
    }

    pub fn edit_agent(&mut self, id: AgentId, change: impl FnOnce(&mut AgentRecord)) {
        change(boards::entry(&mut self.state, &id.to_string()));
    }

    pub fn edit_record(&mut self, id: &str, change: impl FnOnce(&mut TaskRecord)) {
        boards::edit_task(&mut self.state, id, change);
        self.recount();
    }

    /// After an edit the store reads the whole file, and the next write counts the metrics again.
    pub fn recount(&mut self) {
        let metrics = sprint_metrics(&self.state);
        self.edit_sprint().metrics = metrics;
    }

    pub fn pass(&mut self, seconds: u64) {
        self.now = self.now + Seconds(seconds);
    }

    /// Passes time while the supervisors of these agents renew their leases.
    pub fn pass_with(&mut self, seconds: u64, alive: &[AgentId]) {
        self.pass(seconds);
        for id in alive {
            self.heartbeat(*id);
        }
    }

    fn request(&self, actor: Actor, command: Command) -> Request<Command> {
        Request { actor, now: self.now, stop_files: self.stop_files, if_revision: self.if_revision, command }
    }

    pub fn run(&mut self, actor: Actor, command: Command) -> Result<Done, No> {
        let request = self.request(actor, command);
        let outcome = apply(&self.state.board, &request);
        let reduced = self.reduced(&request);
        assert_eq!(apply(&reduced, &request), outcome, "its scope loads too little: {request:?}");
        let Decided { change, answer } = outcome.map_err(No::Refused)?;
        let done = Done { change, answer };
        if done.change.is_empty() {
            return Ok(done);
        }
        let wrong = introduced(&self.state.board, &done.change, &self.disk, self.now);
        let wrong_reduced = introduced(&reduced, &done.change, &self.disk, self.now);
        assert_eq!(wrong_reduced, wrong, "its scope loads too little: {request:?}");
        if !wrong.is_empty() {
            return Err(No::Violates(wrong));
        }
        self.check_write(&request.command, &done.change);
        self.write(&done);
        Ok(done)
    }

    /// The board reduced to the scope of the request.
    fn reduced(&self, request: &Request<Command>) -> Board {
        let whole = &self.state.board;
        let slots = whole.tasks.iter();
        let bare =
            slots.map(|(id, slot)| (id.clone(), TaskSlot { summary: slot.summary.clone(), body: None }));
        let mut board = Board {
            version: whole.version,
            revision: whole.revision,
            tasks: bare.collect(),
            archived: whole.archived.clone(),
            ..Board::default()
        };
        for section in request.sections() {
            match section {
                Section::Agents => board.agents = whole.agents.clone(),
                Section::Config => board.config = whole.config.clone(),
                Section::Goal => board.goal = whole.goal.clone(),
                Section::Sprint => board.sprint = whole.sprint.clone(),
                Section::CircuitBreaker => board.circuit_breaker = whole.circuit_breaker.clone(),
                Section::Discovered => board.discovered = whole.discovered.clone(),
                Section::Handoff => board.handoff = whole.handoff.clone(),
                Section::DirectEdits => board.direct_edits = whole.direct_edits.clone(),
            }
        }
        for id in request.bodies(&board) {
            board.tasks[&id].body = whole.tasks[&id].body.clone();
        }
        if let Some(only) = request.summaries(&board) {
            board.tasks.retain(|id, _| only.contains(id));
        }
        board
    }

    fn check_write(&self, command: &Command, change: &Change) {
        let board = &self.state.board;
        assert_eq!(change.revision, board.revision.next());
        let quiet = matches!(
            command,
            Command::Heartbeat(_)
                | Command::ReadNotes(_)
                | Command::RecordUsage(_)
                | Command::RecordSession(_)
        );
        for (id, record) in &change.tasks {
            let history = record.history.clone().unwrap_or_default();
            let old = board.body(id).ok().map(|body| body.record().clone()).unwrap_or_default();
            let old_history = old.history.unwrap_or_default();
            assert!(history.starts_with(&old_history), "{id}: history is append-only");
            let revision = if quiet { old.revision } else { Some(change.revision) };
            assert_eq!(record.revision, revision, "{id}: the revision that last changed it");
            if old.status != record.status {
                assert!(history.len() > old_history.len(), "{id}: a transition without an event");
                assert!(change.log.is_some(), "{id}: a transition without a log entry");
            }
        }
        if let Some(log) = &change.log {
            assert!(!log.detail.contains('\n'), "{log:?}");
            assert_eq!(log.timestamp, self.now);
            let of_one = command.target();
            assert!(
                of_one.is_none() || log.task.as_ref() == of_one,
                "{command:?} is logged without its task"
            );
        }
    }

    /// Applies a decision as the store and the engine do.
    fn write(&mut self, done: &Done) {
        let before = validate(&self.state, &self.disk, self.now);
        if let Ok(Reply::ReserveTask(_) | Reply::CreateWorktree(_)) = &done.answer {
            let tasks = done.change.tasks.keys();
            self.disk.worktrees.extend(tasks.map(Worktree::of));
        }
        for effect in &done.change.effects {
            match effect {
                Effect::RemoveWorktree(task) => drop(self.disk.worktrees.remove(&Worktree::of(task))),
                Effect::RemoveStopFile(_) | Effect::WriteSprintSummary | Effect::CompleteSprint => {}
            }
        }
        self.state.apply(&done.change);
        self.log.extend(done.change.log.clone());
        if let Some(sprint) = self.state.board.sprint.ready() {
            let counted = sprint_metrics(&self.state);
            assert_eq!(sprint.metrics, counted, "the metrics are correct after every write: {done:?}");
        }
        let mut after = validate(&self.state, &self.disk, self.now);
        after.retain(|violation| !before.contains(violation));
        assert!(after.is_empty(), "`introduced` overlooked {after:?}");
    }

    /// Runs a command that must succeed.
    #[track_caller]
    pub fn must(&mut self, actor: Actor, command: Command) -> Done {
        match self.run(actor, command) {
            Ok(done) if done.answer.is_ok() => done,
            other => panic!("expected success, got {other:?}"),
        }
    }

    /// Runs a command that must be refused with that code and write nothing.
    #[track_caller]
    pub fn refused_with(&mut self, code: &str, actor: Actor, command: Command) -> Refusal {
        match self.run(actor, command) {
            Err(No::Refused(refusal)) => {
                assert_eq!(refusal.code(), code, "{refusal}");
                refusal
            }
            other => panic!("expected {code}, got {other:?}"),
        }
    }

    /// Runs a command that must be refused with that code although something is written.
    #[track_caller]
    pub fn refused_after_write(&mut self, code: &str, actor: Actor, command: Command) -> Done {
        let done = self.run(actor, command).expect("a written refusal");
        assert_eq!(done.answer.as_ref().err().map(Refusal::code), Some(code), "{done:?}");
        done
    }

    /// Runs a command that an invariant must stop; returns the violations.
    #[track_caller]
    pub fn violates(&mut self, actor: Actor, command: Command) -> Vec<String> {
        match self.run(actor, command) {
            Err(No::Violates(wrong)) => wrong.iter().map(ToString::to_string).collect(),
            other => panic!("expected a violation, got {other:?}"),
        }
    }
}

//! Invariants of the blackboard beyond its types.
//!
//! Works on records as read, so that a broken file can be loaded, shown and repaired. A write is refused for
//! the violations that it introduces ([`introduced`]), not for older ones; [`validate`] reports everything.

mod graph;
mod references;
mod task;
mod task_relations;

use std::fmt;

use crate::model::{
    AgentId, AgentRecord, AgentStatus, AnomalyType, Board, Change, Fault, LEASE_GRACE, Loaded, Sprint, State,
    Status, TaskBody, TaskId, Timestamp, Worktree, anomaly_names, detail_faults, lease_is_too_long,
};
use crate::rules::approvals::lacks_approval;
use crate::text::count;

pub use task_relations::TaskRelations;

/// The facts on the disk that the rules need.
pub trait DiskFacts {
    fn worktree_exists(&self, worktree: &Worktree) -> bool;
    /// True if the file of a `spec_ref` (anchor stripped) exists below the project root.
    fn spec_exists(&self, path: &str) -> bool;
}

/// The facts of a project whose work moves through a remote: a worktree may be on another machine.
struct SharedWork<'a>(&'a dyn DiskFacts);

impl DiskFacts for SharedWork<'_> {
    fn worktree_exists(&self, _worktree: &Worktree) -> bool {
        true
    }

    fn spec_exists(&self, path: &str) -> bool {
        self.0.spec_exists(path)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Task(TaskId),
    Agent(AgentId),
    /// A section, or an entry of one.
    Section(String),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Task(id) => id.fmt(f),
            Subject::Agent(id) => id.fmt(f),
            Subject::Section(name) => f.write_str(name),
        }
    }
}

/// The number of violations, for `validate`, `doctor` and NEEDS YOU.
pub fn count_violations(found: &[Violation]) -> String {
    let all = count(found.len(), "violation");
    match found.iter().filter(|violation| violation.has_alarm).count() {
        0 => all,
        1 => format!("{all}, 1 of them with an alarm of its own"),
        own => format!("{all}, {own} of them with alarms of their own"),
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    pub subject: Subject,
    pub message: String,
    /// True if it has its own alarm besides INVALID STATE: an agent has gone, or an approval is missing.
    pub has_alarm: bool,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.message)
    }
}

impl Violation {
    fn task(id: &TaskId, message: impl Into<String>) -> Self {
        Self { subject: Subject::Task(id.clone()), message: message.into(), has_alarm: false }
    }

    fn agent(id: AgentId, message: impl Into<String>) -> Self {
        Self { subject: Subject::Agent(id), message: message.into(), has_alarm: false }
    }

    fn section(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { subject: Subject::Section(name.into()), message: message.into(), has_alarm: false }
    }
}

/// The board before a change, or as the change leaves it.
struct BoardView<'a> {
    board: &'a Board,
    change: Option<&'a Change>,
    extent: Extent<'a>,
}

impl<'a> BoardView<'a> {
    fn is(&self, id: &TaskId, status: Status) -> bool {
        match self.change.and_then(|change| change.tasks.get(id)) {
            Some(record) => record.status == Some(status),
            None => self.board.summary(id).is_some_and(|summary| summary.is(status)),
        }
    }

    fn depends_on(&self, id: &TaskId) -> &'a [TaskId] {
        match self.change.and_then(|change| change.tasks.get(id)) {
            Some(record) => record.depends_on.as_deref().unwrap_or_default(),
            None => self.board.summary(id).map(|summary| summary.depends_on.as_slice()).unwrap_or_default(),
        }
    }

    fn status(&self, id: &TaskId) -> Option<Status> {
        match self.change.and_then(|change| change.tasks.get(id)) {
            Some(record) => record.status,
            None => self.board.status(id),
        }
    }

    fn knows(&self, id: &TaskId) -> bool {
        let is_changed = || self.change.is_some_and(|change| change.tasks.contains_key(id));
        let is_elsewhere = || match self.extent {
            Extent::Whole => false,
            Extent::Part(exists) => exists(id),
        };
        self.board.knows(id) || is_changed() || is_elsewhere()
    }

    fn agents(&self) -> Vec<(AgentId, &'a AgentRecord)> {
        let mut agents: Vec<(AgentId, &AgentRecord)> = Vec::new();
        let changed = self.change.map(|change| &change.agents);
        for (id, entry) in self.board.agents.entries() {
            match changed.and_then(|changed| changed.get(id)) {
                Some(Some(new)) => agents.push((*id, new)),
                Some(None) => {}
                None => agents.push((*id, entry)),
            }
        }
        let known = |id: &AgentId| self.board.agents.ready().is_some_and(|agents| agents.contains_key(id));
        for (id, entry) in changed.into_iter().flatten() {
            if let Some(entry) = entry.as_ref().filter(|_| !known(id)) {
                agents.push((*id, entry));
            }
        }
        agents
    }

    fn sprint(&self) -> Option<&'a Sprint> {
        self.change.and_then(|change| change.sprint.as_ref()).or_else(|| self.board.sprint.ready())
    }

    fn goal_id(&self) -> Option<&'a str> {
        let goal = self.change.and_then(|change| change.goal.as_ref()).or_else(|| self.board.goal.ready());
        goal.map(|goal| goal.id.as_str())
    }
}

/// The loaded part of a blackboard.
#[derive(Clone, Copy)]
enum Extent<'a> {
    Whole,
    /// Only some tasks are loaded; the function tells which others exist.
    Part(&'a dyn Fn(&TaskId) -> bool),
}

/// All violations.
pub fn validate(state: &State, facts: &dyn DiskFacts, now: Timestamp) -> Vec<Violation> {
    let mut found = validate_edit(state, facts, now);
    found.extend(unapproved(state));
    found
}

/// The violations that no edit may introduce. A person may write APPROVED: that is no approval.
pub fn validate_edit(state: &State, facts: &dyn DiskFacts, now: Timestamp) -> Vec<Violation> {
    validate_extent(state, Extent::Whole, facts, now)
}

/// Tasks that are APPROVED or MERGED by their status alone.
fn unapproved(state: &State) -> impl Iterator<Item = Violation> {
    let lacking = state.bodies().filter(|(_, body)| lacks_approval(body.record()));
    lacking.map(|(id, body)| {
        let what = match body.record().status {
            Some(Status::Merged) => "MERGED task has no record of an approval or a merge",
            Some(_) | None => "APPROVED task has no approval of its commit, so it is not merged",
        };
        let message =
            format!("{what}; approve it or send it back: liza submit-verdict {id} APPROVED or REJECTED");
        Violation { has_alarm: true, ..Violation::task(id, message) }
    })
}

/// The same for a blackboard of which only some tasks are loaded; `exists` is true for the ID of a live task.
///
/// May report an unloaded dependency of a claimed task as not merged: only what an edit adds counts.
pub fn validate_part(
    state: &State,
    exists: &dyn Fn(&TaskId) -> bool,
    facts: &dyn DiskFacts,
    now: Timestamp,
) -> Vec<Violation> {
    validate_extent(state, Extent::Part(exists), facts, now)
}

fn validate_extent(
    state: &State,
    extent: Extent<'_>,
    facts: &dyn DiskFacts,
    now: Timestamp,
) -> Vec<Violation> {
    let board = &state.board;
    let shared = SharedWork(facts);
    let has_remote = board.config.ready().is_some_and(|config| config.remote.is_some());
    let facts = if has_remote { &shared } else { facts };
    let view = BoardView { board, change: None, extent };
    let mut found = Vec::new();
    for (id, slot) in &board.tasks {
        if let Some(body) = &slot.body {
            found.extend(body.faults().iter().map(|fault| Violation::task(id, &fault.message)));
            task::check(id, body.record(), facts, &mut found);
        }
    }
    let all: Vec<&TaskId> = board.tasks.keys().collect();
    graph::check(&view, &all, &mut found);
    check_agents(&view, now, &mut found);
    check_plan(&view, &mut found);
    check_sections(board, &mut found);
    references::check_repeated(state, &mut found);
    references::check(&view, &mut found);
    check_journal(state, &mut found);
    found.dedup();
    found
}

/// The violations that a change adds.
pub fn introduced(board: &Board, change: &Change, facts: &dyn DiskFacts, now: Timestamp) -> Vec<Violation> {
    let touched: Vec<&TaskId> = change.tasks.keys().collect();
    let view = |change| BoardView { board, change, extent: Extent::Whole };
    let before = violations_near(&view(None), &touched, facts, now);
    let mut after = violations_near(&view(Some(change)), &touched, facts, now);
    after.retain(|violation| !before.contains(violation));
    after
}

/// The violations of these tasks, of the agents and of the plan.
fn violations_near<'t>(
    view: &BoardView<'t>,
    tasks: &[&'t TaskId],
    facts: &dyn DiskFacts,
    now: Timestamp,
) -> Vec<Violation> {
    let mut found = Vec::new();
    for id in tasks.iter().copied() {
        let changed = view.change.and_then(|change| change.tasks.get(id));
        let old = || view.board.body(id).ok().map(TaskBody::record);
        if let Some(record) = changed.or_else(old) {
            task::check(id, record, facts, &mut found);
        }
    }
    graph::check(view, tasks, &mut found);
    check_agents(view, now, &mut found);
    if view.change.is_none_or(|change| change.sprint.is_some() || change.goal.is_some()) {
        check_plan(view, &mut found);
    }
    found
}

fn check_agents(view: &BoardView<'_>, now: Timestamp, found: &mut Vec<Violation>) {
    let agents = view.agents();
    for (id, entry) in &agents {
        check_agent(*id, entry, now, found);
        let Some(task) = &entry.current_task else { continue };
        let other = agents.iter().find(|(other, e)| other < id && e.current_task.as_ref() == Some(task));
        if let Some((other, _)) = other {
            found.push(Violation::task(task, format!("assigned to two agents, {other} and {id}")));
        }
    }
}

fn check_agent(id: AgentId, entry: &AgentRecord, now: Timestamp, found: &mut Vec<Violation>) {
    if entry.role != id.role() {
        found
            .push(Violation::agent(id, format!("its role is {}, but its ID says {}", entry.role, id.role())));
    } else if !AgentStatus::of_role(entry.role).contains(&entry.status) {
        found.push(Violation::agent(id, format!("a {} cannot be {}", entry.role, entry.status)));
    }
    if entry.status != AgentStatus::Working {
        return;
    }
    if entry.current_task.is_none() {
        found.push(Violation::agent(id, "WORKING agent has no current_task"));
    }
    match entry.lease_expires {
        None => found.push(Violation::agent(id, "WORKING agent has no lease_expires")),
        Some(expires) if lease_is_too_long(expires, now) => found.push(Violation::agent(
            id,
            format!("WORKING agent's lease runs until {expires}, which is longer than any lease"),
        )),
        Some(expires) if expires + LEASE_GRACE < now => {
            let gone = Violation::agent(id, format!("WORKING agent's lease ended at {expires}"));
            found.push(Violation { has_alarm: true, ..gone });
        }
        Some(_) => {}
    }
}

fn check_plan(view: &BoardView<'_>, found: &mut Vec<Violation>) {
    let Some(sprint) = view.sprint() else { return };
    for id in sprint.scope.planned.iter().chain(&sprint.scope.stretch).filter(|id| !view.knows(id)) {
        found.push(Violation::section("sprint", format!("scope names {id}, which does not exist")));
    }
    if let (Some(goal_ref), Some(goal)) = (sprint.goal_ref.as_deref(), view.goal_id())
        && goal_ref != goal
    {
        found.push(Violation::section("sprint", format!("goal_ref is {goal_ref}, but the goal is {goal}")));
    }
}

fn check_sections(board: &Board, found: &mut Vec<Violation>) {
    let mut broken = |name: &str, fault: Option<&Fault>| {
        found.extend(fault.map(|fault| Violation::section(name, &fault.message)));
    };
    broken("agents", fault_of(&board.agents));
    broken("config", fault_of(&board.config));
    broken("goal", fault_of(&board.goal));
    broken("sprint", fault_of(&board.sprint));
    broken("circuit_breaker", fault_of(&board.circuit_breaker));
    broken("discovered", fault_of(&board.discovered));
    broken("handoff", fault_of(&board.handoff));
    broken("direct_edits", fault_of(&board.direct_edits));
    for (task, notes) in board.handoff.entries() {
        for (field, text) in [("summary", &notes.summary), ("next_action", &notes.next_action)] {
            if text.trim().is_empty() {
                found.push(Violation::section("handoff", format!("{task} has no {field}")));
            }
        }
    }
}

fn fault_of<T>(section: &Loaded<T>) -> Option<&Fault> {
    match section {
        Loaded::Broken(fault) => Some(fault),
        Loaded::Absent | Loaded::Ready(_) => None,
    }
}

fn check_journal(state: &State, found: &mut Vec<Violation>) {
    found.extend(state.journal.faults.iter().map(|fault| Violation::section(&fault.field, &fault.message)));
    for (n, anomaly) in state.journal.anomalies.iter().enumerate() {
        let place = || format!("anomalies[{n}]");
        match anomaly.kind.parse::<AnomalyType>() {
            Ok(kind) => {
                let faults = detail_faults(kind, &anomaly.details);
                found.extend(faults.into_iter().map(|fault| Violation::section(place(), fault)));
            }
            Err(_) => found.push(Violation::section(
                place(),
                format!("{:?} is not an anomaly type: expected one of {}", anomaly.kind, anomaly_names()),
            )),
        }
    }
}

//! A board with one task in a chosen status and a full team.

use liza_core::model::{
    Actor, AgentId, AgentRecord, AgentStatus, Approver, EventName, Generation, HistoryEvent, Reservation,
    Revision, Role, Seconds, State, Status, StopFiles, TaskRecord, Worktree,
};
use liza_core::protocol::{Command, Request};
use liza_core::rules::invariants::DiskFacts;

pub use crate::boards::*;

/// The commit that a claim starts from.
pub const BASE: char = 'a';
/// The commit that the coder submits.
pub const WORK: char = 'b';
/// The head of the integration branch.
pub const HEAD: char = 'c';

/// A file system in which every expected file exists.
pub struct AllThere;

impl DiskFacts for AllThere {
    fn worktree_exists(&self, _: &Worktree) -> bool {
        true
    }

    fn spec_exists(&self, _: &str) -> bool {
        true
    }
}

pub const TEAM: [&str; 5] = ["planner-1", "coder-1", "coder-2", "code-reviewer-1", "code-reviewer-2"];

pub fn generation(id: AgentId) -> Generation {
    let place = TEAM.iter().position(|name| agent(name) == id).unwrap_or(0);
    Generation(u64::try_from(place).unwrap() + 1)
}

fn idle(id: AgentId) -> AgentRecord {
    AgentRecord {
        role: id.role(),
        status: AgentStatus::Idle,
        current_task: None,
        lease_expires: Some(now() + Seconds(300)),
        heartbeat: Some(now()),
        terminal: None,
        machine: None,
        generation: Some(generation(id)),
        last_result: None,
        iterations_total: None,
        client: None,
        session: None,
        last_session: None,
        context_percent: None,
        usage: None,
    }
}

/// The team without any task.
pub fn empty_state() -> State {
    let mut state = empty("Everything retries", now());
    state.board.revision = Revision(100);
    goal(&mut state).spec_ref = None;
    *agents(&mut state) = TEAM.iter().map(|name| (agent(name), idle(agent(name)))).collect();
    state
}

/// A complete record in that status, owned by coder-1 and, if it applies, code-reviewer-1.
pub fn record(id: &str, status: Status) -> TaskRecord {
    let mut record = TaskRecord {
        id: Some(task(id)),
        description: Some("Add retry".to_owned()),
        status: Some(status),
        priority: Some(2),
        spec_ref: Some("specs/retry.md".to_owned()),
        done_when: Some("it retries".to_owned()),
        scope: Some("the client".to_owned()),
        created: Some(now() - Seconds(600)),
        revision: Some(Revision(50)),
        history: Some(vec![HistoryEvent::new(now() - Seconds(600), EventName::Created, "planner-1")]),
        ..TaskRecord::default()
    };
    if status == Status::Draft || status == Status::Unclaimed || status.is_terminal() {
        finish(&mut record, status);
        return record;
    }
    record.assigned_to = Some(agent("coder-1"));
    record.worktree = Some(Worktree::of(&task(id)));
    record.base_commit = Some(sha(BASE));
    record.iteration = Some(1);
    record.review_cycles_current = Some(0);
    record.review_cycles_total = Some(0);
    work_fields(&mut record, status);
    record
}

fn finish(record: &mut TaskRecord, status: Status) {
    if status == Status::Superseded {
        record.superseded_by = Some(vec![task("other")]);
        record.rescope_reason = Some("too broad".to_owned());
    }
    record.merge_commit = (status == Status::Merged).then(|| sha(WORK));
}

fn work_fields(record: &mut TaskRecord, status: Status) {
    match status {
        Status::Claimed => record.lease_expires = Some(now() + Seconds(300)),
        Status::ReadyForReview => {
            record.review_commit = Some(sha(WORK));
            record.reviewing_by = Some(agent("code-reviewer-1"));
            record.review_lease_expires = Some(now() + Seconds(300));
        }
        Status::Rejected => {
            record.review_commit = Some(sha(WORK));
            record.rejection_reason = Some("no tests".to_owned());
            record.review_cycles_current = Some(1);
            record.review_cycles_total = Some(1);
        }
        Status::Approved => {
            record.review_commit = Some(sha(WORK));
            record.approved_by = Some(Approver::Agent(agent("code-reviewer-1")));
            let approved = HistoryEvent::new(now() - Seconds(5), EventName::Approved, "code-reviewer-1");
            record.history.get_or_insert_default().push(approved.with("commit", sha(WORK).as_str()));
        }
        Status::IntegrationFailed => {
            record.review_commit = Some(sha(WORK));
            let failed =
                HistoryEvent::new(now() - Seconds(5), EventName::IntegrationFailed, "code-reviewer-1");
            record.history.get_or_insert_default().push(failed);
        }
        Status::Blocked => {
            record.blocked_reason = Some("spec is silent".to_owned());
            record.blocked_questions = Some(vec!["Which one?".to_owned()]);
        }
        Status::Draft | Status::Unclaimed | Status::Merged | Status::Abandoned | Status::Superseded => {}
    }
}

/// The team with one task `t` in that status; the entry of its holder names the task.
pub fn state_with(status: Status) -> State {
    let mut state = empty_state();
    place(&mut state, "t", status);
    state
}

pub fn with(status: Status, change: impl FnOnce(&mut TaskRecord)) -> State {
    let mut state = state_with(status);
    edit_task(&mut state, "t", change);
    state
}

/// Puts a task on the board and into the sprint's plan.
pub fn place(state: &mut State, id: &str, status: Status) {
    plan(state, record(id, status));
    if status == Status::Superseded {
        state.board.put(task("other"), record("other", Status::Merged));
    }
    let holder = match status {
        Status::Claimed => Some(("coder-1", AgentStatus::Working)),
        Status::ReadyForReview => Some(("code-reviewer-1", AgentStatus::Reviewing)),
        _ => None,
    };
    if let Some((name, status)) = holder {
        let entry = entry(state, name);
        (entry.status, entry.current_task) = (status, Some(task(id)));
    }
}

pub fn reserve(state: &mut State, id: &str, coder: AgentId) {
    edit_task(state, id, |record| record.reservation = Some(reservation(coder)));
}

pub fn reservation(coder: AgentId) -> Reservation {
    let expires = now() + Seconds(60);
    Reservation { by: coder, generation: generation(coder), expires, base_commit: sha(HEAD) }
}

pub fn request(actor: Actor, command: Command) -> Request<Command> {
    Request { actor, now: now(), stop_files: StopFiles::default(), if_revision: None, command }
}

/// The agent that a command is about: the caller if it has that role, else the task's agent.
pub fn acting(actor: &Actor, role: Role) -> AgentId {
    match actor.agent() {
        Some(id) if id.role() == role => id,
        _ => AgentId::new(role, 1),
    }
}

//! A board with one task in a chosen status and a full team.

use liza_core::model::{
    Actor, AgentId, AgentRecord, AgentStatus, CircuitBreaker, Config, EventName, Generation, Goal,
    HistoryEvent, Loaded, Reservation, Revision, Role, Seconds, Sha, Sprint, State, Status, StopFiles,
    TaskId, TaskRecord, Timestamp, Worktree,
};
use liza_core::protocol::{Command, Request, WorktreeFacts};
use liza_core::rules::invariants::DiskFacts;

pub(crate) const NOW: i64 = 1_800_000_000;

pub(crate) fn now() -> Timestamp {
    Timestamp::from_unix(NOW)
}

pub(crate) fn task(id: &str) -> TaskId {
    id.parse().unwrap()
}

pub(crate) fn agent(id: &str) -> AgentId {
    id.parse().unwrap()
}

pub(crate) fn sha(digit: char) -> Sha {
    digit.to_string().repeat(40).parse().unwrap()
}

pub(crate) const BASE: char = 'a';
pub(crate) const WORK: char = 'b';
pub(crate) const HEAD: char = 'c';

/// A file system in which every expected file exists.
pub(crate) struct AllThere;

impl DiskFacts for AllThere {
    fn worktree_exists(&self, _: &Worktree) -> bool {
        true
    }

    fn spec_exists(&self, _: &str) -> bool {
        true
    }
}

/// A clean worktree at that commit.
pub(crate) fn clean_at(commit: Sha) -> WorktreeFacts {
    WorktreeFacts {
        head: commit,
        on_task_branch: true,
        dirty: Vec::new(),
        changed_tracked: Vec::new(),
        has_base: true,
        takes_back: Vec::new(),
    }
}

pub(crate) const TEAM: [&str; 5] = ["planner-1", "coder-1", "coder-2", "code-reviewer-1", "code-reviewer-2"];

pub(crate) fn generation(id: AgentId) -> Generation {
    let place = TEAM.iter().position(|name| agent(name) == id).unwrap_or(0);
    Generation(u64::try_from(place).unwrap() + 1)
}

fn entry(id: AgentId) -> AgentRecord {
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
pub(crate) fn empty_state() -> State {
    let mut state = State::default();
    let board = &mut state.board;
    board.revision = Revision(100);
    board.agents = Loaded::Ready(TEAM.iter().map(|name| (agent(name), entry(agent(name)))).collect());
    board.config = Loaded::Ready(Config::default());
    board.goal = Loaded::Ready(Goal { planned: true, ..Goal::begin(1, "Everything retries", now()) });
    board.sprint = Loaded::Ready(Sprint::begin(1, "goal-1", now()));
    board.circuit_breaker = Loaded::Ready(CircuitBreaker::default());
    board.discovered = Loaded::Ready(Vec::new());
    board.handoff = Loaded::Ready(indexmap_of());
    state
}

fn indexmap_of<K: std::hash::Hash + Eq, V>() -> indexmap::IndexMap<K, V> {
    indexmap::IndexMap::new()
}

/// A complete record in that status, owned by coder-1 and, if it applies, code-reviewer-1.
pub(crate) fn record(id: &str, status: Status) -> TaskRecord {
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
            record.approved_by = Some(agent("code-reviewer-1"));
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
pub(crate) fn state_with(status: Status) -> State {
    let mut state = empty_state();
    place(&mut state, "t", status);
    state
}

/// Puts a task on the board and into the sprint's plan.
pub(crate) fn place(state: &mut State, id: &str, status: Status) {
    state.board.put(task(id), record(id, status));
    if status == Status::Superseded {
        state.board.put(task("other"), record("other", Status::Merged));
    }
    if let Loaded::Ready(sprint) = &mut state.board.sprint {
        sprint.scope.planned.push(task(id));
    }
    let holder = match status {
        Status::Claimed => Some(("coder-1", AgentStatus::Working)),
        Status::ReadyForReview => Some(("code-reviewer-1", AgentStatus::Reviewing)),
        _ => None,
    };
    if let (Some((name, status)), Loaded::Ready(agents)) = (holder, &mut state.board.agents) {
        let entry = agents.get_mut(&agent(name)).unwrap();
        entry.status = status;
        entry.current_task = Some(task(id));
    }
}

/// A live reservation by that coder.
pub(crate) fn reserve(state: &mut State, id: &str, coder: AgentId) {
    let mut record = state.board.body(&task(id)).unwrap().record().clone();
    record.reservation = Some(reservation(coder));
    state.board.put(task(id), record);
}

/// The first step of that coder's claim.
pub(crate) fn reservation(coder: AgentId) -> Reservation {
    let expires = now() + Seconds(60);
    Reservation { by: coder, generation: generation(coder), expires, base_commit: sha(HEAD) }
}

pub(crate) fn request(actor: Actor, command: Command) -> Request<Command> {
    Request { actor, now: now(), stop_files: StopFiles::default(), if_revision: None, command }
}

/// The agent that a command is about: the caller if it has that role, else the task's agent.
pub(crate) fn acting(actor: &Actor, role: Role) -> AgentId {
    match actor.agent() {
        Some(id) if id.role() == role => id,
        _ => AgentId::new(role, 1),
    }
}

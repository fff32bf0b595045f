//! An agent as a screen shows it: whether it is alive, what it does, and what it waits for.

use serde::Serialize;

use crate::model::{
    AgentId, AgentRecord, AgentStatus, Board, FaultKind, Generation, Role, Seconds, SessionSummary,
    SprintStatus, State, StopFileTimes, TaskId, Timestamp, Usage,
};
use crate::watch::alarms::Observations;
use crate::watch::supervise::{backoff, needs_session};

use super::task::LeaseView;

/// Whether an agent is alive, by the lock of its supervisor and by its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    /// Its lease is live.
    Live,
    /// Its lease has just expired; no other agent takes over yet.
    Grace,
    /// Its lease and the grace have expired.
    Gone,
    /// Its supervisor has ended without deregistering it, whatever its lease says.
    Dead,
}

impl Liveness {
    /// Whether it may still be working.
    pub fn is_present(self) -> bool {
        match self {
            Liveness::Live | Liveness::Grace => true,
            Liveness::Gone | Liveness::Dead => false,
        }
    }
}

/// An agent as a screen shows it.
#[derive(Debug, Clone, Serialize)]
pub struct AgentView {
    /// Its name.
    pub id: AgentId,
    /// What it is for.
    pub role: Role,
    /// What it last reported.
    pub status: AgentStatus,
    /// Whether it is alive.
    pub liveness: Liveness,
    /// What it holds.
    pub task: Option<TaskId>,
    /// How long ago its lease was renewed.
    pub heartbeat_age: Option<Seconds>,
    /// Its lease.
    pub lease: Option<LeaseView>,
    /// Where a person can watch it.
    pub terminal: Option<String>,
    /// Its registration.
    pub generation: Option<Generation>,
    /// The machine on which it runs, if the agents are on more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The client that its sessions use.
    pub client: Option<String>,
    /// The last thing that its running session did or said.
    pub last_action: Option<String>,
    /// How long ago its running session printed something.
    pub output_age: Option<Seconds>,
    /// Its last session.
    pub last_session: Option<SessionSummary>,
    /// How full its context is.
    pub context_percent: Option<u32>,
    /// Tokens and money.
    pub usage: Option<Usage>,
    /// When it tries again after a session that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryView>,
    /// Why no session of it starts, although it has work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldView>,
    /// Whether its session judges if the goal is reached.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub judging: bool,
    /// How well its last session was confined, in words; none if it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confinement: Option<String>,
}

/// A planner that waits before its next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RetryView {
    /// How many sessions in a row had no result.
    pub failed: u32,
    /// How many are allowed.
    pub limit: u32,
    /// How long it still waits.
    pub again_in: Seconds,
}

/// An agent program that an agent needs and that cannot be used now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldView {
    /// Its name.
    pub client: String,
    /// What went wrong.
    pub kind: FaultKind,
    /// How long until it is tried again; `None` if only the human lets it continue.
    pub again_in: Option<Seconds>,
}

/// Whether a planner waits for its next try, and how long.
fn retry(board: &Board, entry: &AgentRecord, now: Timestamp) -> Option<RetryView> {
    let waits = entry.role == Role::Planner && entry.status == AgentStatus::Waiting;
    let last = entry.last_session.as_ref().filter(|last| waits && last.failed)?;
    let (failed, limit) = (board.sprint.ready()?.planner_exits.count, board.config.ready()?.max_crashes);
    let again = last.ended + backoff(failed);
    (1..limit).contains(&failed).then(|| RetryView { failed, limit, again_in: again.since(now) })
}

fn are_on_several_machines(board: &Board) -> bool {
    let mut machines =
        board.agents.ready().into_iter().flatten().filter_map(|(_, entry)| entry.machine.as_ref());
    let first = machines.next();
    machines.any(|machine| Some(machine) != first)
}

pub(super) fn agent_view(
    state: &State,
    id: AgentId,
    entry: &AgentRecord,
    seen: &Observations,
    now: Timestamp,
) -> AgentView {
    let (board, activity) = (&state.board, seen.sessions.get(&id));
    let liveness = match entry {
        _ if seen.dead.contains(&id) => Liveness::Dead,
        entry if entry.is_live(now) => Liveness::Live,
        entry if entry.holds(now) => Liveness::Grace,
        _ => Liveness::Gone,
    };
    AgentView {
        id,
        role: entry.role,
        status: entry.status,
        liveness,
        task: entry.current_task.clone(),
        heartbeat_age: entry.heartbeat.map(|heard| now.since(heard)),
        lease: entry.lease_expires.map(|expires| LeaseView::new(expires, now)),
        terminal: entry.terminal.clone(),
        generation: entry.generation,
        machine: entry.machine.clone().filter(|_| are_on_several_machines(board)),
        client: entry.client.clone(),
        last_action: activity.and_then(|activity| activity.last_action.clone()),
        output_age: activity.map(|activity| now.since(activity.last_output)),
        last_session: entry.last_session.clone(),
        context_percent: entry.context_percent,
        usage: entry.usage.clone(),
        retry: retry(board, entry, now),
        held: held(state, id, entry, seen, now).filter(|_| liveness == Liveness::Live),
        judging: is_judging(board, entry),
        confinement: seen.confinement.get(&id).cloned(),
    }
}

/// Whether a planner's session is about a sprint that has ended.
fn is_judging(board: &Board, entry: &AgentRecord) -> bool {
    entry.status == AgentStatus::Planning
        && board.sprint.ready().is_some_and(|sprint| sprint.status == SprintStatus::Completed)
}

/// The held program for which an agent waits that has work, but no session.
fn held(
    state: &State,
    id: AgentId,
    entry: &AgentRecord,
    seen: &Observations,
    now: Timestamp,
) -> Option<HeldView> {
    let clients = &state.board.sprint.ready()?.clients;
    let is_held = clients.values().any(|client| client.hold.is_some());
    if !is_held || entry.status.is_in_session() || seen.stop_files != StopFileTimes::default() {
        return None;
    }
    let client = entry.client.as_ref().or_else(|| only_client(&state.board, now))?;
    let hold = clients.get(client)?.hold.as_ref()?;
    let again_in = hold.until.map(|until| until.since(now));
    needs_session(state, id, seen.found_merges(), now).then(|| HeldView {
        client: client.clone(),
        kind: hold.kind,
        again_in,
    })
}

/// The program that all agents have used, for one that has had no session yet.
fn only_client(board: &Board, now: Timestamp) -> Option<&String> {
    let agents = board.agents.ready()?.values().filter(|entry| entry.is_live(now));
    let mut used = agents.filter_map(|entry| entry.client.as_ref());
    let first = used.next()?;
    used.all(|other| other == first).then_some(first)
}

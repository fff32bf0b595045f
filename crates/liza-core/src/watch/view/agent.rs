//! An agent as a screen shows it: whether it is alive, what it does, and what it waits for.

use serde::Serialize;

use crate::model::{
    AgentId, AgentRecord, AgentStatus, Board, Generation, Role, Seconds, SessionSummary, SprintStatus, State,
    TaskBody, TaskId, Timestamp, Usage,
};
use crate::rules::sessions::{decided_since, ending_session, is_between_sessions, of_session};
use crate::rules::triggers::{PlannerWork, planner_work};
use crate::supervise::{backoff, failed_planning, needs_session, unseen_triggers};
use crate::watch::alarms::Observations;
use crate::watch::held::{HeldView, held_program};

use crate::rules::presence::Liveness;

use super::merging::MergeView;
use super::task::LeaseView;

/// An agent as a screen shows it.
#[derive(Debug, Clone, Serialize)]
pub struct AgentView {
    pub id: AgentId,
    pub role: Role,
    pub status: AgentStatus,
    pub liveness: Liveness,
    pub task: Option<TaskId>,
    /// How long ago its lease was renewed.
    pub heartbeat_age: Option<Seconds>,
    pub lease: Option<LeaseView>,
    /// Where a person can watch it.
    pub terminal: Option<String>,
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
    pub last_session: Option<SessionSummary>,
    /// How full its context is.
    pub context_percent: Option<u32>,
    pub usage: Option<Usage>,
    /// When it tries again after a session that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryView>,
    /// Which try a planner's session is after others without a result, and how many there are at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<(u32, u32)>,
    /// Why no session of it starts, although it has work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldView>,
    /// Whether it holds its task while no session of it is running.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub between_sessions: bool,
    /// What its session has submitted or decided, if that session has not ended yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<EndingView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merging: Option<MergeView>,
    /// What it has approved and merges next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merges_next: Option<TaskId>,
    /// The task or discovery that a planner's session decides about, if it plans nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looking_at: Option<String>,
    /// Whether it waits for a goal.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lacks_goal: bool,
    /// Whether its session judges if the goal is reached.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub judging: bool,
    /// How well its last session was confined, in words; none if it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confinement: Option<String>,
}

impl AgentView {
    /// Whether a session of it is running.
    pub fn is_in_session(&self) -> bool {
        let works = self.status.is_in_session() && !self.between_sessions;
        self.liveness.is_present() && (works || self.ending.is_some())
    }

    /// Whether it does something now: its session runs, or it merges.
    pub fn is_at_work(&self) -> bool {
        self.is_in_session() || (self.liveness.is_present() && self.merging.is_some())
    }
}

/// A session that has submitted its task, has given its verdict or has decided, and has not ended yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndingView {
    /// Its task; a planner has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// How long ago it did so.
    pub age: Seconds,
}

/// A planner or coder that waits before its next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RetryView {
    /// How many sessions in a row had no result.
    pub failed: u32,
    pub limit: u32,
    /// How long it still waits.
    pub again_in: Seconds,
}

impl RetryView {
    /// When it tries again: `in 8s`.
    pub fn again(self) -> String {
        if self.again_in.0 == 0 { "now".to_owned() } else { format!("in {}", self.again_in) }
    }
}

/// Whether an agent waits for its next try, and how long.
fn retry(state: &State, entry: &AgentRecord, between_sessions: bool, now: Timestamp) -> Option<RetryView> {
    let board = &state.board;
    let last = entry.last_session.as_ref().filter(|last| last.failed)?;
    let failed = match (entry.role, entry.status) {
        (Role::Planner, AgentStatus::Waiting) => {
            failed_planning(board.sprint.ready()?, &unseen_triggers(state, now))
        }
        (Role::Coder, _) if between_sessions => {
            let body = entry.current_task.as_ref().and_then(|task| board.body(task).ok());
            body.map(TaskBody::record)?.crashes?
        }
        (Role::Planner | Role::Coder | Role::CodeReviewer, _) => return None,
    };
    let (limit, again) = (board.config.ready()?.max_crashes, last.ended + backoff(failed));
    (1..limit).contains(&failed).then(|| RetryView { failed, limit, again_in: again.since(now) })
}

/// Which try the running session of a planner is, if others before it had no result.
fn attempt(state: &State, entry: &AgentRecord, now: Timestamp) -> Option<(u32, u32)> {
    let board = &state.board;
    let failed = failed_planning(board.sprint.ready()?, &unseen_triggers(state, now));
    let limit = board.config.ready()?.max_crashes;
    (entry.status == AgentStatus::Planning && (1..limit).contains(&failed)).then_some((failed + 1, limit))
}

fn are_on_several_machines(board: &Board) -> bool {
    let mut machines = board.agents.entries().filter_map(|(_, entry)| entry.machine.as_ref());
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
    let liveness = seen.presence(board, now).liveness(id, entry);
    let between_sessions = is_between_sessions(board, id, entry);
    let ending = ending(state, id, entry, now);
    let decides = ending.is_none();
    let held = held_program(state, id, entry, seen, now).filter(|_| liveness == Liveness::Live);
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
        // One whose work has gone meanwhile tries nothing again.
        retry: retry(state, entry, between_sessions, now)
            .filter(|_| held.is_none() && needs_session(state, id, seen.found_merges(), now)),
        attempt: attempt(state, entry, now).filter(|_| decides),
        held,
        between_sessions,
        ending,
        merging: None,
        merges_next: None,
        looking_at: looking_at(state, entry, now).filter(|_| decides),
        lacks_goal: board.goal.ready().is_some_and(|goal| goal.description.trim().is_empty()),
        judging: decides && is_judging(state, entry, now),
        confinement: seen.confinement.get(&id).cloned(),
    }
}

/// What the session has submitted or decided, if it has not ended yet.
fn ending(state: &State, id: AgentId, entry: &AgentRecord, now: Timestamp) -> Option<EndingView> {
    let of_task = ending_session(&state.board, id, entry).map(|(task, since)| (Some(task), since));
    let (task, since) = of_task.or_else(|| Some((None, decided_since(state, entry, now)?)))?;
    Some(EndingView { task, age: now.since(since) })
}

/// Whether a planner's session is about a sprint that has ended.
fn is_judging(state: &State, entry: &AgentRecord, now: Timestamp) -> bool {
    let is_known = entry.session.as_ref().is_some_and(|session| !session.about.is_empty());
    let judges = || match is_known {
        true => planner_work(&of_session(state, entry, now)) == PlannerWork::Judging,
        false => state.board.sprint.ready().is_some_and(|sprint| sprint.status == SprintStatus::Completed),
    };
    entry.status == AgentStatus::Planning && judges()
}

/// What a planner's session decides about, if it plans nothing.
fn looking_at(state: &State, entry: &AgentRecord, now: Timestamp) -> Option<String> {
    let is_planning = entry.status == AgentStatus::Planning;
    match is_planning.then(|| planner_work(&of_session(state, entry, now)))? {
        PlannerWork::LookingAt(subject) => Some(subject),
        PlannerWork::Planning | PlannerWork::Judging => None,
    }
}

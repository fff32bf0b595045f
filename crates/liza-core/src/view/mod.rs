//! The one read model: what status, the screens and programs are shown of the blackboard.
//!
//! A pure function of state, sightings and `now`; decides nothing and formats nothing for a screen. Liveness is
//! derived from leases here, so no screen can show a dead agent at work.

mod task;

use serde::Serialize;

use crate::agent::{AgentRecord, AgentStatus, Role};
use crate::alarm::{self, Alarm, Level, Sightings};
use crate::board::{Board, State};
use crate::claimable;
use crate::goal::Goal;
use crate::ids::{AgentId, Generation, Revision, TaskId};
use crate::metrics::{Metrics, sprint_metrics};
use crate::notes::Discovery;
use crate::record::{Status, Usage};
use crate::sprint::{Sprint, SprintStatus, planned_with_replacements};
use crate::time::{Seconds, Timestamp};
use crate::trigger::planner_triggers;

pub use task::{Lease, Phase, TaskView, Waiting};

/// Everything that a screen shows.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    /// The write that it shows.
    pub revision: Revision,
    /// The moment that it shows.
    pub now: Timestamp,
    /// What is wanted.
    pub goal: Option<Goal>,
    /// How far the work is.
    pub sprint: Option<SprintView>,
    /// What stands still, and since when.
    pub stopped: Vec<Stop>,
    /// All tasks on the board, first those that need a decision.
    pub tasks: Vec<TaskView>,
    /// Everybody who is registered.
    pub agents: Vec<AgentView>,
    /// What a human should hear about, the worst first.
    pub alerts: Vec<Alert>,
    /// What a coder may take now, best first.
    pub claimable: Vec<TaskId>,
    /// What a code reviewer may take now, best first.
    pub reviewable: Vec<TaskId>,
    /// What the planner has to look at, first things first.
    pub planner_triggers: Vec<TriggerView>,
    /// Discoveries that have not become tasks.
    pub discoveries: Vec<Discovery>,
    /// How many tasks have been moved to the archive.
    pub archived: usize,
}

/// A file that keeps everybody from going on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stop {
    /// `PAUSE`, `CHECKPOINT` or `ABORT`.
    pub file: &'static str,
    /// Since when.
    pub since: Timestamp,
}

/// How far the sprint is.
#[derive(Debug, Clone, Serialize)]
pub struct SprintView {
    /// `sprint-N`.
    pub id: String,
    /// Where it stands.
    pub status: SprintStatus,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When a human wants to look at it at the latest.
    pub deadline: Option<Timestamp>,
    /// Seconds to the deadline; below zero when it is past.
    pub deadline_left: Option<i64>,
    /// Its planned tasks with their replacements.
    pub progress: Progress,
    /// Its figures, computed now.
    pub metrics: Metrics,
}

/// The planned tasks by how far they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// All.
    pub total: usize,
    /// On the integration branch.
    pub merged: usize,
    /// Given up or replaced.
    pub dropped: usize,
    /// Between claim and merge.
    pub in_progress: usize,
    /// Needing a decision.
    pub blocked: usize,
    /// Not begun.
    pub waiting: usize,
}

impl Progress {
    /// Merged, given up or replaced.
    pub fn done(&self) -> usize {
        self.merged + self.dropped
    }
}

/// Whether an agent is there, by its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    /// Its lease runs.
    Live,
    /// Its lease has just ended; nobody takes over yet.
    Grace,
    /// It is not coming back by itself.
    Gone,
}

/// An agent, as it really is.
#[derive(Debug, Clone, Serialize)]
pub struct AgentView {
    /// Its name.
    pub id: AgentId,
    /// What it is for.
    pub role: Role,
    /// What it last said that it does.
    pub status: AgentStatus,
    /// Whether it is there.
    pub liveness: Liveness,
    /// What it holds.
    pub task: Option<TaskId>,
    /// How long ago it was heard of.
    pub heartbeat_age: Option<Seconds>,
    /// Its lease.
    pub lease: Option<Lease>,
    /// Where a person can watch it.
    pub terminal: Option<String>,
    /// Its registration.
    pub generation: Option<Generation>,
    /// How full its context is.
    pub context_percent: Option<u32>,
    /// Tokens and money.
    pub usage: Option<Usage>,
}

/// Something that a human should hear about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alert {
    /// `critical` or `warning`.
    pub level: &'static str,
    /// In the words of the alert, such as `LEASE EXPIRED`.
    pub kind: &'static str,
    /// The task that it is about, where it is about one.
    pub task: Option<TaskId>,
    /// The rest of the alert.
    pub text: String,
    /// The command that most likely settles it.
    pub command: Option<String>,
}

impl Alert {
    /// Whether it wants to be looked at now.
    pub fn is_critical(&self) -> bool {
        self.level == CRITICAL
    }
}

const CRITICAL: &str = "critical";

/// One reason to wake the planner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TriggerView {
    /// Such as `BLOCKED_TASKS`.
    pub kind: String,
    /// The task, discovery, sprint or goal.
    pub subject: String,
    /// What about it.
    pub detail: String,
    /// Whether the planner has already been woken for it.
    pub seen: bool,
}

/// What a screen shows of this state at this moment.
pub fn view(state: &State, seen: &Sightings, now: Timestamp) -> View {
    let board = &state.board;
    let tasks = task::tasks(state, now);
    let alerts = alerts(alarm::alarms(state, seen, now), &tasks);
    let agents = board.agents.ready().into_iter().flatten();
    let open = |discovery: &&Discovery| discovery.converted_to_task.is_none();
    let discoveries = board.discovered.ready().into_iter().flatten().filter(open);
    View {
        revision: board.revision,
        now,
        goal: board.goal.ready().cloned(),
        sprint: board.sprint.ready().map(|sprint| sprint_view(state, sprint, now)),
        stopped: stops(seen),
        agents: agents.map(|(id, entry)| agent_view(*id, entry, now)).collect(),
        alerts,
        claimable: claimable::claimable(board, now),
        reviewable: claimable::reviewable(board, now),
        planner_triggers: triggers(state, now),
        discoveries: discoveries.cloned().collect(),
        archived: board.archived.len(),
        tasks,
    }
}

fn stops(seen: &Sightings) -> Vec<Stop> {
    let stop = |file, since: Option<Timestamp>| since.map(|since| Stop { file, since });
    let all = [
        stop("ABORT", seen.abort_since),
        stop("CHECKPOINT", seen.checkpoint_since),
        stop("PAUSE", seen.pause_since),
    ];
    all.into_iter().flatten().collect()
}

fn sprint_view(state: &State, sprint: &Sprint, now: Timestamp) -> SprintView {
    SprintView {
        id: sprint.id.clone(),
        status: sprint.status,
        started: sprint.timeline.started,
        deadline: sprint.timeline.deadline,
        deadline_left: sprint.timeline.deadline.map(|deadline| deadline.unix() - now.unix()),
        progress: Progress::of(&state.board, sprint),
        metrics: sprint_metrics(state),
    }
}

impl Progress {
    /// Counts the sprint's planned tasks with their replacements.
    pub fn of(board: &Board, sprint: &Sprint) -> Self {
        let mut progress = Self::default();
        for task in planned_with_replacements(board, sprint) {
            progress.count(board.status(&task));
        }
        progress
    }

    fn count(&mut self, status: Option<Status>) {
        self.total += 1;
        match status {
            Some(Status::Merged) => self.merged += 1,
            Some(Status::Abandoned | Status::Superseded) => self.dropped += 1,
            Some(
                Status::Claimed
                | Status::ReadyForReview
                | Status::Rejected
                | Status::Approved
                | Status::IntegrationFailed,
            ) => self.in_progress += 1,
            Some(Status::Blocked) => self.blocked += 1,
            Some(Status::Draft | Status::Unclaimed) | None => self.waiting += 1,
        }
    }
}

fn agent_view(id: AgentId, entry: &AgentRecord, now: Timestamp) -> AgentView {
    let liveness = match entry {
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
        lease: entry.lease_expires.map(|expires| Lease::new(expires, now)),
        terminal: entry.terminal.clone(),
        generation: entry.generation,
        context_percent: entry.context_percent,
        usage: entry.usage.clone(),
    }
}

/// The worst first; each with the next step of the task that it is about.
fn alerts(mut found: Vec<Alarm>, tasks: &[TaskView]) -> Vec<Alert> {
    found.sort_by_key(|alarm| std::cmp::Reverse(alarm.level));
    let told = found.into_iter().map(|alarm| {
        // An alarm about one figure of a task has the figure after a colon.
        let subject = alarm.subject.split(':').next().unwrap_or_default();
        let task = tasks.iter().find(|task| task.id.as_str() == subject);
        Alert {
            level: match alarm.level {
                Level::Critical => CRITICAL,
                Level::Warning => "warning",
            },
            kind: alarm.kind,
            task: task.map(|task| task.id.clone()),
            text: alarm.text,
            command: match alarm.kind {
                alarm::INVALID_STATE => Some("liza validate".to_owned()),
                _ => task.and_then(|task| task.command.clone()),
            },
        }
    });
    told.collect()
}

fn triggers(state: &State, now: Timestamp) -> Vec<TriggerView> {
    let seen = state.board.sprint.ready().map(|sprint| sprint.seen_triggers.as_slice()).unwrap_or_default();
    let told = planner_triggers(state, now).into_iter().map(|trigger| TriggerView {
        kind: trigger.kind.to_string(),
        seen: seen.contains(&trigger.key),
        subject: trigger.subject,
        detail: trigger.detail,
    });
    told.collect()
}

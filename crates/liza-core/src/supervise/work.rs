//! The possible work of an agent, the best first, without work that failed a moment ago.

use serde::{Deserialize, Serialize};

use crate::model::{AgentId, Role, State, TaskId, Timestamp};
use crate::rules::approvals::lacks_approval;
use crate::rules::claimable::{claimable_for, mergeable_for, reviewable_for};
use crate::rules::found_merges::FoundMerges;
use crate::rules::impact::leaves_review;
use crate::rules::questions::open_questions;
use crate::rules::triggers::{Trigger, unseen_triggers};
use crate::rules::validation::held_validation;

use super::planner_needs_human;

/// A kind of work that supervisors do for their agents.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WorkKind {
    Merge,
    Code,
    Review,
    Plan,
}

impl WorkKind {
    /// The work that an agent of this role does in its sessions.
    pub fn of_sessions(role: Role) -> Self {
        match role {
            Role::Planner => WorkKind::Plan,
            Role::Coder => WorkKind::Code,
            Role::CodeReviewer => WorkKind::Review,
        }
    }
}

/// A piece of work that an agent could do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    Merge(TaskId),
    Code(TaskId),
    Review(TaskId),
    Plan(Vec<Trigger>),
}

impl Work {
    pub fn kind(&self) -> WorkKind {
        match self {
            Work::Merge(_) => WorkKind::Merge,
            Work::Code(_) => WorkKind::Code,
            Work::Review(_) => WorkKind::Review,
            Work::Plan(_) => WorkKind::Plan,
        }
    }

    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Work::Merge(task) | Work::Code(task) | Work::Review(task) => Some(task),
            Work::Plan(_) => None,
        }
    }

    /// True if it needs a session, and so a program and a budget.
    pub fn needs_session(&self) -> bool {
        self.kind() != WorkKind::Merge
    }
}

/// The subject of a failure: the work on one task, by any agent, or all work of that kind by one agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkSubject {
    Task(TaskId),
    /// The agent's program, or work that is about no task.
    Agent(AgentId),
}

/// Failed work that is not tried again before its time. All agents of a supervisor share it: the environment
/// that refuses one refuses the others.
#[derive(Debug, Clone, Default)]
pub struct Backoffs(Vec<(WorkKind, WorkSubject, Timestamp)>);

impl Backoffs {
    pub const NONE: Self = Self(Vec::new());

    /// Leaves it alone until then.
    pub fn put_off(&mut self, kind: WorkKind, subject: WorkSubject, until: Timestamp) {
        self.end(kind, &subject);
        self.0.push((kind, subject, until));
    }

    pub fn end(&mut self, kind: WorkKind, subject: &WorkSubject) {
        self.0.retain(|(known, about, _)| *known != kind || about != subject);
    }

    pub fn forget_ended(&mut self, now: Timestamp) {
        self.0.retain(|(_, _, until)| *until > now);
    }

    /// The time until which this agent leaves that work alone.
    pub(super) fn until(&self, agent: AgentId, work: &Work, now: Timestamp) -> Option<Timestamp> {
        let is_about = |subject: &WorkSubject| match subject {
            WorkSubject::Task(task) => work.task() == Some(task),
            WorkSubject::Agent(other) => *other == agent,
        };
        let own = self.0.iter().filter(|(kind, subject, _)| *kind == work.kind() && is_about(subject));
        own.map(|(_, _, until)| *until).max().filter(|until| *until > now)
    }
}

/// The work of this agent on the blackboard, the best first: merges, then work that needs a session.
pub fn work_of(state: &State, agent: AgentId, found: &FoundMerges, now: Timestamp) -> Vec<Work> {
    let board = &state.board;
    match agent.role() {
        Role::Planner => {
            let triggers = unseen_triggers(state, now);
            let is_needed = !triggers.is_empty() && !planner_needs_human(state, now);
            is_needed.then_some(Work::Plan(triggers)).into_iter().collect()
        }
        Role::Coder => {
            let tasks = found.without_waiting(claimable_for(board, agent, now));
            unasked(state, agent, tasks).into_iter().map(Work::Code).collect()
        }
        Role::CodeReviewer => {
            let merges = if found.hold_merges() { Vec::new() } else { mergeable_for(board, agent, now) };
            let is_approved =
                |task: &TaskId| board.body(task).is_ok_and(|body| !lacks_approval(body.record()));
            let merges = merges.into_iter().filter(is_approved).map(Work::Merge);
            let mut reviews = found.without_waiting(reviewable_for(board, agent, now));
            reviews.retain(|task| held_validation(board, task).is_none());
            reviews.retain(|task| !leaves_review(board, task, agent, now));
            merges.chain(unasked(state, agent, reviews).into_iter().map(Work::Review)).collect()
        }
    }
}

/// The tasks about which this agent does not wait for an answer of the human. A coder that waits takes
/// nothing else, since it holds its task.
fn unasked(state: &State, agent: AgentId, tasks: Vec<TaskId>) -> Vec<TaskId> {
    let asked: Vec<TaskId> = open_questions(state)
        .into_iter()
        .filter_map(|question| question.task.clone().filter(|_| question.is_from(agent)))
        .collect();
    let holds =
        agent.role() == Role::Coder && state.board.held_by(agent).is_some_and(|task| asked.contains(task));
    tasks.into_iter().filter(|task| !holds && !asked.contains(task)).collect()
}

//! What to do when an agent's session has ended.

use crate::model::{
    AgentId, AgentStatus, GoalStatus, Revision, Role, Seconds, State, TaskBody, TaskId, Timestamp,
};
use crate::protocol::{Command, CountExit, ReleaseReview, SetStatus, UnproductiveExit};

use super::running::is_done;

/// How a session ended, as the operating system and the supervisor report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// With this exit code.
    Code(i32),
    /// By this signal, which the supervisor did not send.
    Signal(i32),
    /// The supervisor stopped it, for PAUSE, CHECKPOINT or its own end.
    Stopped,
    /// The supervisor stopped it because it ran too long.
    OverTime,
}

/// The exit code by which an agent asks to be started again.
pub const EXIT_RESTART: i32 = 42;

/// A session that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedSession {
    /// Whose.
    pub agent: AgentId,
    /// On which task or review; a planner has none.
    pub task: Option<TaskId>,
    /// The revision of the blackboard when it began.
    pub began_at: Revision,
    /// When it began.
    pub began: Timestamp,
    /// Crashes in a row before this one, of a planner or a code reviewer; a coder's are on its task.
    pub crashes_before: u32,
}

/// What the supervisor does now.
#[derive(Debug, Clone, PartialEq)]
pub struct AfterSession {
    /// What goes on the blackboard first.
    pub record: Vec<Command>,
    /// How long to wait before looking for work again.
    pub pause: Seconds,
    /// Whether the session had a result.
    pub progress: bool,
}

/// The pause after a clean exit without a result.
const BRIEF: Seconds = Seconds(2);
/// The pause after a first crash.
const FIRST_CRASH: Seconds = Seconds(5);
/// The longest pause.
const LONGEST: Seconds = Seconds(300);

/// The pause after that many crashes in a row: 5 s, doubling, at most 5 min.
pub fn backoff(crashes: u32) -> Seconds {
    let doubled = FIRST_CRASH.0.checked_shl(crashes.saturating_sub(1).min(16)).unwrap_or(LONGEST.0);
    Seconds(doubled.min(LONGEST.0))
}

/// Judges a session: by the blackboard first, by its end last.
pub fn after_session(state: &State, session: &EndedSession, end: SessionEnd) -> AfterSession {
    if made_progress(state, session) {
        return AfterSession { record: release(state, session), pause: Seconds(0), progress: true };
    }
    let (exit, pause) = match end {
        // A stop by the human counts against no one.
        SessionEnd::Stopped => {
            return AfterSession { record: release(state, session), pause: Seconds(0), progress: false };
        }
        SessionEnd::Code(0 | EXIT_RESTART) => (UnproductiveExit::Idle, BRIEF),
        SessionEnd::Code(_) | SessionEnd::Signal(_) | SessionEnd::OverTime => {
            (UnproductiveExit::Crash, backoff(crashes_so_far(state, session) + 1))
        }
    };
    AfterSession { record: count(session, exit), pause, progress: false }
}

/// Frees an agent whose entry still names the task although it was taken away, as an edit of the file does.
fn release(state: &State, session: &EndedSession) -> Vec<Command> {
    let agent = session.agent;
    let Some(task) = &session.task else { return Vec::new() };
    let named = state.board.held_by(agent) == Some(task);
    let held = state.board.summary(task).is_some_and(|summary| summary.is_held_by(agent));
    let free = SetStatus { agent, status: AgentStatus::Idle };
    if named && !held { vec![free.into()] } else { Vec::new() }
}

fn crashes_so_far(state: &State, session: &EndedSession) -> u32 {
    let counted = session.task.as_ref().and_then(|task| state.board.body(task).ok()?.record().crashes);
    counted.unwrap_or(session.crashes_before)
}

/// Counts a session without a result. A code reviewer loses the review as well.
fn count(session: &EndedSession, exit: UnproductiveExit) -> Vec<Command> {
    let Some(task) = session.task.clone() else { return Vec::new() };
    let agent = session.agent;
    let mut record: Vec<Command> = vec![CountExit { task: task.clone(), agent, exit }.into()];
    if agent.role() == Role::CodeReviewer {
        record.push(ReleaseReview { task, reviewer: agent }.into());
    }
    record
}

/// Whether the session did what it was for: the agent no longer holds the task, or it handed off. A planner's session
/// has made progress when it has written something.
fn made_progress(state: &State, session: &EndedSession) -> bool {
    match &session.task {
        None => state.board.revision > session.began_at && planner_wrote(state, session),
        task => is_done(state, session.agent, task.as_ref()),
    }
}

/// Whether a task's history has an event of the planner since the session began, or the goal has been decided. A coder
/// that claimed the task at once does not take that away.
fn planner_wrote(state: &State, session: &EndedSession) -> bool {
    if state.board.goal.ready().is_some_and(|goal| goal.status != GoalStatus::InProgress) {
        return true;
    }
    let name = session.agent.to_string();
    let wrote = |body: &TaskBody| {
        let changed = body.record().revision.is_some_and(|revision| revision > session.began_at);
        let mut since = body.record().events().rev().filter(|event| event.time >= session.began);
        changed && since.any(|event| event.agent.as_deref() == Some(&name))
    };
    state.bodies().any(|(_, body)| wrote(body))
}

//! What to do when an agent's session has ended.

use crate::agent::{AgentStatus, Role};
use crate::board::State;
use crate::command::{Command, FruitlessExit};
use crate::goal::GoalStatus;
use crate::ids::{AgentId, Revision, TaskId};
use crate::time::{Seconds, Timestamp};

use super::running::is_done;

/// How a session ended, as the operating system and the supervisor tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With this exit code.
    Code(i32),
    /// By this signal, which the supervisor did not send.
    Signal(i32),
    /// The supervisor stopped it, for PAUSE, CHECKPOINT or its own end.
    Stopped,
    /// The supervisor stopped it because it ran too long.
    OverTime,
}

/// The exit code by which an agent says: start me again.
pub const GRACEFUL: i32 = 42;

/// A session that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
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
pub struct Next {
    /// What goes on the blackboard first.
    pub record: Vec<Command>,
    /// How long to wait before looking for work again.
    pub pause: Seconds,
    /// Whether the session brought what it was for.
    pub progress: bool,
}

/// A short pause, as after a graceful abort.
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

/// Judges a session: from the blackboard first, from its ending last.
pub fn after_session(state: &State, session: &Session, ending: Ending) -> Next {
    if made_progress(state, session) {
        return Next { record: let_go(state, session), pause: Seconds(0), progress: true };
    }
    let (exit, pause) = match ending {
        // A stop by the human is nobody's failure.
        Ending::Stopped => {
            return Next { record: let_go(state, session), pause: Seconds(0), progress: false };
        }
        Ending::Code(0 | GRACEFUL) => (FruitlessExit::Idle, BRIEF),
        Ending::Code(_) | Ending::Signal(_) | Ending::OverTime => {
            (FruitlessExit::Crash, backoff(crashes_so_far(state, session) + 1))
        }
    };
    Next { record: book(session, exit), pause, progress: false }
}

/// Frees an agent whose entry still names the task, though it was taken away: whoever writes into the file by hand
/// does not think of that.
fn let_go(state: &State, session: &Session) -> Vec<Command> {
    let agent = session.agent;
    let Some(task) = &session.task else { return Vec::new() };
    let entry = state.board.agents.ready().and_then(|agents| agents.get(&agent));
    let named = entry.is_some_and(|entry| entry.current_task.as_ref() == Some(task));
    let held = state.board.head(task).is_some_and(|head| head.is_held_by(agent));
    let free = Command::SetStatus { agent, status: AgentStatus::Idle };
    if named && !held { vec![free] } else { Vec::new() }
}

fn crashes_so_far(state: &State, session: &Session) -> u32 {
    let counted = session.task.as_ref().and_then(|task| state.board.body(task).ok()?.record.crashes);
    counted.unwrap_or(session.crashes_before)
}

/// What is written down about a session that brought nothing. A code reviewer loses the review as well.
fn book(session: &Session, exit: FruitlessExit) -> Vec<Command> {
    let Some(task) = session.task.clone() else { return Vec::new() };
    let agent = session.agent;
    let mut record = vec![Command::CountExit { task: task.clone(), agent, exit }];
    if agent.role() == Role::CodeReviewer {
        record.push(Command::GiveUpReview { task, reviewer: agent });
    }
    record
}

/// Whether the session did what it was for: the task has left its hands, or it handed over. A planner's session has
/// made progress when anything was written.
fn made_progress(state: &State, session: &Session) -> bool {
    match &session.task {
        None => state.board.revision > session.began_at && planner_wrote(state, session),
        task => is_done(state, session.agent, task.as_ref()),
    }
}

/// Whether a planner's hand is in a task's history since the session began, or the goal has been decided. A coder who
/// claimed the task at once does not take that away.
fn planner_wrote(state: &State, session: &Session) -> bool {
    if state.board.goal.ready().is_some_and(|goal| goal.status != GoalStatus::InProgress) {
        return true;
    }
    let changed = |revision: Option<Revision>| revision.is_some_and(|revision| revision > session.began_at);
    let name = session.agent.to_string();
    state.records().any(|(_, record)| {
        let mut since = record.history.iter().flatten().rev().filter(|event| event.time >= session.began);
        changed(record.revision) && since.any(|event| event.agent.as_deref() == Some(&name))
    })
}

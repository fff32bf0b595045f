//! Everything that a supervisor waits for, as one type; and what it tells people.

use liza_core::model::{AgentId, TaskId};
use liza_core::watch::supervise::AfterSession;

use super::order::Report;
use super::session::Session;
use super::trouble::Trouble;

/// Which agent of the team, by its place in it.
pub(super) type Seat = usize;

/// Something happened.
#[derive(Debug)]
pub(super) enum Event {
    /// The blackboard or a stop file may have changed.
    Changed,
    /// A session's helper reported.
    Session(Seat, Report),
    /// What was done apart from the loop is done.
    Done(Seat, Result<Outcome, Trouble>),
    /// The leases were renewed, or not.
    Beaten(Result<(), Trouble>),
    /// Somebody who looks on has something to say.
    Attended(Vec<Line>),
    /// A time has come.
    Timer,
    /// A person or the system wants the supervisor to end.
    Signal {
        /// Whether it came from the terminal's Ctrl-C.
        interrupt: bool,
    },
}

/// What an errand brought.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The agent can look for work.
    Ready(Vec<String>),
    /// A merge is settled, in words.
    Merged(String),
    /// A session runs.
    Started(Box<Session>),
    /// A session was judged.
    Judged {
        /// What follows.
        next: AfterSession,
        /// The review that the code reviewer leaves to others from now on.
        leave: Option<TaskId>,
        /// What to tell.
        notes: Vec<String>,
    },
    /// The blackboard shows the agent as it is.
    Shown,
    /// The agent is off the board, or why it could not be taken off; its lease ends by itself then.
    Left(Option<Trouble>),
}

/// A line for people: who, and what happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Whose supervisor says so; nobody's where it concerns the whole team.
    pub agent: Option<AgentId>,
    /// What.
    pub text: String,
    /// How much it matters.
    pub weight: Weight,
}

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// For somebody who looks closely.
    Detail,
    /// Something happened.
    News,
    /// Somebody should look.
    Alert,
}

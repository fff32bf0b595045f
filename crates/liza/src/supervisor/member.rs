//! One agent of a team: its post, what it is at, and how it ended.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use liza_core::model::{AgentId, Role, StopFiles, TaskId, Timestamp};
use liza_core::watch::supervise::{StopCause, StopReason};

use crate::providers::Provider;
use crate::providers::usage::SessionUsage;
use crate::work::Life;

use super::event::Outcome;
use super::prepare::Who;
use super::session::Session;
use super::trouble::Trouble;

/// A place in a team that is to be filled.
#[derive(Debug, Clone)]
pub struct Post {
    /// What for.
    pub role: Role,
    /// Under which name; the next free one where it is absent.
    pub agent: Option<AgentId>,
    /// By which agent program.
    pub provider: Provider,
    /// For this task only.
    pub task: Option<TaskId>,
    /// For one session only.
    pub once: bool,
    /// With a person before it.
    pub interactive: bool,
}

/// Why an agent's supervision ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// As the rules say.
    Stop(StopReason),
    /// It was for one session only.
    Once,
    /// A person or the system stopped the supervisor.
    Signalled,
    /// Another has the registration by now.
    Lost,
    /// It could not go on.
    Trouble(Trouble),
}

/// An agent's last word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Farewell {
    /// Whose.
    pub agent: AgentId,
    /// Why.
    pub end: End,
}

/// A session that runs, with what its supervisor knows of it.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) session: Session,
    pub(super) started: Timestamp,
    pub(super) halted_since: Option<Timestamp>,
    /// Since when there is nothing left for it to do.
    pub(super) done_since: Option<Timestamp>,
    pub(super) terminated_at: Option<Timestamp>,
    pub(super) killed: bool,
    /// Why the supervisor stopped it.
    pub(super) cause: Option<StopCause>,
    /// Whether the supervisor stopped it for its own end.
    pub(super) leaving: bool,
    /// Until when the lease ran when it was last seen.
    pub(super) lease: Timestamp,
    /// What it has used, as far as it was said.
    pub(super) used: SessionUsage,
    /// How much of that is on the blackboard; kept by whoever is just writing it.
    pub(super) booked: Arc<Mutex<SessionUsage>>,
}

impl Run {
    pub(super) fn new(session: Session, started: Timestamp, lease: Timestamp) -> Self {
        Self {
            session,
            started,
            halted_since: None,
            done_since: None,
            terminated_at: None,
            killed: false,
            cause: None,
            leaving: false,
            lease,
            used: SessionUsage::default(),
            booked: Arc::default(),
        }
    }

    /// What is to be written down about its use.
    pub(super) fn account(&self) -> Account {
        let (task, used) = (self.session.task.clone(), self.used.clone());
        Account { task, used, booked: Arc::clone(&self.booked) }
    }
}

/// What a session has used, to be written down once and no more.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) task: Option<TaskId>,
    pub(super) used: SessionUsage,
    pub(super) booked: Arc<Mutex<SessionUsage>>,
}

/// What an agent is at.
#[derive(Debug)]
pub(super) enum Phase {
    /// Something is being done for it.
    Errand,
    /// It looks for work, or waits for it.
    Looking,
    /// Its session runs.
    Running(Box<Run>),
    /// It is leaving the board.
    Leaving(End),
    /// It is gone.
    Gone(End),
}

/// What an agent's next step depends on, besides the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sight {
    pub(super) edition: u64,
    pub(super) halt: StopFiles,
    pub(super) errands_done: u64,
}

/// One agent of a team.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) who: Who,
    pub(super) post: Post,
    /// Held until the process ends, so that others can tell.
    _life: Option<Life>,
    pub(super) phase: Phase,
    /// It does not look before that.
    pub(super) from: Instant,
    /// When to look at it again by oneself.
    pub(super) wake: Option<Instant>,
    /// What it has looked at and found nothing in; it looks again when that changes, or when it wakes.
    pub(super) rests: Option<Sight>,
    /// The task that it is trying to get.
    pub(super) trying: Option<TaskId>,
    pub(super) idle_since: Timestamp,
    /// Claims lost in a row.
    pub(super) lost_claims: u32,
    /// Failures in a row, of whatever the supervisor itself does.
    pub(super) failures: u32,
    /// Crashes in a row, of a planner or code reviewer.
    pub(super) crashes: u32,
    /// Reviews that it leaves to others.
    pub(super) left: Vec<TaskId>,
    /// Whether the blackboard shows a planner as WAITING.
    pub(super) waiting: bool,
    /// The last thing that was said, which is not said again.
    pub(super) said: String,
}

impl Member {
    pub(super) fn new(who: Who, post: Post, life: Option<Life>, now: Timestamp) -> Self {
        Self {
            who,
            post,
            _life: life,
            phase: Phase::Errand,
            from: Instant::now(),
            wake: None,
            rests: None,
            trying: None,
            idle_since: now,
            lost_claims: 0,
            failures: 0,
            crashes: 0,
            left: Vec::new(),
            waiting: false,
            said: String::new(),
        }
    }

    /// Whether it is on the board and has to be kept there.
    pub(super) fn is_here(&self) -> bool {
        match self.phase {
            Phase::Errand | Phase::Looking | Phase::Running(_) => true,
            Phase::Leaving(_) | Phase::Gone(_) => false,
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self.phase, Phase::Gone(_))
    }

    /// Whether it has found nothing in this very sight, and it is not yet time to look again.
    pub(super) fn has_seen(&self, sight: &Sight) -> bool {
        self.rests.as_ref() == Some(sight) && self.wake.is_some_and(|time| Instant::now() < time)
    }

    /// Whether it has looked for work in this very sight and found none.
    pub(super) fn is_at_rest(&self, sight: &Sight) -> bool {
        matches!(self.phase, Phase::Looking) && self.rests.as_ref() == Some(sight)
    }

    /// Whether a person sits before its running session.
    pub(super) fn is_interactive(&self) -> bool {
        self.post.interactive && matches!(self.phase, Phase::Running(_))
    }

    /// Something went well: what was counted in a row begins anew.
    pub(super) fn went_well(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Started(_) | Outcome::Merged(_) => {
                self.lost_claims = 0;
                self.failures = 0;
            }
            Outcome::Ready(_) | Outcome::Judged { .. } | Outcome::Shown | Outcome::Left(_) => {}
        }
    }
}

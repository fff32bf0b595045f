//! One agent of a team: its post, its state, its end.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use liza_agents::providers::Provider;
use liza_agents::providers::guard::GuardStop;
use liza_agents::providers::usage::SessionUsage;
use liza_core::model::{AgentId, ClientFault, Role, Seconds, StopFiles, TaskId, Timestamp};
use liza_core::supervise::{SessionPhase, StopReason};

use crate::engine::LivenessLock;

use super::error::SupervisorError;
use super::login_turns::LoginTurns;
use super::registration::Identity;
use super::session::Session;

/// A position in a team, to be filled by an agent.
#[derive(Debug, Clone)]
pub struct Post {
    pub role: Role,
    /// The next free name if absent.
    pub agent: Option<AgentId>,
    pub provider: Provider,
    pub task: Option<TaskId>,
    pub once: bool,
    /// In this terminal, with a person.
    pub interactive: bool,
}

#[derive(Debug)]
pub enum EndReason {
    Stop(StopReason),
    /// It was started for one session only.
    Once,
    /// A person or the system stopped the supervisor.
    Signalled,
    /// Its team ended because none of its agent programs can be used until a person has fixed something.
    NoClient,
    /// Another process has the registration.
    RegistrationLost,
    Failed(SupervisorError),
}

#[derive(Debug)]
pub struct AgentEnd {
    pub agent: AgentId,
    pub reason: EndReason,
}

#[derive(Debug)]
pub(super) struct RunningSession {
    pub session: Session,
    pub started: Timestamp,
    /// The time since then in which nothing ran.
    pub frozen: Seconds,
    pub phase: SessionPhase,
    /// As last read.
    pub lease_expires: Timestamp,
    /// As far as it has reported.
    pub used: SessionUsage,
    /// The error for which it is stopped, and the time.
    pub fault: Option<(ClientFault, Instant)>,
    pub guard: Option<GuardStop>,
    /// The part of it that is on the blackboard; locked while it is being written.
    recorded: Arc<Mutex<SessionUsage>>,
}

impl RunningSession {
    pub(super) fn new(session: Session, started: Timestamp, lease_expires: Timestamp) -> Self {
        let (phase, used, recorded) = Default::default();
        let frozen = Seconds(0);
        Self { session, started, frozen, phase, lease_expires, used, fault: None, guard: None, recorded }
    }

    pub(super) fn usage(&self) -> UsageToRecord {
        let (task, used) = (self.session.task.clone(), self.used.clone());
        UsageToRecord { task, used, recorded: Arc::clone(&self.recorded) }
    }
}

/// Every token is recorded once.
#[derive(Debug, Clone)]
pub(super) struct UsageToRecord {
    pub task: Option<TaskId>,
    pub used: SessionUsage,
    pub recorded: Arc<Mutex<SessionUsage>>,
}

impl UsageToRecord {
    /// The usage of a session that has ended.
    pub(super) fn settled(mut self) -> Self {
        self.used.usage = self.used.usage.settled();
        self.used.events = self.used.events.saturating_add(1);
        self
    }
}

#[derive(Debug)]
pub(super) enum MemberState {
    Busy,
    Idle,
    InSession(Box<RunningSession>),
    Leaving(EndReason),
    Gone(EndReason),
}

/// The facts that an agent's next step depends on, besides the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// The number of different states that were read.
    pub version: u64,
    pub stop_files: StopFiles,
    /// The number of finished background jobs: a task that another agent was claiming may be free again.
    pub jobs_done: u64,
}

#[derive(Debug)]
pub(super) struct Member {
    pub identity: Identity,
    pub post: Post,
    /// Held until the process ends, so that other processes can see that it is alive.
    _liveness: Option<LivenessLock>,
    pub state: MemberState,
    /// It takes no work before this time.
    pub not_before: Instant,
    /// The time of the next check even if nothing has happened.
    pub wake: Option<Instant>,
    /// The snapshot that had no work for it; it checks again when that changes, or when it wakes.
    pub no_work_in: Option<Snapshot>,
    pub claiming: Option<TaskId>,
    pub merging: Option<TaskId>,
    pub idle_since: Timestamp,
    /// Background jobs in a row that failed before it was known on what.
    pub failures: u32,
    /// Crashes in a row, of a code reviewer.
    pub crashes: u32,
    /// Sessions in a row that started again because the login has changed while they ran.
    pub login_restarts: u32,
    /// Its place among the sessions that may refresh a login.
    pub login_turn: LoginTurns,
    /// The blackboard shows a planner as WAITING.
    pub shown_waiting: bool,
    /// The result of its session that was reported while the session was running.
    pub reported: Option<String>,
    /// The last message, which is not repeated.
    pub last_message: String,
}

impl Member {
    pub(super) fn new(
        identity: Identity,
        post: Post,
        liveness: Option<LivenessLock>,
        now: Timestamp,
    ) -> Self {
        Self {
            identity,
            post,
            _liveness: liveness,
            state: MemberState::Busy,
            not_before: Instant::now(),
            wake: None,
            no_work_in: None,
            claiming: None,
            merging: None,
            idle_since: now,
            failures: 0,
            crashes: 0,
            login_restarts: 0,
            login_turn: LoginTurns::default(),
            shown_waiting: false,
            reported: None,
            last_message: String::new(),
        }
    }

    /// True if its lease has to be renewed.
    pub(super) fn is_registered(&self) -> bool {
        match self.state {
            MemberState::Busy | MemberState::Idle | MemberState::InSession(_) => true,
            MemberState::Leaving(_) | MemberState::Gone(_) => false,
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state, MemberState::Gone(_))
    }

    /// True if this snapshot has no work for it, and it is too early to check again.
    pub(super) fn has_seen(&self, snapshot: &Snapshot) -> bool {
        self.no_work_in.as_ref() == Some(snapshot) && self.wake.is_some_and(|time| Instant::now() < time)
    }

    /// True if it waits because this snapshot has no work for it.
    pub(super) fn has_no_work_in(&self, snapshot: &Snapshot) -> bool {
        matches!(self.state, MemberState::Idle) && self.no_work_in.as_ref() == Some(snapshot)
    }

    /// True if a person works with its running session.
    pub(super) fn is_interactive(&self) -> bool {
        self.post.interactive && matches!(self.state, MemberState::InSession(_))
    }

    /// A member that is still active was ended by a signal.
    pub(super) fn into_end(self) -> AgentEnd {
        let agent = self.identity.agent;
        match self.state {
            MemberState::Gone(reason) | MemberState::Leaving(reason) => AgentEnd { agent, reason },
            MemberState::Busy | MemberState::Idle | MemberState::InSession(_) => {
                AgentEnd { agent, reason: EndReason::Signalled }
            }
        }
    }
}

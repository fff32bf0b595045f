//! One agent of a team: what it is for, what it is doing, how it ended.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use liza_agents::providers::Provider;
use liza_agents::providers::guard::GuardStop;
use liza_agents::providers::usage::SessionUsage;
use liza_core::model::{AgentId, ClientFault, Role, StopFiles, TaskId, Timestamp};
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
    /// Its name; if absent, the next free one.
    pub agent: Option<AgentId>,
    pub provider: Provider,
    pub task: Option<TaskId>,
    pub once: bool,
    /// In this terminal, with a person.
    pub interactive: bool,
}

/// Why an agent's supervision ended.
#[derive(Debug)]
pub enum EndReason {
    /// The supervision rules ended it.
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

/// How an agent's supervision ended.
#[derive(Debug)]
pub struct AgentEnd {
    pub agent: AgentId,
    pub reason: EndReason,
}

/// A running session with what its supervisor knows about it.
#[derive(Debug)]
pub(super) struct RunningSession {
    pub session: Session,
    pub started: Timestamp,
    /// Whether it works or is being stopped, and how hard.
    pub phase: SessionPhase,
    /// When its lease expires, as last read.
    pub lease_expires: Timestamp,
    /// What it has used, as far as it has reported.
    pub used: SessionUsage,
    /// The error for which it is stopped, and when.
    pub fault: Option<(ClientFault, Instant)>,
    /// The guard that stops it.
    pub guard: Option<GuardStop>,
    /// The part of it that is on the blackboard; locked while it is being written.
    recorded: Arc<Mutex<SessionUsage>>,
}

impl RunningSession {
    pub(super) fn new(session: Session, started: Timestamp, lease_expires: Timestamp) -> Self {
        let (phase, used, recorded) = Default::default();
        Self { session, started, phase, lease_expires, used, fault: None, guard: None, recorded }
    }

    /// The usage that remains to be recorded.
    pub(super) fn usage(&self) -> UsageToRecord {
        let (task, used) = (self.session.task.clone(), self.used.clone());
        UsageToRecord { task, used, recorded: Arc::clone(&self.recorded) }
    }
}

/// What a session has used; every token is recorded once.
#[derive(Debug, Clone)]
pub(super) struct UsageToRecord {
    pub task: Option<TaskId>,
    pub used: SessionUsage,
    pub recorded: Arc<Mutex<SessionUsage>>,
}

/// What an agent is doing.
#[derive(Debug)]
pub(super) enum MemberState {
    /// A background job runs for it.
    Busy,
    Idle,
    InSession(Box<RunningSession>),
    Leaving(EndReason),
    Gone(EndReason),
}

/// What an agent's next step depends on, besides the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// The number of different states that were read.
    pub version: u64,
    pub stop_files: StopFiles,
    /// The number of finished background jobs: a task that another agent was claiming may be free again.
    pub jobs_done: u64,
}

/// One agent of a team.
#[derive(Debug)]
pub(super) struct Member {
    pub identity: Identity,
    pub post: Post,
    /// Held until the process ends, so that other processes can see that it is alive.
    _liveness: Option<LivenessLock>,
    pub state: MemberState,
    /// It takes no work before this time.
    pub not_before: Instant,
    /// When to check it again even if nothing has happened.
    pub wake: Option<Instant>,
    /// The snapshot that had no work for it; it checks again when that changes, or when it wakes.
    pub no_work_in: Option<Snapshot>,
    /// The task that it is trying to claim.
    pub claiming: Option<TaskId>,
    /// The task that it merges.
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
    /// Whether the blackboard shows a planner as WAITING.
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

    /// Whether its lease has to be renewed.
    pub(super) fn is_registered(&self) -> bool {
        match self.state {
            MemberState::Busy | MemberState::Idle | MemberState::InSession(_) => true,
            MemberState::Leaving(_) | MemberState::Gone(_) => false,
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state, MemberState::Gone(_))
    }

    /// Whether this snapshot has no work for it, and it is too early to check again.
    pub(super) fn has_seen(&self, snapshot: &Snapshot) -> bool {
        self.no_work_in.as_ref() == Some(snapshot) && self.wake.is_some_and(|time| Instant::now() < time)
    }

    /// Whether it waits because this snapshot has no work for it.
    pub(super) fn has_no_work_in(&self, snapshot: &Snapshot) -> bool {
        matches!(self.state, MemberState::Idle) && self.no_work_in.as_ref() == Some(snapshot)
    }

    /// Whether a person works with its running session.
    pub(super) fn is_interactive(&self) -> bool {
        self.post.interactive && matches!(self.state, MemberState::InSession(_))
    }

    /// How it ended; a member that is still active was ended by a signal.
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

//! Roles, an agent's entry on the blackboard, and the sender of a command.

use std::fmt;

use liza_ids::{AgentId, Generation, Revision, Role, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::client::SessionSummary;
use crate::model::lease::{lease_holds, lease_is_live};
use crate::model::spending::Usage;

/// The context fill, in percent, at which a session has to hand off.
pub const HANDOFF_AT: u32 = 90;

#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
pub enum AgentStatus {
    /// Registered, not yet looking for work.
    Starting,
    Idle,
    Working,
    Reviewing,
    Planning,
    /// A coder after its submission, or a planner without a trigger.
    Waiting,
    /// Its context is used up; a fresh session takes over.
    Handoff,
}

impl AgentStatus {
    /// The states that an agent of this role can be in.
    pub fn of_role(role: Role) -> &'static [Self] {
        use AgentStatus::{Handoff, Idle, Planning, Reviewing, Starting, Waiting, Working};
        match role {
            Role::Planner => &[Starting, Idle, Planning, Waiting, Handoff],
            Role::Coder => &[Starting, Idle, Working, Waiting, Handoff],
            Role::CodeReviewer => &[Starting, Idle, Reviewing, Handoff],
        }
    }

    pub fn name(self) -> &'static str {
        self.into()
    }

    pub fn is_in_session(self) -> bool {
        matches!(self, AgentStatus::Working | AgentStatus::Reviewing | AgentStatus::Planning)
    }
}

/// A session that has begun and whose end is not recorded yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenSession {
    pub began: Timestamp,
    /// The time of its last result of any kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Timestamp>,
    /// The keys of the triggers that woke a planner's session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<String>,
}

impl OpenSession {
    pub(crate) fn begin(now: Timestamp) -> Self {
        Self { began: now, result: None, about: Vec::new() }
    }
}

/// Declares a struct and the list of its keys in the file.
macro_rules! with_keys {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)+ }) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)+
        }

        impl $name {
            /// The keys that the program knows.
            pub const KEYS: &'static [&'static str] = &[$(stringify!($field)),+];
        }
    };
}

with_keys! {
/// An agent's entry, as the file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRecord {
    pub role: Role,
    pub status: AgentStatus,
    /// The task or review that it holds. Old files say `task`.
    #[serde(default, alias = "task")]
    pub current_task: Option<TaskId>,
    /// The end of the registration; equal to the lease of the task that it holds.
    #[serde(default)]
    pub lease_expires: Option<Timestamp>,
    /// The last renewal of its lease.
    #[serde(default)]
    pub heartbeat: Option<Timestamp>,
    /// The terminal where a person can watch it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<String>,
    /// The machine of its supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The fencing token of this registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<Generation>,
    /// The write of its session's last result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_result: Option<Revision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations_total: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Its session, from the claim or the start of a planning session until its end is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<OpenSession>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_session: Option<SessionSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_percent: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}
}

impl AgentRecord {
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.lease_expires.is_some_and(|expires| lease_is_live(expires, now))
    }

    /// True during its lease and the grace after it: no other agent may take what it holds.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.lease_expires.is_some_and(|expires| lease_holds(expires, now))
    }

    /// The context fill of its session, once that session should hand off.
    pub fn full_context(&self, now: Timestamp) -> Option<u32> {
        let in_session = self.status.is_in_session();
        self.context_percent.filter(|percent| in_session && self.is_live(now) && *percent >= HANDOFF_AT)
    }

    pub(crate) fn begin_session(
        &mut self,
        status: AgentStatus,
        task: &TaskId,
        lease: Timestamp,
        now: Timestamp,
    ) {
        self.status = status;
        self.current_task = Some(task.clone());
        self.lease_expires = Some(lease);
        self.heartbeat = Some(now);
        self.session = Some(OpenSession::begin(now));
        // Nothing of the new session has been measured yet.
        self.context_percent = None;
    }

    pub fn release(&mut self, status: AgentStatus) {
        self.current_task = None;
        self.status = status;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// A person: no agent ID at all.
    Human,
    /// An agent's session: its ID, and the generation that its supervisor gave it.
    Agent(AgentId, Generation),
    /// An ID without a generation: an old script, or a person who acts for the agent. Has the rights of that
    /// agent and of its supervisor, and is not fenced.
    Operator(AgentId),
    /// The supervisor of that agent, inside `liza agent` or `liza run`.
    Supervisor(AgentId, Generation),
}

impl Actor {
    /// The agent for which the command is sent.
    pub fn agent(&self) -> Option<AgentId> {
        match self {
            Actor::Human => None,
            Actor::Agent(id, _) | Actor::Operator(id) | Actor::Supervisor(id, _) => Some(*id),
        }
    }

    pub fn generation(&self) -> Option<Generation> {
        match self {
            Actor::Human | Actor::Operator(_) => None,
            Actor::Agent(_, generation) | Actor::Supervisor(_, generation) => Some(*generation),
        }
    }
}

impl fmt::Display for Actor {
    /// The name in the log and the histories.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.agent() {
            Some(id) => id.fmt(f),
            None => f.write_str("human"),
        }
    }
}

//! The agents that are here: by their leases, unless their supervisors are proven dead before.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::model::{AgentId, AgentRecord, Board, Role, Timestamp};

/// The life of an agent, by the lock of its supervisor and by its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    Live,
    /// Its lease has just expired; no other agent takes over yet.
    Grace,
    /// Its lease and the grace have expired.
    Gone,
    /// Its supervisor has ended without deregistering it, even if its lease is live.
    Dead,
}

impl Liveness {
    /// True if it may still be working.
    pub fn is_present(self) -> bool {
        match self {
            Liveness::Live | Liveness::Grace => true,
            Liveness::Gone | Liveness::Dead => false,
        }
    }
}

/// The agents of a team at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Presence<'a> {
    pub board: &'a Board,
    /// Those whose supervisor is proven to have ended.
    pub dead: &'a BTreeSet<AgentId>,
    pub now: Timestamp,
}

impl<'a> Presence<'a> {
    pub fn liveness(self, id: AgentId, entry: &AgentRecord) -> Liveness {
        match entry {
            _ if self.dead.contains(&id) => Liveness::Dead,
            entry if entry.is_live(self.now) => Liveness::Live,
            entry if entry.holds(self.now) => Liveness::Grace,
            _ => Liveness::Gone,
        }
    }

    pub fn agents(self) -> impl Iterator<Item = (AgentId, &'a AgentRecord)> + use<'a> {
        let all = self.board.agents.entries().map(|(id, entry)| (*id, entry));
        all.filter(move |(id, entry)| self.liveness(*id, entry).is_present())
    }

    pub fn of(self, role: Role) -> impl Iterator<Item = (AgentId, &'a AgentRecord)> + use<'a> {
        self.agents().filter(move |(_, entry)| entry.role == role)
    }

    pub fn has(self, agent: AgentId) -> bool {
        let entry = self.board.agents.ready().and_then(|agents| agents.get(&agent));
        entry.is_some_and(|entry| self.liveness(agent, entry).is_present())
    }

    pub fn has_role(self, role: Role) -> bool {
        self.of(role).next().is_some()
    }

    pub fn has_team(self) -> bool {
        self.agents().next().is_some()
    }
}

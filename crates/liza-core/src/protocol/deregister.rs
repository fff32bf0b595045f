//! deregister: an agent leaves the board; its claim stays until the lease ends.

use serde::Serialize;

use crate::model::{AgentId, Generation, LogAction, Refusal, Role, Section};
use crate::rules::clients::no_client_left;

use super::operation::{LoadScope, Rule, Stage};
use super::ownership::check_acts_for;
use super::permission::{Rights, SUPERVISION};
use super::tx::Tx;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deregister {
    pub agent: AgentId,
    /// If set, only this registration is removed: another agent may have taken the name since.
    pub if_generation: Option<Generation>,
    pub because: LeaveReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveReason {
    /// It has ended, or was ended.
    Ended,
    /// No agent program can be used, until the human repairs it.
    NoClient,
}

impl Deregister {
    /// Removes the entry of any registration.
    pub fn any(agent: AgentId) -> Self {
        Self::of(agent, None)
    }

    /// Removes the entry if it has that registration.
    pub fn of(agent: AgentId, if_generation: Option<Generation>) -> Self {
        Self { agent, if_generation, because: LeaveReason::Ended }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Deregistered {
    pub agent: AgentId,
}

impl Rule for Deregister {
    type Reply = Deregistered;
    const VERB: &'static str = "deregister";
    const RIGHTS: Rights = SUPERVISION;
    const STAGE: Stage = Stage::Leaves;

    fn scope(&self) -> LoadScope {
        // A planner that leaves may be what the end of the sprint has waited for.
        LoadScope { sections: &[Section::Sprint], all_summaries: self.agent.role() == Role::Planner }
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Deregistered, Refusal> {
        let agent = self.agent;
        check_acts_for(tx, agent)?;
        let entry = tx.agent(agent)?;
        let current = entry.generation.unwrap_or_default();
        if let Some(expected) = self.if_generation.filter(|expected| *expected != current) {
            return Err(Refusal::StaleGeneration { agent, expected, current });
        }
        tx.remove_agent(agent);
        let detail = match (self.because, entry.current_task) {
            (LeaveReason::NoClient, _) => no_client_left(tx.sprint()?),
            (LeaveReason::Ended, Some(task)) => format!("{task} is stopped"),
            (LeaveReason::Ended, None) => String::new(),
        };
        tx.log_as(agent, LogAction::Deregistered, None, &detail);
        Ok(Deregistered { agent })
    }
}

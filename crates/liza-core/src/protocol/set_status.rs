//! The status of an agent, as its supervisor reports it.

use serde::Serialize;

use crate::model::{AgentId, AgentStatus, Board, OpenSession, Refusal, Role, Section, TaskId, Timestamp};
use crate::rules::session_budget::SessionBudget;
use crate::rules::triggers::Trigger;

use super::budget::charge_session;
use super::operation::{LoadScope, Rule};
use super::ownership::check_acts_for;
use super::permission::{Rights, SUPERVISION};
use super::tx::Tx;

/// Sets an agent's status, as far as its role has that status.
#[derive(Debug, Clone, PartialEq)]
pub struct SetStatus {
    pub agent: AgentId,
    pub status: AgentStatus,
    /// The keys of the triggers of a planner's session.
    pub about: Vec<String>,
}

impl SetStatus {
    pub fn new(agent: AgentId, status: AgentStatus) -> Self {
        Self { agent, status, about: Vec::new() }
    }

    /// A planner begins a session that these triggers have woken.
    pub fn planning(agent: AgentId, triggers: &[Trigger]) -> Self {
        let about = triggers.iter().map(|trigger| trigger.key.clone()).collect();
        Self { agent, status: AgentStatus::Planning, about }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatusSet {
    pub agent: AgentId,
    pub status: AgentStatus,
}

impl Rule for SetStatus {
    type Reply = StatusSet;
    const VERB: &'static str = "set-status";
    const RIGHTS: Rights = SUPERVISION;

    fn scope(&self) -> LoadScope {
        // The end of a planning session may be what the end of the sprint has waited for.
        LoadScope {
            sections: &[Section::Config, Section::Sprint],
            all_summaries: self.agent.role() == Role::Planner,
        }
    }

    fn other_tasks(&self, board: &Board, _now: Timestamp) -> Vec<TaskId> {
        board.held_by(self.agent).cloned().into_iter().collect()
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<StatusSet, Refusal> {
        let (agent, status) = (self.agent, self.status);
        check_acts_for(tx, agent)?;
        let mut entry = tx.agent(agent)?;
        let role = agent.role();
        // A task that a person took away in the file is no longer held, even if the entry says so.
        let held = |id: &TaskId| tx.board.summary(id).is_some_and(|summary| summary.is_held_by(agent));
        entry.current_task = entry.current_task.filter(held);
        // WORKING and REVIEWING come with a task: only a claim sets them. Only registering sets STARTING.
        let (by_claim, by_registering) = (
            matches!(status, AgentStatus::Working | AgentStatus::Reviewing) && entry.current_task.is_none(),
            status == AgentStatus::Starting,
        );
        // An agent that holds a task works on it or hands it over.
        let busy = matches!(status, AgentStatus::Idle | AgentStatus::Waiting) && entry.current_task.is_some();
        if !AgentStatus::of_role(role).contains(&status) || by_claim || by_registering || busy {
            return Err(Refusal::BadAgentStatus { role, status });
        }
        if status == AgentStatus::Planning {
            charge_session(tx, &SessionBudget::Planner)?;
            // A new session, of which nothing has been measured yet.
            entry.context_percent = None;
            entry.session = Some(OpenSession { about: self.about.clone(), ..OpenSession::begin(tx.now) });
        }
        entry.status = status;
        entry.heartbeat = Some(tx.now);
        tx.put_agent(agent, entry);
        Ok(StatusSet { agent, status })
    }
}

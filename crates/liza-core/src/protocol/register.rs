//! register: an agent joins the board.

use serde::Serialize;

use crate::model::{
    AgentId, AgentRecord, AgentStatus, Board, Generation, LogAction, Refusal, Role, Section, TaskId,
    Timestamp,
};
use crate::rules::clients::waits_for_human;
use crate::rules::triggers::is_settled;

use super::operation::{LoadScope, Rule, Stage};
use super::ownership::check_acts_for;
use super::permission::{Rights, SUPERVISION};
use super::tx::Tx;

/// Registers an agent: refused while its name is in use, and for a second planner.
#[derive(Debug, Clone, PartialEq)]
pub struct Register {
    pub agent: AgentId,
    /// The terminal where a person can watch it.
    pub terminal: String,
    /// The machine of its supervisor, if that is known.
    pub machine: Option<String>,
    /// The registration under that name whose supervisor is proven dead: the lock that it held while alive is
    /// free. It is not in use, however long its lease runs.
    pub proven_dead: Option<Generation>,
    /// The fencing token of the new registration: random in a database, which may lose a write and use its
    /// revision again. Without one it is the revision of this write.
    pub generation: Option<Generation>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Registered {
    pub agent: AgentId,
    pub role: Role,
    pub generation: Generation,
    pub lease_expires: Timestamp,
}

impl Rule for Register {
    type Reply = Registered;
    const VERB: &'static str = "register";
    const RIGHTS: Rights = SUPERVISION;
    const STAGE: Stage = Stage::Joins;

    fn scope(&self) -> LoadScope {
        let all_summaries = self.agent.role() == Role::CodeReviewer;
        LoadScope { sections: &[Section::Config, Section::Sprint], all_summaries }
    }

    fn other_tasks(&self, board: &Board, _now: Timestamp) -> Vec<TaskId> {
        let dropped = board.summaries().filter(|summary| summary.review_dropped_by.contains(&self.agent));
        dropped.map(|summary| summary.id.clone()).collect()
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Registered, Refusal> {
        let agent = self.agent;
        check_acts_for(tx, agent)?;
        let live = |entry: &AgentRecord| entry.lease_expires.filter(|_| entry.is_live(tx.now));
        let agents = tx.board.agents()?;
        let dead = |entry: &&AgentRecord| self.proven_dead.is_some() && entry.generation == self.proven_dead;
        if let Some(until) = agents.get(&agent).filter(|entry| !dead(entry)).and_then(live) {
            return Err(Refusal::AgentLive { agent, until });
        }
        if agent.role() == Role::Planner {
            let mut others = agents.iter().filter(|(id, _)| id.role() == Role::Planner && **id != agent);
            if let Some((other, _)) = others.find(|(_, entry)| live(entry).is_some()) {
                return Err(Refusal::PlannerLive { other: *other });
            }
        }
        let generation = self.generation.unwrap_or(Generation(tx.revision().0));
        let lease_expires = tx.now + tx.config()?.lease_duration;
        let past = agents.get(&agent);
        let terminal = if self.terminal.trim().is_empty() { "unknown" } else { self.terminal.trim() };
        tx.put_agent(
            agent,
            AgentRecord {
                role: agent.role(),
                status: AgentStatus::Starting,
                current_task: None,
                lease_expires: Some(lease_expires),
                heartbeat: Some(tx.now),
                terminal: Some(terminal.to_owned()),
                machine: self.machine.clone(),
                generation: Some(generation),
                last_result: None,
                iterations_total: past.and_then(|past| past.iterations_total),
                client: None,
                session: None,
                last_session: past.and_then(|past| past.last_session.clone()),
                context_percent: None,
                usage: past.and_then(|past| past.usage.clone()),
            },
        );
        match agent.role() {
            Role::Planner => begin_planning(tx)?,
            Role::CodeReviewer => take_reviews_again(tx, agent, &self.other_tasks(tx.board, tx.now))?,
            Role::Coder => {}
        }
        release_clients(tx)?;
        let takeover = if past.filter(dead).is_some() { ", replaces one whose supervisor died" } else { "" };
        let detail = format!("generation {generation}, {terminal}{takeover}");
        tx.log_as(agent, LogAction::Registered, None, &detail);
        Ok(Registered { agent, role: agent.role(), generation, lease_expires })
    }
}

/// A new planner gets all that is unresolved, but no used answer, and may retry where the last one stopped.
fn begin_planning(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    let Some(sprint) = tx.board.sprint.ready() else { return Ok(()) };
    if sprint.planner_exits.count > 0 || !sprint.seen_triggers.iter().all(|key| is_settled(key)) {
        let sprint = tx.sprint()?;
        sprint.planner_exits.count = 0;
        sprint.seen_triggers.retain(|key| is_settled(key));
    }
    Ok(())
}

/// The person who starts an agent knows why its client was stopped: it may be tried again.
fn release_clients(tx: &mut Tx<'_>) -> Result<(), Refusal> {
    let Some(sprint) = tx.board.sprint.ready() else { return Ok(()) };
    if sprint.clients.values().any(waits_for_human) {
        tx.sprint()?.clients.retain(|_, client| !waits_for_human(client));
    }
    Ok(())
}

/// A code reviewer that was started again may retry the reviews that it dropped.
fn take_reviews_again(tx: &mut Tx<'_>, reviewer: AgentId, dropped: &[TaskId]) -> Result<(), Refusal> {
    for id in dropped {
        let mut task = tx.task(id)?;
        let by = task.record.review_dropped_by.take().unwrap_or_default();
        let others: Vec<AgentId> = by.into_iter().filter(|agent| *agent != reviewer).collect();
        task.record.review_dropped_by = Some(others).filter(|others| !others.is_empty());
        tx.put(task);
    }
    Ok(())
}

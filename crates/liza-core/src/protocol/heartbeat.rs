//! heartbeat: renews the leases of live agents and of their tasks and reviews.

use serde::Serialize;

use crate::model::{
    Actor, AgentId, Board, Generation, Refusal, Seconds, Section, Task, TaskId, TaskStatus, Timestamp,
    lease_is_too_long,
};

use super::operation::{LoadScope, Rule};
use super::ownership::check_acts_for;
use super::permission::{EVERYONE, Rights};
use super::tx::Tx;

/// Renews leases. Alone, a stale registration is refused; in a batch it is listed and the others are renewed.
#[derive(Debug, Clone, PartialEq)]
pub struct Heartbeat {
    /// The agents, each with its registration if the caller knows it.
    pub agents: Vec<(AgentId, Option<Generation>)>,
    /// The length of the lease, if not the usual one.
    pub length: Option<Seconds>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Renewed {
    /// The agents whose registration is lost.
    pub lost: Vec<AgentId>,
    /// The end of the last agent's lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_expires: Option<Timestamp>,
    /// The claims that were renewed, each with the registration of its coder.
    #[serde(skip)]
    pub claims: Vec<(TaskId, Generation)>,
}

impl Rule for Heartbeat {
    type Reply = Renewed;
    const VERB: &'static str = "heartbeat";
    const RIGHTS: Rights = EVERYONE;
    const LOADS: LoadScope = LoadScope::named(&[Section::Config]);

    fn other_tasks(&self, board: &Board, _now: Timestamp) -> Vec<TaskId> {
        let held = |(id, _): &(AgentId, Option<Generation>)| board.held_by(*id).cloned();
        self.agents.iter().filter_map(held).collect()
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Renewed, Refusal> {
        if self.agents.is_empty() {
            return Err(Refusal::NothingToDo { what: "renew: no agent is named" });
        }
        let (mut lost, mut lease_expires, mut claims) = (Vec::new(), None, Vec::new());
        for (agent, generation) in &self.agents {
            match renew(tx, *agent, *generation, self.length, &mut claims) {
                Err(refusal) if self.agents.len() == 1 => return Err(refusal),
                Err(_) => lost.push(*agent),
                Ok(lease) => lease_expires = Some(lease),
            }
        }
        Ok(Renewed { lost, lease_expires, claims })
    }
}

fn renew(
    tx: &mut Tx<'_>,
    agent: AgentId,
    generation: Option<Generation>,
    length: Option<Seconds>,
    claims: &mut Vec<(TaskId, Generation)>,
) -> Result<Timestamp, Refusal> {
    // A team's supervisors renew together, so a supervisor may name others, each with its own registration.
    if generation.is_none() || matches!(tx.actor, Actor::Agent(..)) {
        check_acts_for(tx, agent)?;
    }
    let mut entry = tx.agent(agent)?;
    let current = entry.generation.unwrap_or_default();
    if let Some(yours) = generation.filter(|yours| *yours != current) {
        return Err(Refusal::Fenced { agent, yours, current });
    }
    // A renewal never shortens a lease, such as one that was asked for before a long test run.
    let least = entry.lease_expires.filter(|lease| !lease_is_too_long(*lease, tx.now)).unwrap_or(tx.now);
    let mut lease = least.max(tx.now + length.unwrap_or(tx.config()?.lease_duration));
    if let Some(id) = entry.current_task.clone()
        // Its task may be broken: that must not cost the agent its own lease.
        && let Ok(mut task) = tx.task(&id)
    {
        lease = least.max(tx.now + length.unwrap_or(tx.config()?.lease(&task.record)));
        if renew_task(&mut task, agent, lease, tx.now) {
            if matches!(task.status, TaskStatus::Claimed { .. }) {
                claims.push((id, current));
            }
            tx.put_quietly(task);
        }
    }
    entry.lease_expires = Some(lease);
    entry.heartbeat = Some(tx.now);
    tx.put_agent(agent, entry);
    Ok(lease)
}

/// Renews the lease on the agent's task or review, unless another agent is taking it over.
fn renew_task(task: &mut Task, agent: AgentId, until: Timestamp, now: Timestamp) -> bool {
    let taken = task.record.reservation.as_ref().is_some_and(|r| r.by != agent && r.is_live(now));
    if let TaskStatus::Claimed { work, lease } = &mut task.status
        && work.coder == agent
        && !taken
    {
        *lease = until;
        return true;
    }
    if let TaskStatus::ReadyForReview { review: Some(review), .. } = &mut task.status
        && review.by == agent
    {
        review.lease = until;
        return true;
    }
    false
}

//! Whose it is: for whom a caller may speak, and whether the claim is its own.

use crate::agent::{Actor, AgentRecord, Role};
use crate::event::EventName;
use crate::ids::AgentId;
use crate::refusal::Refusal;
use crate::task::{Task, Work};
use crate::time::Timestamp;

use super::tx::Tx;

/// Refuses a caller who speaks for another agent. A person may speak for all.
pub(super) fn check_speaks_for(tx: &Tx<'_>, agent: AgentId) -> Result<(), Refusal> {
    match tx.actor.agent() {
        Some(caller) if caller != agent => Err(Refusal::NotYourAgent { actor: tx.actor.to_string(), agent }),
        _ => Ok(()),
    }
}

/// The entry of a registered agent of that role, for whom the caller may speak.
pub(super) fn registered(tx: &Tx<'_>, agent: AgentId, role: Role) -> Result<AgentRecord, Refusal> {
    check_speaks_for(tx, agent)?;
    if agent.role() != role {
        return Err(Refusal::WrongRole { agent, wanted: role });
    }
    tx.agent(agent)
}

/// The coder and work of a CLAIMED task that is the caller's own.
pub(super) fn own_claim(tx: &Tx<'_>, task: &Task) -> Result<(AgentId, Work), Refusal> {
    let Some(agent) = tx.actor.agent() else {
        return Err(tx.wrong_status(task, "its coder"));
    };
    if let Some((work, lease)) = task.status.claim() {
        if work.coder != agent {
            return Err(not_mine(tx, task, agent, &format!("it is {}'s", work.coder)));
        }
        check_claim_lease(tx, task, agent, lease)?;
        return Ok((agent, work.clone()));
    }
    // Without a coder it was taken away: by a release, a rescope, or its own success.
    if task.status.kept().coder.map_or(had_it(task, agent), |coder| coder != agent) {
        return Err(not_mine(tx, task, agent, &format!("it is {}", task.status.name())));
    }
    Err(tx.wrong_status(task, "a CLAIMED task"))
}

/// An agent that had the task and lost it must stop; anybody else is simply wrong.
fn not_mine(tx: &Tx<'_>, task: &Task, agent: AgentId, with: &str) -> Refusal {
    let (id, with) = (task.id.clone(), with.to_owned());
    match tx.actor {
        Actor::Agent(..) if had_it(task, agent) => Refusal::TaskLost { task: id, agent, now_with: with },
        Actor::Agent(..) | Actor::Human | Actor::Operator(_) | Actor::Supervisor(..) => {
            Refusal::NotYourTask { task: id, agent, with }
        }
    }
}

fn had_it(task: &Task, agent: AgentId) -> bool {
    let name = agent.to_string();
    let mut claims = task.record.history.iter().flatten().filter(|event| EventName::is_claim(&event.event));
    claims.any(|event| event.agent.as_ref() == Some(&name))
}

/// Somebody who is already taking the task over has it, as far as the old coder's session is concerned.
fn check_claim_lease(tx: &Tx<'_>, task: &Task, agent: AgentId, lease: Timestamp) -> Result<(), Refusal> {
    let taken = task.record.reservation.as_ref().filter(|r| r.by != agent && r.is_live(tx.now));
    if let Some(reservation) = taken {
        let now_with = format!("{} is taking it over", reservation.by);
        return Err(Refusal::TaskLost { task: task.id.clone(), agent, now_with });
    }
    match tx.actor {
        Actor::Agent(..) if lease < tx.now => Err(Refusal::LeaseLost { agent, expired: lease }),
        Actor::Agent(..) | Actor::Human | Actor::Operator(_) | Actor::Supervisor(..) => Ok(()),
    }
}

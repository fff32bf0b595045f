//! Ownership: the agents that a caller may act for, and the claims that are its own.

use crate::model::{
    Actor, AgentId, AgentRecord, Assignment, Refusal, ReviewClaim, Role, Sha, Task, TaskStatus, Timestamp,
    lease_is_live,
};

use super::tx::Tx;

/// Refuses a caller who acts for another agent. A person may act for all.
pub(super) fn check_acts_for(tx: &Tx<'_>, agent: AgentId) -> Result<(), Refusal> {
    match tx.actor.agent() {
        Some(caller) if caller != agent => Err(Refusal::NotYourAgent { actor: tx.actor.to_string(), agent }),
        _ => Ok(()),
    }
}

/// The entry of a registered agent of that role, for which the caller may act.
pub(super) fn registered(tx: &Tx<'_>, agent: AgentId, role: Role) -> Result<AgentRecord, Refusal> {
    check_acts_for(tx, agent)?;
    if agent.role() != role {
        return Err(Refusal::WrongRole { agent, wanted: role });
    }
    tx.agent(agent)
}

/// The coder and assignment of a CLAIMED task that is the caller's own.
pub(super) fn own_claim(tx: &Tx<'_>, task: &Task) -> Result<(AgentId, Assignment), Refusal> {
    let Some(agent) = tx.actor.agent() else {
        return Err(tx.wrong_status(task, "its coder"));
    };
    if let Some((work, lease)) = task.status.claim() {
        if work.coder != agent {
            return Err(not_yours(tx, task, agent, format!("it is {}'s", work.coder)));
        }
        check_claim_lease(tx, task, agent, lease)?;
        return Ok((agent, work.clone()));
    }
    // A task without a coder was taken away: by a release, a rescope, or its own success.
    if task.status.prior_work().coder.map_or(task.record.past().has_claimed(agent), |coder| coder != agent) {
        return Err(not_yours(tx, task, agent, format!("it is {}", task.status.name())));
    }
    Err(tx.wrong_status(task, "a CLAIMED task"))
}

/// An agent that had the task and lost it must stop; any other caller is simply wrong.
fn not_yours(tx: &Tx<'_>, task: &Task, agent: AgentId, now_with: String) -> Refusal {
    let id = task.id.clone();
    match tx.actor {
        Actor::Agent(..) if task.record.past().has_claimed(agent) => {
            Refusal::TaskLost { task: id, agent, now_with }
        }
        Actor::Agent(..) | Actor::Human | Actor::Operator(_) | Actor::Supervisor(..) => {
            Refusal::NotYourTask { task: id, agent, with: now_with }
        }
    }
}

/// A coder whose task another one is already taking over has lost it.
fn check_claim_lease(tx: &Tx<'_>, task: &Task, agent: AgentId, lease: Timestamp) -> Result<(), Refusal> {
    let taken = task.record.reservation.as_ref().filter(|r| r.by != agent && r.is_live(tx.now));
    if let Some(reservation) = taken {
        let now_with = format!("{} is taking it over", reservation.by);
        return Err(Refusal::TaskLost { task: task.id.clone(), agent, now_with });
    }
    match tx.actor {
        Actor::Agent(..) if !lease_is_live(lease, tx.now) => {
            Err(Refusal::LeaseLost { agent, expired: lease })
        }
        Actor::Agent(..) | Actor::Human | Actor::Operator(_) | Actor::Supervisor(..) => Ok(()),
    }
}

/// The review that is the caller's own, with a live lease.
pub(super) fn own_review(tx: &Tx<'_>, task: &Task) -> Result<(AgentId, Assignment, Sha), Refusal> {
    let TaskStatus::ReadyForReview { work, commit, review } = &task.status else {
        return Err(tx.wrong_status(task, "READY_FOR_REVIEW"));
    };
    let Some(agent) = tx.actor.agent() else {
        return Err(tx.wrong_status(task, "its code reviewer"));
    };
    if work.coder == agent {
        return Err(Refusal::OwnWork { task: task.id.clone(), agent });
    }
    match review {
        Some(review) if review.by == agent && review.is_live(tx.now) => {
            Ok((agent, work.clone(), commit.clone()))
        }
        Some(review) if review.by == agent => Err(Refusal::LeaseLost { agent, expired: review.lease }),
        other => Err(not_your_review(task, agent, other.as_ref())),
    }
}

pub(super) fn not_your_review(task: &Task, agent: AgentId, review: Option<&ReviewClaim>) -> Refusal {
    let with = match review {
        Some(review) => format!("it is with {} until {}", review.by, review.lease),
        None => "no code reviewer has claimed it".to_owned(),
    };
    Refusal::NotYourReview { task: task.id.clone(), agent, with }
}

/// Refuses to change a task that someone is claiming at this moment.
pub(super) fn check_unreserved(tx: &Tx<'_>, task: &Task) -> Result<(), Refusal> {
    match task.record.reservation.as_ref().filter(|reservation| reservation.is_live(tx.now)) {
        Some(r) => Err(Refusal::Reserved { task: task.id.clone(), by: r.by, until: r.expires }),
        None => Ok(()),
    }
}

//! register, heartbeat, deregister, set-status, record-usage.
//!
//! A registration is fenced by its generation; a heartbeat renews the agent's lease and that of what it holds.

use crate::agent::{Actor, AgentRecord, AgentStatus, Role};
use crate::event::LogAction;
use crate::ids::{AgentId, Generation, TaskId};
use crate::record::Usage;
use crate::refusal::Refusal;
use crate::task::{Task, TaskStatus};
use crate::time::{Seconds, Timestamp};
use crate::value::Value;

use super::own::check_speaks_for;
use super::tx::Tx;

/// An agent comes: refused while its name is in use, and for a second planner. A registration whose supervisor is
/// known to be dead is not in use, however long its lease runs.
pub(super) fn register(
    tx: &mut Tx<'_>,
    agent: AgentId,
    terminal: &str,
    proven_dead: Option<Generation>,
) -> Result<(), Refusal> {
    check_speaks_for(tx, agent)?;
    let live = |entry: &AgentRecord| entry.lease_expires.filter(|_| entry.is_live(tx.now));
    let agents = tx.board.agents()?;
    let dead = |entry: &&AgentRecord| proven_dead.is_some() && entry.generation == proven_dead;
    if let Some(until) = agents.get(&agent).filter(|entry| !dead(entry)).and_then(live) {
        return Err(Refusal::AgentLive { agent, until });
    }
    if agent.role() == Role::Planner {
        let mut others = agents.iter().filter(|(id, _)| id.role() == Role::Planner && **id != agent);
        let other = others.find(|(_, entry)| live(entry).is_some());
        if let Some((other, _)) = other {
            return Err(Refusal::PlannerLive { other: *other });
        }
    }
    let generation = Generation(tx.revision().0);
    let lease = tx.now + tx.config()?.lease_duration;
    let past = agents.get(&agent);
    let terminal = if terminal.trim().is_empty() { "unknown" } else { terminal.trim() };
    tx.put_agent(
        agent,
        AgentRecord {
            role: agent.role(),
            status: AgentStatus::Starting,
            current_task: None,
            lease_expires: Some(lease),
            heartbeat: Some(tx.now),
            terminal: Some(terminal.to_owned()),
            generation: Some(generation),
            iterations_total: past.and_then(|past| past.iterations_total),
            context_percent: None,
            usage: past.and_then(|past| past.usage.clone()),
        },
    );
    let takes_over = match past.filter(dead) {
        Some(_) => ", takes over from one that died",
        None => "",
    };
    let detail = format!("generation {generation}, {terminal}{takes_over}");
    tx.log_as(&agent.to_string(), LogAction::Registered, None, &detail);
    tx.reply("agent", agent.to_string());
    tx.reply("role", agent.role().to_string());
    tx.reply("generation", Value::Int(i64::try_from(generation.0).unwrap_or(i64::MAX)));
    tx.reply("lease_expires", lease);
    Ok(())
}

/// Renews leases. Alone, a stale registration is refused; in a batch it is named and the others are renewed.
pub(super) fn heartbeat(
    tx: &mut Tx<'_>,
    agents: &[(AgentId, Option<Generation>)],
    length: Option<Seconds>,
) -> Result<(), Refusal> {
    if agents.is_empty() {
        return Err(Refusal::NothingToDo { what: "renew: no agent is named" });
    }
    let mut lost = Vec::new();
    for (agent, generation) in agents {
        match renew(tx, *agent, *generation, length) {
            Err(refusal) if agents.len() == 1 => return Err(refusal),
            Err(_) => lost.push(agent.to_string()),
            Ok(()) => {}
        }
    }
    tx.reply("lost", lost);
    Ok(())
}

fn renew(
    tx: &mut Tx<'_>,
    agent: AgentId,
    generation: Option<Generation>,
    length: Option<Seconds>,
) -> Result<(), Refusal> {
    // A team's supervisors beat together, so a supervisor may name others, each with its own registration.
    if generation.is_none() || matches!(tx.actor, Actor::Agent(..)) {
        check_speaks_for(tx, agent)?;
    }
    let mut entry = tx.agent(agent)?;
    let current = entry.generation.unwrap_or_default();
    if let Some(yours) = generation.filter(|yours| *yours != current) {
        return Err(Refusal::Fenced { agent, yours, current });
    }
    let usual = tx.config()?.lease_duration;
    let mut lease = tx.now + length.unwrap_or(usual);
    if let Some(id) = entry.current_task.clone()
        // What it holds may be broken: that must not cost the agent its own lease.
        && let Ok(mut task) = tx.task(&id)
    {
        let own = tx.config()?.lease(&task.record);
        lease = tx.now + length.unwrap_or(own);
        if renew_task(&mut task, agent, lease, tx.now) {
            tx.put_quietly(task);
        }
    }
    entry.lease_expires = Some(lease);
    entry.heartbeat = Some(tx.now);
    tx.put_agent(agent, entry);
    tx.reply("lease_expires", lease);
    Ok(())
}

/// Renews the lease on what the agent holds; somebody who is taking it over is not disturbed.
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

/// An agent goes; what it has claimed stays claimed until the lease ends.
pub(super) fn deregister(tx: &mut Tx<'_>, agent: AgentId) -> Result<(), Refusal> {
    check_speaks_for(tx, agent)?;
    let entry = tx.agent(agent)?;
    tx.remove_agent(agent);
    let detail = match entry.current_task {
        Some(task) => format!("{} stays claimed until its lease ends", task),
        None => "nothing in hand".to_owned(),
    };
    tx.log_as(&agent.to_string(), LogAction::Deregistered, None, &detail);
    tx.reply("agent", agent.to_string());
    Ok(())
}

/// What the agent does now, as far as its role knows that state.
pub(super) fn set_status(tx: &mut Tx<'_>, agent: AgentId, status: AgentStatus) -> Result<(), Refusal> {
    check_speaks_for(tx, agent)?;
    let mut entry = tx.agent(agent)?;
    let role = agent.role();
    // What was taken away by hand is no longer in its hands, whatever the entry says.
    entry.current_task =
        entry.current_task.filter(|id| tx.board.head(id).is_some_and(|head| head.is_held_by(agent)));
    // WORKING and REVIEWING come with a task: claiming sets them, nothing else does.
    let by_claim =
        matches!(status, AgentStatus::Working | AgentStatus::Reviewing) && entry.current_task.is_none();
    // STARTING is what registering sets, and nobody comes back to it.
    let by_registering = status == AgentStatus::Starting;
    // Whoever has something in hand is at work on it, or hands it over.
    let busy = matches!(status, AgentStatus::Idle | AgentStatus::Waiting) && entry.current_task.is_some();
    if !role.statuses().contains(&status) || by_claim || by_registering || busy {
        return Err(Refusal::BadAgentStatus { role, status });
    }
    if status == AgentStatus::Planning {
        // A new session, of which nothing has been measured yet.
        entry.context_percent = None;
    }
    entry.status = status;
    entry.heartbeat = Some(tx.now);
    tx.put_agent(agent, entry);
    tx.reply("agent", agent.to_string());
    tx.reply("status", status.name());
    Ok(())
}

/// Adds up what a session used; how full its context is, is what it was last measured to be.
pub(super) fn record_usage(
    tx: &mut Tx<'_>,
    agent: AgentId,
    task: Option<&TaskId>,
    usage: &Usage,
    context_percent: Option<u32>,
) -> Result<(), Refusal> {
    check_speaks_for(tx, agent)?;
    let mut entry = tx.agent(agent)?;
    entry.usage.get_or_insert_default().add(usage);
    entry.context_percent = context_percent.or(entry.context_percent);
    tx.put_agent(agent, entry);
    // A task that is broken, or in the archive by now, must not cost the agent its own figures.
    if let Some(mut task) = task.and_then(|id| tx.task(id).ok()) {
        task.record.usage.get_or_insert_default().add(usage);
        tx.put_quietly(task);
    }
    Ok(())
}

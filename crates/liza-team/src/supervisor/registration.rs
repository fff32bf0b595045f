//! Chooses an agent's name and registers the agent under it.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use liza_agents::providers::Provider;
use liza_core::model::{Actor, AgentId, AgentRecord, Generation, Refusal, Revision, Role};
use liza_core::protocol::Register;
use liza_sandbox::sys::process::terminal_name;

use crate::engine::{Engine, LivenessLock, LockAttempt};
use crate::project::machine::{machine_name, runs_here};
use crate::project::{Project, now};

use super::channels::Channels;
use super::error::{Consequence, SupervisorError};
use super::event::MemberIndex;

const LOCK_TRIES: u32 = 3;

/// The time for which another process may hold an agent's lock just to check whether the agent is alive.
const CHECK_TIME: Duration = Duration::from_millis(200);

/// The number of free names that are tried: supervisors that start at the same time may try the same one.
const NAME_TRIES: usize = 16;

/// A registered agent, with the facts for its background jobs and sessions.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub index: MemberIndex,
    pub agent: AgentId,
    pub generation: Generation,
    pub provider: Provider,
    pub interactive: bool,
    /// The liza program itself, which sessions call and which is their helper.
    pub program: PathBuf,
    pub channels: Channels,
}

/// The requested name, checked against the role.
pub fn agent_for(role: Role, requested: Option<&str>) -> Result<Option<AgentId>, String> {
    let Some(requested) = requested.map(str::trim).filter(|name| !name.is_empty()) else { return Ok(None) };
    let agent: AgentId = requested.parse().map_err(|error| format!("{error}"))?;
    if agent.role() == role {
        return Ok(Some(agent));
    }
    let prefix = role.id_prefix();
    Err(format!("{agent} is a {}, not a {}: expected {prefix}-N", agent.role().title(), role.title()))
}

#[derive(Debug)]
pub(super) struct Registration {
    pub agent: AgentId,
    pub generation: Generation,
    /// Held while the process is alive; `None` if the file system has no locks.
    pub liveness: Option<LivenessLock>,
}

/// Registers under the requested name, or else under the name of an agent that died, or else under the first free one.
pub(super) fn register(
    project: &Project,
    role: Role,
    requested: Option<AgentId>,
) -> Result<Registration, SupervisorError> {
    let Some(agent) = requested else { return register_any(project, role) };
    match LivenessLock::take(project.folder(), agent, CHECK_TIME) {
        LockAttempt::Taken(lock) => register_as(project, agent, Some(lock)),
        // The lease decides whether the name is free.
        LockAttempt::Held | LockAttempt::Unknown => register_as(project, agent, None),
    }
}

/// The planner that prevented the registration of another one.
pub(super) fn other_planner(error: &SupervisorError) -> Option<AgentId> {
    let SupervisorError::Engine(error) = error else { return None };
    #[allow(clippy::wildcard_enum_match_arm, reason = "only these two are about an agent in the same place")]
    let other = match error.refusal()? {
        Refusal::PlannerLive { other } => *other,
        Refusal::AgentLive { agent, .. } => *agent,
        _ => return None,
    };
    Some(other).filter(|other| other.role() == Role::Planner)
}

/// The reason why a team has no planner.
pub fn planned_elsewhere(planner: AgentId, entry: Option<&AgentRecord>) -> String {
    let machine = entry.and_then(|entry| entry.machine.as_ref());
    let place = machine.map_or_else(String::new, |machine| format!(" on {machine}"));
    format!("{planner}{place} plans already; this team has no planner of its own")
}

fn register_any(project: &Project, role: Role) -> Result<Registration, SupervisorError> {
    if let Some(registration) = register_as_dead(project, role)? {
        return Ok(registration);
    }
    let state = project.state()?;
    let agents = state.board.agents.ready();
    let is_live =
        |agent: &AgentId| agents.and_then(|all| all.get(agent)).is_some_and(|entry| entry.is_live(now()));
    let free = (1..=u32::MAX).map(|number| AgentId::new(role, number)).filter(|agent| !is_live(agent));
    let mut refused = SupervisorError::NoFreeName { role: role.title() };
    for agent in free.take(NAME_TRIES) {
        let lock = match LivenessLock::take(project.folder(), agent, Duration::ZERO) {
            LockAttempt::Taken(lock) => Some(lock),
            LockAttempt::Unknown => None,
            LockAttempt::Held => continue,
        };
        match register_as(project, agent, lock) {
            Err(error) if role != Role::Planner && error.consequence() == Consequence::Recheck => {
                refused = error;
            }
            result => return result,
        }
    }
    Err(refused)
}

/// Registers under the name of an agent that has died, and so resumes what that agent was working on.
fn register_as_dead(project: &Project, role: Role) -> Result<Option<Registration>, SupervisorError> {
    let state = project.state()?;
    let entries = state.board.agents.ready().into_iter().flatten();
    let mut known: Vec<(AgentId, Option<Generation>)> = entries
        .filter(|(id, entry)| id.role() == role && runs_here(project.folder(), entry))
        .map(|(id, entry)| (*id, entry.generation))
        .collect();
    known.sort();
    for (agent, generation) in known {
        let attempt = LivenessLock::take(project.folder(), agent, Duration::ZERO);
        let LockAttempt::Taken(mut lock) = attempt else { continue };
        if !generation.is_some_and(|generation| lock.previous_holders().contains(&generation)) {
            continue;
        }
        match register_as(project, agent, Some(lock)) {
            Err(error) if error.consequence() == Consequence::Recheck => {}
            result => return result.map(Some),
        }
    }
    Ok(None)
}

fn register_as(
    project: &Project,
    agent: AgentId,
    mut liveness: Option<LivenessLock>,
) -> Result<Registration, SupervisorError> {
    let holders = liveness.as_mut().map(LivenessLock::previous_holders).unwrap_or_default();
    let generation = match &mut liveness {
        None => register_once(project, agent, &holders, None, project.store().new_generation())?,
        Some(lock) => {
            let generation = register_announced(project, agent, &holders, lock)?;
            lock.hold_for(&[generation]);
            generation
        }
    };
    Ok(Registration { agent, generation, liveness })
}

/// The number of announcements of a registration while the blackboard changes.
const ANNOUNCEMENTS: u32 = 10;

/// Registers after the lock file names the coming registration: whenever the process is killed, the next one
/// can prove that it is dead.
fn register_announced(
    project: &Project,
    agent: AgentId,
    holders: &[Generation],
    lock: &mut LivenessLock,
) -> Result<Generation, SupervisorError> {
    if let Some(chosen) = project.store().new_generation() {
        lock.hold_for(&[holders, &[chosen]].concat());
        return register_once(project, agent, holders, None, Some(chosen));
    }
    for _ in 0..ANNOUNCEMENTS {
        let revision = project.state()?.board.revision;
        let announced = Generation(revision.next().0);
        lock.hold_for(&[holders, &[announced]].concat());
        match register_once(project, agent, holders, Some(revision), None) {
            Err(SupervisorError::Engine(error))
                if matches!(error.refusal(), Some(Refusal::StaleRevision { .. })) => {}
            result => return result,
        }
    }
    register_once(project, agent, holders, None, None)
}

fn register_once(
    project: &Project,
    agent: AgentId,
    holders: &[Generation],
    if_revision: Option<Revision>,
    generation: Option<Generation>,
) -> Result<Generation, SupervisorError> {
    let state = project.state()?;
    let entry = state.board.agents.ready().and_then(|agents| agents.get(&agent));
    let here = entry.filter(|entry| runs_here(project.folder(), entry));
    let current = here.and_then(|entry| entry.generation);
    let proven_dead = current.filter(|current| holders.contains(current));
    // The agent has no supervisor yet: a person, or a program that a person started, registers it.
    retry_locked(|| {
        let engine = Engine::new(project, Actor::Human).if_revision(if_revision);
        let machine = Some(machine_name(project.folder()));
        let terminal = terminal_name();
        let command = Register { agent, terminal, machine, proven_dead, generation };
        Ok(engine.execute(command)?.reply.generation)
    })
}

/// Retries while the lock is not available: three tries, 1–5 s apart.
pub(super) fn retry_locked<T>(
    mut act: impl FnMut() -> Result<T, SupervisorError>,
) -> Result<T, SupervisorError> {
    for _ in 1..LOCK_TRIES {
        match act() {
            Err(error) if error.consequence() == Consequence::Locked => thread::sleep(random_pause()),
            result => return result,
        }
    }
    act()
}

/// Between 1 and 5 s, so that several waiting supervisors do not try at the same time.
pub(super) fn random_pause() -> Duration {
    use std::hash::{BuildHasher as _, RandomState};
    let random = RandomState::new().hash_one(std::process::id());
    Duration::from_millis(1000 + random % 4001)
}

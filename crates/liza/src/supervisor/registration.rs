//! Coming and going: which name an agent gets, its registration, its lease.

use std::thread;
use std::time::Duration;

use liza_core::model::{Actor, AgentId, Generation, Role, Value};
use liza_core::protocol::Command;

use crate::project::{Project, now};
use crate::sys::process::terminal_name;
use crate::work::{Asked, Life};

use super::trouble::Trouble;

/// How often a lock is asked for before giving up.
const LOCK_TRIES: u32 = 3;

/// How long somebody may hold the lock of an agent who only looks whether it is alive.
const GLANCE: Duration = Duration::from_millis(200);

/// The name that a supervisor of this role has to use: the one that was asked for, which must fit the role.
///
/// # Errors
///
/// In words, when it does not fit.
pub fn agent_for(role: Role, asked: Option<&str>) -> Result<Option<AgentId>, String> {
    let Some(asked) = asked.map(str::trim).filter(|asked| !asked.is_empty()) else { return Ok(None) };
    let agent: AgentId = asked.parse().map_err(|error| format!("{error}"))?;
    if agent.role() == role {
        return Ok(Some(agent));
    }
    let prefix = role.id_prefix();
    Err(format!("{agent} is a {}, not a {}: expected {prefix}-N", agent.role().title(), role.title()))
}

/// An agent that is on the board.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) agent: AgentId,
    pub(super) generation: Generation,
    /// Held for its life; nothing where there are no locks to be had.
    pub(super) life: Option<Life>,
}

/// Registers under that name, or under that of one that died, or under the first that is free.
pub(super) fn register(project: &Project, role: Role, asked: Option<AgentId>) -> Result<Registered, Trouble> {
    let Some(agent) = asked else { return register_next(project, role) };
    match Life::ask(project.folder(), agent, GLANCE) {
        Asked::Mine(life) => register_as(project, agent, Some(life)),
        // Its lease decides.
        Asked::Held | Asked::Unknown => register_as(project, agent, None),
    }
}

fn register_next(project: &Project, role: Role) -> Result<Registered, Trouble> {
    let state = project.look()?;
    let nobody = Default::default();
    let agents = state.board.agents.ready().unwrap_or(&nobody);
    let mut here: Vec<(AgentId, Option<Generation>)> = agents
        .iter()
        .filter(|(id, _)| id.role() == role)
        .map(|(id, entry)| (*id, entry.generation))
        .collect();
    here.sort();
    // What one that died had in hand is resumed under its name, at once.
    for (agent, generation) in here {
        let Asked::Mine(mut life) = Life::ask(project.folder(), agent, Duration::ZERO) else { continue };
        if generation.is_none() || life.left_by() != generation {
            continue;
        }
        match register_as(project, agent, Some(life)) {
            Err(Trouble::Refused(_)) => {}
            other => return other,
        }
    }
    let live = |agent: &AgentId| agents.get(agent).is_some_and(|entry| entry.is_live(now()));
    let mut refused = Trouble::Refused(format!("no {} is free", role.title()));
    let free = (1..=u32::MAX).map(|number| AgentId::new(role, number)).filter(|agent| !live(agent));
    // Another supervisor that starts at the same time may take the same name; then the next one is free.
    for agent in free.take(16) {
        let life = match Life::ask(project.folder(), agent, Duration::ZERO) {
            Asked::Mine(life) => Some(life),
            Asked::Unknown => None,
            Asked::Held => continue,
        };
        match register_as(project, agent, life) {
            Err(Trouble::Refused(text)) if role != Role::Planner => refused = Trouble::Refused(text),
            other => return other,
        }
    }
    Err(refused)
}

fn register_as(project: &Project, agent: AgentId, mut life: Option<Life>) -> Result<Registered, Trouble> {
    let proven_dead = life.as_mut().and_then(Life::left_by);
    let register = || {
        let command = Command::from(Register { agent, terminal: terminal_name(), proven_dead });
        // Not yet anybody's supervisor: a person, or what a person has started, brings the agent in.
        let outcome = project.submit(Actor::Human, None, command)?;
        match (outcome.refusal, outcome.reply.get("generation")) {
            (Some(refusal), _) => Err(refusal.into()),
            (None, Some(Value::Int(number))) => Ok(Generation(number.unsigned_abs())),
            (None, _) => Err(Trouble::Inconsistent(format!("{agent} was given no generation"))),
        }
    };
    let generation = patiently(register)?;
    if let Some(life) = &mut life {
        life.stand_for(generation);
    }
    Ok(Registered { agent, generation, life })
}

/// Does something that may fail for the lock: three tries, 1–5 s apart.
pub(super) fn patiently<T>(mut act: impl FnMut() -> Result<T, Trouble>) -> Result<T, Trouble> {
    for _ in 1..LOCK_TRIES {
        match act() {
            Err(Trouble::Locked(_)) => thread::sleep(a_while()),
            other => return other,
        }
    }
    act()
}

/// Between 1 and 5 s, at random.
pub(super) fn a_while() -> Duration {
    use std::hash::{BuildHasher as _, RandomState};
    let random = RandomState::new().hash_one(std::process::id());
    Duration::from_millis(1000 + random % 4001)
}

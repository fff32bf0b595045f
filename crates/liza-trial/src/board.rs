//! A blackboard in memory under the real rules: every command goes through `apply`, every change is checked as the store does.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use liza_core::model::{
    Actor, AgentId, Board, Config, Effect, Generation, Goal, Loaded, Refusal, Seconds, Sha, Sprint, State,
    TaskId, TaskRecord, Timestamp, Worktree,
};
use liza_core::protocol::{Command, Decided, Heartbeat, Register, Reply, Request, apply};
use liza_core::rules::found_merges::FoundMerges;
use liza_core::rules::invariants::{DiskFacts, introduced};
use liza_core::supervise::{Backoffs, Situation, Step, next_step};

/// The time between two looks of the supervisors at the board.
const ROUND: Seconds = Seconds(60);

/// A full commit hash for a number.
pub(crate) fn sha(number: usize) -> Sha {
    format!("{number:040x}").parse().unwrap_or_else(|_| unreachable!("40 hexadecimal digits"))
}

#[derive(Debug, Default)]
struct Disk(BTreeSet<Worktree>);

impl DiskFacts for Disk {
    fn worktree_exists(&self, worktree: &Worktree) -> bool {
        self.0.contains(worktree)
    }

    fn spec_exists(&self, _: &str) -> bool {
        true
    }
}

#[derive(Debug)]
pub(crate) struct TrialBoard {
    pub(crate) state: State,
    pub(crate) now: Timestamp,
    pub(crate) team: Vec<AgentId>,
    /// Broken invariants.
    pub(crate) faults: Vec<String>,
    disk: Disk,
}

impl TrialBoard {
    pub(crate) fn new(config: Config) -> Self {
        let now = Timestamp::from_unix(1_800_000_000);
        let goal = Goal {
            spec_ref: Some("specs/vision.md".to_owned()),
            planned: true,
            ..Goal::begin(1, "trial", now)
        };
        let board = Board {
            agents: Loaded::Ready(IndexMap::new()),
            config: Loaded::Ready(config),
            goal: Loaded::Ready(goal),
            sprint: Loaded::Ready(Sprint::begin(1, "goal-1", now)),
            circuit_breaker: Loaded::Ready(Default::default()),
            discovered: Loaded::Ready(Vec::new()),
            handoff: Loaded::Ready(IndexMap::new()),
            ..Board::default()
        };
        let state = State { board, journal: Default::default() };
        Self { state, now, team: Vec::new(), faults: Vec::new(), disk: Disk::default() }
    }

    pub(crate) fn join(&mut self, agent: AgentId) {
        self.register(agent, None);
        self.team.push(agent);
    }

    /// Registers an agent; `dead` is the registration that is known to have ended.
    pub(crate) fn register(&mut self, agent: AgentId, dead: Option<Generation>) {
        let (terminal, machine) = (String::new(), None);
        let register = Register { agent, terminal, machine, proven_dead: dead, generation: None };
        let _ = self.send(Actor::Operator(agent), register);
    }

    pub(crate) fn generation(&self, agent: AgentId) -> Generation {
        let entry = self.state.board.agents.ready().and_then(|agents| agents.get(&agent));
        entry.and_then(|entry| entry.generation).unwrap_or_default()
    }

    pub(crate) fn session(&self, agent: AgentId) -> Actor {
        Actor::Agent(agent, self.generation(agent))
    }

    pub(crate) fn supervisor(&self, agent: AgentId) -> Actor {
        Actor::Supervisor(agent, self.generation(agent))
    }

    /// Runs a command by the rules, and carries out its change.
    pub(crate) fn send(&mut self, actor: Actor, command: impl Into<Command>) -> Result<Reply, Refusal> {
        let command = command.into();
        let request =
            Request { actor, now: self.now, stop_files: Default::default(), if_revision: None, command };
        let Decided { change, answer } = apply(&self.state.board, &request)?;
        if let Ok(Reply::ReserveTask(_)) = &answer {
            self.disk.0.extend(change.tasks.keys().map(Worktree::of));
        }
        let wrong = introduced(&self.state.board, &change, &self.disk, self.now);
        self.faults.extend(wrong.iter().map(ToString::to_string));
        for effect in &change.effects {
            if let Effect::RemoveWorktree(task) = effect {
                self.disk.0.remove(&Worktree::of(task));
            }
        }
        self.state.apply(&change);
        answer
    }

    pub(crate) fn record(&self, task: &TaskId) -> Option<&TaskRecord> {
        self.state.board.body(task).ok().map(|body| body.record())
    }

    /// A minute later, with all leases renewed.
    pub(crate) fn wait(&mut self) {
        self.now = self.now + ROUND;
        let agents = self.team.iter().map(|agent| (*agent, Some(self.generation(*agent)))).collect();
        if let Some(first) = self.team.first() {
            let _ = self.send(self.supervisor(*first), Heartbeat { agents, length: None });
        }
    }

    pub(crate) fn next_step(&self, agent: AgentId, client: &str) -> Step {
        next_step(&Situation {
            state: &self.state,
            agent,
            stop_files: Default::default(),
            found_merges: &FoundMerges::NONE,
            now: self.now,
            idle_since: self.now,
            in_team: true,
            clients: &[client.to_owned()],
            backoffs: &Backoffs::NONE,
        })
    }
}

//! A board, its clock, and the part of git that the rules need.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use liza_core::model::{
    Actor, AgentId, BranchMerge, BranchSteps, Effect, Generation, Refusal, Revision, Role, Seconds, Sha,
    State, StopFiles, TaskId, Timestamp, Worktree, WorktreeMode,
};
use liza_core::protocol::{AddTask, Command, Decided, NewTask, Register, Reply, Request, apply};
use liza_core::rules::found_merges::FoundMerges;
use liza_core::rules::invariants::{DiskFacts, introduced};
use liza_core::rules::triggers::Trigger;
use liza_testkit::boards;

/// The lease of every claim: one long step of the clock ends it, and leaves it in its grace.
pub const LEASE: Seconds = Seconds(1_800);
/// From live into the grace.
pub const LONG: Seconds = Seconds(1_830);
/// From the grace to over.
pub const SHORT: Seconds = Seconds(70);

/// The size of a team and its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub tasks: u32,
    pub coders: u32,
    pub reviewers: u32,
    /// If true, a command validates every submission.
    pub validation: bool,
    /// If true, a person edits the file once.
    pub edits: bool,
    /// If true, people send at any moment whatever they could; if not, only what NEEDS YOU asks them for.
    pub people: bool,
    /// If true, leases end; if not, every supervisor that is registered renews in time.
    pub expiry: bool,
    /// If true, a merge can be on the branch without its record.
    pub loses_records: bool,
    /// The most sessions of a task, and of the planner.
    pub sessions: u32,
}

impl Size {
    pub const fn new(tasks: u32, coders: u32, reviewers: u32) -> Self {
        Self {
            tasks,
            coders,
            reviewers,
            validation: false,
            edits: false,
            people: true,
            expiry: true,
            loses_records: false,
            sessions: 4,
        }
    }

    /// The same team, whose people do only what they are asked for; a second review needs them.
    pub const fn asked(self) -> Self {
        Self { people: false, sessions: 2, ..self }
    }

    /// The same team, whose supervisors are never late: they die and leave, but no lease ends.
    pub const fn in_time(self) -> Self {
        Self { expiry: false, ..self }
    }

    /// The team of a seed: one to three tasks, one or two coders and code reviewers, with or without validation.
    pub fn of_seed(seed: u64) -> Self {
        let part = |by: u64, of: u64| u32::try_from(seed / by % of).unwrap_or(0) + 1;
        Self { validation: seed % 2 == 1, ..Self::new(part(2, 3), part(6, 2), part(12, 2)) }
    }

    /// The seconds after a lease in which it is not over yet. No rule tells the grace of a lease from its end where nobody is there to
    /// take over: with one coder and one code reviewer.
    pub const fn grace(self) -> i64 {
        if self.coders == 1 && self.reviewers == 1 { 0 } else { 60 }
    }

    pub fn name(self) -> String {
        let validation = if self.validation { " with validation" } else { "" };
        let edits = if self.edits { " with an edit by hand" } else { "" };
        let lost = if self.loses_records { ", records of merges are lost" } else { "" };
        let people = if self.people { "" } else { ", people do what they are asked" };
        let sessions = if self.sessions == 1 { ", one session per task" } else { "" };
        let expiry = if self.expiry { "" } else { ", no lease ends" };
        format!(
            "{} × {} × {}{validation}{edits}{lost}{people}{expiry}{sessions}",
            self.tasks, self.coders, self.reviewers
        )
    }

    pub fn task_ids(self) -> impl Iterator<Item = TaskId> {
        (1..=self.tasks).map(|number| boards::task(&format!("t{number}")))
    }

    pub fn coder_ids(self) -> impl Iterator<Item = AgentId> {
        (1..=self.coders).map(|number| AgentId::new(Role::Coder, number))
    }

    pub fn reviewer_ids(self) -> impl Iterator<Item = AgentId> {
        (1..=self.reviewers).map(|number| AgentId::new(Role::CodeReviewer, number))
    }

    pub fn planner(self) -> AgentId {
        AgentId::new(Role::Planner, 1)
    }
}

#[derive(Debug, Clone)]
pub struct World {
    pub size: Size,
    /// Shared until it changes: most commands are refused.
    pub state: Arc<State>,
    pub now: Timestamp,
    /// The head of each worktree on the disk.
    pub worktrees: BTreeMap<TaskId, u64>,
    pub commits: u64,
    pub integration: u64,
    /// True once a person has edited the file.
    pub is_edited: bool,
    /// A fault of this machine.
    pub tooth: Option<Tooth>,
    /// A merge that is on the integration branch, and whose record was lost; and the head before it.
    pub unrecorded: Option<(BranchMerge, u64)>,
    /// The running session of the planner: the revision before it, and what it was woken for.
    pub planning: Option<(Revision, Vec<Trigger>)>,
}

impl DiskFacts for World {
    fn worktree_exists(&self, worktree: &Worktree) -> bool {
        self.worktrees.keys().any(|task| Worktree::of(task) == *worktree)
    }

    fn spec_exists(&self, _: &str) -> bool {
        true
    }
}

/// A fault of the machine, named after what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tooth {
    TwoOwners,
    MergesUnapproved,
    ForgetsWorktree,
    RevivesAbandoned,
    CountsTooFar,
    LeavesWork,
    FirstMergeOnly,
    IgnoresBlocked,
    HearsFenced,
    IgnoresValidation,
    ForgetsLostMerge,
    ForgetsExits,
    IgnoresStopFiles,
    LosesCommit,
    AsksNobody,
}

/// The result of a command that was not refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    pub is_empty: bool,
    pub answer: Result<(), Refusal>,
}

pub fn sha(number: u64) -> Sha {
    /// The first ones: each step asks for some.
    static KNOWN: LazyLock<Vec<Sha>> = LazyLock::new(|| (0..64).map(made).collect());
    let known = usize::try_from(number).ok().and_then(|place| KNOWN.get(place));
    known.cloned().unwrap_or_else(|| made(number))
}

fn made(number: u64) -> Sha {
    format!("{number:040x}").parse().unwrap()
}

impl World {
    /// A team that has just started, with its tasks ready. Every limit is 2, but where people do what they like sessions are 4, so
    /// that a second review can take place.
    pub fn new(size: Size) -> Self {
        let now: Timestamp = "2025-01-17T14:00:00Z".parse().unwrap();
        let mut state = boards::empty("Retries everywhere", now);
        let config = boards::config(&mut state);
        (config.max_coder_iterations, config.max_review_cycles) = (2, 2);
        (config.max_crashes, config.max_idle_exits, config.max_blocks, config.max_rescopes) = (2, 2, 2, 2);
        (config.max_sessions, config.max_planner_sessions) = (size.sessions, size.sessions);
        config.lease_duration = LEASE;
        if size.validation {
            config.validation = vec!["cargo test".to_owned()];
        }
        // As `liza init` does it; a merge is held only on a head that is recorded.
        boards::goal(&mut state).integration_head = Some(sha(1));
        let (state, worktrees) = (Arc::new(state), BTreeMap::new());
        let mut world = Self {
            size,
            state,
            now,
            worktrees,
            commits: 1,
            integration: 1,
            is_edited: false,
            tooth: None,
            unrecorded: None,
            planning: None,
        };
        for agent in [size.planner()].into_iter().chain(size.coder_ids()).chain(size.reviewer_ids()) {
            world.run(Actor::Operator(agent), register(agent, None)).unwrap();
        }
        for task in size.task_ids() {
            let text = |text: &str| Some(text.to_owned());
            let new = NewTask {
                description: "do it".to_owned(),
                spec_ref: text("specs/x.md"),
                done_when: text("done"),
                scope: text("all"),
                ..NewTask::default()
            };
            world.run(Actor::Human, Command::from(AddTask { task, new })).unwrap();
        }
        world
    }

    /// The digest of the protected files on the integration branch.
    pub fn gate(&self) -> String {
        format!("gate {}", self.state.board.goal.ready().map_or(0, |goal| goal.gate_version))
    }

    /// The branch beyond the recorded head, as supervisors see it.
    pub fn found_merges(&self) -> FoundMerges {
        let merges = self.unrecorded.iter().map(|(merge, _)| merge.clone()).collect();
        FoundMerges::new(&self.state.board, &BranchSteps { merges, has_others: false })
    }

    pub fn generation(&self, agent: AgentId) -> Generation {
        let agents = self.state.board.agents.ready().unwrap();
        agents.get(&agent).and_then(|entry| entry.generation).unwrap_or_default()
    }

    pub fn supervisor(&self, agent: AgentId) -> Actor {
        Actor::Supervisor(agent, self.generation(agent))
    }

    pub fn session(&self, agent: AgentId) -> Actor {
        Actor::Agent(agent, self.generation(agent))
    }

    /// A session of an earlier registration, which does not know that it was replaced.
    pub fn late(&self, agent: AgentId) -> Actor {
        Actor::Agent(agent, Generation(self.generation(agent).0.saturating_sub(1)))
    }

    pub fn request(&self, actor: Actor, command: Command) -> Request<Command> {
        Request { actor, now: self.now, stop_files: StopFiles::default(), if_revision: None, command }
    }

    /// Decides a command as the store does, and writes it.
    pub fn run(&mut self, actor: Actor, command: Command) -> Result<Accepted, Refusal> {
        let request = self.request(actor, command);
        let Decided { change, answer } = apply(&self.state.board, &request)?;
        let forbidden = introduced(&self.state.board, &change, self, self.now);
        if !forbidden.is_empty() {
            return Err(Refusal::NothingToDo { what: "write: the invariants forbid it" });
        }
        if let Ok(Reply::ReserveTask(reserved)) = &answer {
            let base = u64::from_str_radix(reserved.base_commit.as_str(), 16).unwrap_or(1);
            let head = self.worktrees.entry(reserved.task.task.clone()).or_insert(base);
            if reserved.mode == WorktreeMode::Fresh {
                *head = base;
            }
        }
        for effect in &change.effects {
            if let Effect::RemoveWorktree(task) = effect {
                self.worktrees.remove(task);
            }
        }
        let is_empty = change.is_empty();
        if !is_empty {
            Arc::make_mut(&mut self.state).apply(&change);
        }
        Ok(Accepted { is_empty, answer: answer.map(drop) })
    }

    /// Commits in the worktree of a task.
    pub fn commit(&mut self, task: &TaskId) {
        if let Some(head) = self.worktrees.get_mut(task) {
            self.commits += 1;
            *head = self.commits;
        }
    }

    pub fn head(&self, task: &TaskId) -> Sha {
        sha(self.worktrees.get(task).copied().unwrap_or(0))
    }
}

pub fn register(agent: AgentId, proven_dead: Option<Generation>) -> Command {
    Command::from(Register { agent, terminal: String::new(), machine: None, proven_dead, generation: None })
}

//! A whole team by one seed: the seed decides who moves, what sessions do, and what breaks.
//!
//! Supervisors do what `next_step` says. Sessions submit, ask, end without a result or crash; supervisors die between two
//! commands and are started again; answers get lost, so that a command is sent twice; replaced agents speak; a person
//! answers NEEDS YOU, sometimes, and rarely does what nobody asks for. After the storm nothing breaks any more, and the goal has to end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use liza_core::model::{AgentId, Refusal, ReviewPhase, Role, Seconds, Status, StopFiles, TaskId};
use liza_core::supervise::{Step, Work, unseen_triggers};

use crate::alphabet::{Action, Outcome, step};
use crate::asked::asked_for;
use crate::canonical::canonical;
use crate::properties::{self, decided};
use crate::search::is_end;
use crate::world::{LEASE, Size, Tooth, World};

/// The moves of the storm, and the most moves until the goal has ended after it.
const STORM: usize = 150;
const CALM: usize = 1_500;

/// One run.
#[derive(Debug, Default)]
pub struct Simulated {
    pub seed: u64,
    pub moves: usize,
    pub merged: usize,
    pub abandoned: usize,
    /// The codes of the refusals that were met.
    pub refusals: BTreeMap<String, usize>,
    /// The broken promises, each with its number.
    pub faults: BTreeMap<&'static str, usize>,
    /// A broken promise, with the last moves.
    pub broken: Option<String>,
}

/// Splitmix64: the same numbers on every machine.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn percent(&mut self) -> u64 {
        self.roll() % 100
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(from.len()).ok().filter(|count| *count > 0)?;
        from.get(usize::try_from(self.roll() % count).ok()?)
    }
}

struct Team {
    world: World,
    dice: Dice,
    /// Agents whose supervisors live.
    alive: BTreeSet<AgentId>,
    /// Agents with a running session.
    sessions: BTreeSet<AgentId>,
    /// The last command, whose answer may have been lost.
    last: Option<Action>,
    trail: Vec<String>,
    found: Simulated,
}

/// Runs the team of a seed, on a sound machine or a broken one.
pub fn simulate(size: Size, seed: u64, tooth: Option<Tooth>) -> Simulated {
    let mut team = Team::new(World { tooth, ..World::new(size) }, seed);
    team.run(STORM, false);
    team.run(CALM, true);
    team.finish()
}

/// One move of a case.
#[derive(Debug, Clone)]
pub enum Move {
    Accepted(Action),
    Refused(Action),
}

impl From<Action> for Move {
    /// Only what a replaced agent says has to be refused.
    fn from(action: Action) -> Self {
        if action.is_late() { Move::Refused(action) } else { Move::Accepted(action) }
    }
}

/// Begins with these moves; then nothing breaks any more.
pub fn play(size: Size, moves: &[Move]) -> Simulated {
    let mut team = Team::new(World::new(size), 0);
    for one in moves {
        let (action, is_meant) = match one {
            Move::Accepted(action) => (action, true),
            Move::Refused(action) => (action, false),
        };
        if team.take(action.clone()) != is_meant {
            let happens = if is_meant { "refused" } else { "accepted" };
            team.found.broken.get_or_insert_with(|| format!("{action:?} is {happens}"));
        }
    }
    team.run(CALM, true);
    team.finish()
}

/// The results of many seeds together.
#[derive(Debug, Default, PartialEq)]
pub struct Seeds {
    pub seeds: u64,
    pub moves: usize,
    pub merged: usize,
    pub abandoned: usize,
    /// The codes of the refusals that were met.
    pub refusals: BTreeMap<String, usize>,
    /// The broken promises, each with its number.
    pub faults: BTreeMap<&'static str, usize>,
    /// The first seed that failed, and why.
    pub broken: Option<(u64, String)>,
}

/// Runs seeds on all cores, until one fails or the time is over. What it counts does not depend on the number of cores.
pub fn simulate_many(first: u64, most: u64, limit: Option<Duration>, watch: &(dyn Fn(u64) + Sync)) -> Seeds {
    let (all, next, began) = (Mutex::new(Seeds::default()), AtomicU64::new(first), Instant::now());
    let is_over = || limit.is_some_and(|limit| began.elapsed() > limit);
    let work = || {
        while !is_over() && all.lock().unwrap().broken.is_none() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + most {
                break;
            }
            let run = simulate(Size::of_seed(seed), seed, None);
            let mut all = all.lock().unwrap();
            all.add(run);
            watch(all.seeds);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    all.into_inner().unwrap()
}

impl Seeds {
    fn add(&mut self, run: Simulated) {
        self.seeds += 1;
        self.moves += run.moves;
        self.merged += run.merged;
        self.abandoned += run.abandoned;
        run.refusals.into_iter().for_each(|(code, count)| *self.refusals.entry(code).or_default() += count);
        run.faults.into_iter().for_each(|(what, count)| *self.faults.entry(what).or_default() += count);
        let is_first = self.broken.as_ref().is_none_or(|(first, _)| run.seed < *first);
        if let Some(why) = run.broken.filter(|_| is_first) {
            self.broken = Some((run.seed, format!("{}: {why}", Size::of_seed(run.seed).name())));
        }
    }

    /// The codes of the rules' refusals, and those of them that were not met.
    pub fn coverage(&self) -> (BTreeSet<&'static str>, BTreeSet<&'static str>) {
        let all: BTreeSet<&str> = Refusal::ROWS.iter().map(|row| row.code).collect();
        let missing = all.iter().copied().filter(|code| !self.refusals.contains_key(*code)).collect();
        (all, missing)
    }
}

impl Team {
    fn new(world: World, seed: u64) -> Self {
        let size = world.size;
        let alive = [size.planner()].into_iter().chain(size.coder_ids()).chain(size.reviewer_ids()).collect();
        let found = Simulated { seed, ..Simulated::default() };
        let (sessions, last, trail) = (BTreeSet::new(), None, Vec::new());
        Team { world, dice: Dice(seed), alive, sessions, last, trail, found }
    }

    fn run(&mut self, most: usize, calm: bool) {
        for _ in 0..most {
            if is_end(&self.world) || self.found.broken.is_some() {
                break;
            }
            self.tick(calm);
        }
    }

    fn finish(mut self) -> Simulated {
        let count = |status| self.world.state.board.in_status(status).count();
        (self.found.merged, self.found.abandoned) = (count(Status::Merged), count(Status::Abandoned));
        if !is_end(&self.world) && self.found.broken.is_none() {
            let tasks: Vec<_> =
                self.world.state.board.summaries().map(|task| (&task.id, task.status)).collect();
            let decides = |agent: &AgentId| (*agent, decided(&self.world, *agent, StopFiles::default()));
            let steps: Vec<(AgentId, Step)> = self.alive.iter().map(decides).collect();
            let (asked, board) = (asked_for(&self.world), canonical(&self.world));
            let why =
                format!("the goal does not end: {tasks:?}, asked for: {asked:?}, next: {steps:?}, {board}");
            self.found.broken = Some(why);
        }
        if let Some(broken) = &mut self.found.broken {
            let from = self.trail.len().saturating_sub(30);
            broken.push_str(&format!(" after {}", self.trail[from..].join(", ")));
        }
        self.found
    }

    fn tick(&mut self, calm: bool) {
        self.found.moves += 1;
        let pause = if !calm && self.dice.percent() < 3 { Seconds(1_830) } else { Seconds(20) };
        self.world.now = self.world.now + pause;
        // Only supervisors that live renew, in the second half of a lease; after a long sleep of the machine it may be too late.
        for agent in self.alive.clone() {
            if self.is_due(agent) {
                self.take(Action::Renew(agent));
            }
        }
        match if calm { 100 } else { self.dice.percent() } {
            0..6 => self.die(),
            6..12 => self.revive(),
            12..16 => self.repeat(),
            16..20 => self.speak_late(),
            20..25 => self.help(),
            25..27 => self.meddle(),
            _ => self.work(calm),
        }
        if calm {
            self.revive();
            self.help();
        }
    }

    fn is_due(&self, agent: AgentId) -> bool {
        let entry = self.world.state.board.agents.ready().and_then(|all| all.get(&agent));
        let expires = entry.and_then(|entry| entry.lease_expires);
        expires.is_some_and(|expires| expires < self.world.now + Seconds(LEASE.0 / 2))
    }

    /// Takes an action, asks all promises, and says whether it was accepted.
    fn take(&mut self, action: Action) -> bool {
        match step(&self.world, &action) {
            Err(refusal) => self.refused(&refusal),
            Ok(next) => {
                self.ask(&action, &next);
                self.world = next;
                if !matches!(action, Action::Renew(_)) {
                    self.trail.push(format!("{action:?}"));
                    self.last = Some(action);
                }
                true
            }
        }
    }

    fn refused(&mut self, refusal: &Refusal) -> bool {
        *self.found.refusals.entry(refusal.code().to_owned()).or_default() += 1;
        false
    }

    fn ask(&mut self, action: &Action, next: &World) {
        let boards = properties::ask_board(next).into_iter();
        let steps = properties::OF_STEPS.iter();
        let steps = steps.map(|property| (property.name, property.ask(&self.world, action, next)));
        let broken = boards.chain(steps).find_map(|(name, answer)| Some((name, answer?.err()?)));
        if let (Some((name, why)), None) = (broken, &self.found.broken) {
            self.found.broken = Some(format!("{name}: {why} by {action:?}"));
        }
    }

    fn die(&mut self) {
        let mortal: Vec<AgentId> =
            self.alive.iter().copied().filter(|id| id.role() != Role::Planner).collect();
        if let Some(agent) = self.dice.pick(&mortal).copied() {
            self.alive.remove(&agent);
            self.sessions.remove(&agent);
            self.count("a supervisor dies");
            self.trail.push(format!("{agent} dies"));
        }
    }

    fn revive(&mut self) {
        let size = self.world.size;
        let dead = size.coder_ids().chain(size.reviewer_ids()).find(|agent| !self.alive.contains(agent));
        if let Some(agent) = dead {
            self.alive.insert(agent);
            self.take(Action::Restart(agent));
        }
    }

    /// The answer of the last command was lost: it is sent again. What a supervisor counts, the store writes once.
    fn repeat(&mut self) {
        let once =
            |action: &Action| matches!(action, Action::Restart(_) | Action::Idle(..) | Action::Crash(..));
        if let Some(action) = self.last.clone().filter(|action| !once(action)) {
            self.count("a command is sent twice");
            self.take(action);
        }
    }

    fn speak_late(&mut self) {
        let tasks: Vec<TaskId> = self.world.size.task_ids().collect();
        let Some(task) = self.dice.pick(&tasks).cloned() else { return };
        self.count("a replaced agent speaks");
        match self.dice.percent() {
            0..50 => self.take(Action::LateSubmit(AgentId::new(Role::Coder, 1), task)),
            _ => self.take(Action::LateApproval(AgentId::new(Role::CodeReviewer, 1), task)),
        };
    }

    /// The person does something that NEEDS YOU asks for.
    fn help(&mut self) {
        let asked = asked_for(&self.world);
        let all = Action::all(&self.world).into_iter().filter(Action::is_humans);
        let possible: Vec<Action> =
            all.filter(|one| one.is_asked(&asked)).filter(|one| step(&self.world, one).is_ok()).collect();
        if let Some(action) = self.dice.pick(&possible).cloned() {
            self.take(action);
        }
    }

    /// A person does something that nobody asks for.
    fn meddle(&mut self) {
        let all: Vec<Action> = Action::all(&self.world).into_iter().filter(Action::is_humans).collect();
        if let Some(action) = self.dice.pick(&all).cloned() {
            self.count("a person does what nobody asks for");
            self.take(action);
        }
    }

    fn count(&mut self, fault: &'static str) {
        *self.found.faults.entry(fault).or_default() += 1;
    }

    fn work(&mut self, calm: bool) {
        let alive: Vec<AgentId> = self.alive.iter().copied().collect();
        let Some(agent) = self.dice.pick(&alive).copied() else { return };
        let quality = if calm { 0 } else { self.dice.percent() };
        let held =
            self.world.state.board.agents.ready().and_then(|all| all.get(&agent)?.current_task.clone());
        match (agent.role(), held) {
            (Role::Planner, _) => self.plan(quality),
            (Role::Coder, Some(task)) if self.sessions.contains(&agent) => self.code(agent, task, quality),
            (Role::CodeReviewer, Some(task)) if self.sessions.contains(&agent) => {
                self.review(agent, task, quality)
            }
            (Role::Coder | Role::CodeReviewer, _) => self.begin(agent, quality),
        }
    }

    fn begin(&mut self, agent: AgentId, quality: u64) {
        let Step::Work(work) = decided(&self.world, agent, StopFiles::default()) else { return };
        for work in work {
            let is_begun = match work {
                Work::Code(task) => {
                    self.take(Action::Reserve(agent, task.clone()));
                    // It may die here, with its reservation on the board.
                    quality < 97 && self.take(Action::Claim(agent, task)) && self.sessions.insert(agent)
                }
                Work::Review(task) => {
                    self.take(Action::ClaimReview(agent, task)) && self.sessions.insert(agent)
                }
                // It dies between git and the blackboard.
                Work::Merge(task) if quality >= 90 => {
                    self.count("the record of a merge is lost");
                    self.take(Action::LoseMerge(agent, task)) && self.alive.remove(&agent)
                }
                Work::Merge(task) => self.take(match quality {
                    0..65 => Action::Merge(agent, task),
                    65..82 => Action::MergeConflict(agent, task),
                    _ => Action::HoldMerge(agent, task),
                }),
                Work::Plan(_) => false,
            };
            if is_begun {
                return;
            }
        }
    }

    fn code(&mut self, coder: AgentId, task: TaskId, quality: u64) {
        let ends = match quality {
            0..65 => self.take(Action::Submit(coder, task)),
            65..72 => self.take(Action::SubmitAgain(coder, task)),
            72..80 => self.take(Action::Block(coder, task)),
            80..90 => self.take(Action::Idle(coder, task)),
            _ => self.take(Action::Crash(coder, task)),
        };
        if ends {
            self.sessions.remove(&coder);
        }
    }

    fn review(&mut self, reviewer: AgentId, task: TaskId, quality: u64) {
        let phase = self.world.state.board.body(&task).ok().and_then(|body| body.record().review_phase);
        if phase == Some(ReviewPhase::Validation) {
            let outcome = match quality {
                0..70 => Outcome::Green,
                70..85 => Outcome::Red,
                85..93 => Outcome::Held,
                _ => Outcome::Stale,
            };
            self.take(Action::Validate(reviewer, task.clone(), outcome));
            self.take(Action::BeginReview(reviewer, task));
            return;
        }
        let ends = match quality {
            0..50 => self.take(Action::Approve(reviewer, task)),
            50..75 => self.take(Action::Reject(reviewer, task)),
            75..85 => self.take(Action::Idle(reviewer, task)),
            85..93 => self.take(Action::Crash(reviewer, task)),
            _ => self.take(Action::ReleaseReview(reviewer, task)),
        };
        if ends {
            self.sessions.remove(&reviewer);
        }
    }

    fn plan(&mut self, quality: u64) {
        if self.world.planning.is_none() {
            self.take(Action::PlannerStarts);
            return;
        }
        let subjects =
            unseen_triggers(&self.world.state, self.world.now).into_iter().map(|trigger| trigger.subject);
        let subject: Option<TaskId> = subjects.filter_map(|subject| subject.parse().ok()).next();
        match (quality, subject) {
            (0..60, Some(task)) if self.take(Action::PlannerUnblocks(task.clone())) => {}
            (0..70, Some(task)) => drop(self.take(Action::PlannerAbandons(task))),
            (0..70, None) => drop(self.take(Action::PlannerEndsGoal)),
            _ => {}
        }
        self.take(Action::PlannerStops);
    }
}

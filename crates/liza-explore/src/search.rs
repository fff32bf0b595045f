//! Visits every board that a team can reach, breadth first.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap, VecDeque};

use liza_core::model::{GoalStatus, Status};

use crate::alphabet::{Action, step};
use crate::asked::asked_for;
use crate::canonical::fingerprint;
use crate::graph::{Edge, Graph, Mover};
use crate::properties;
use crate::teeth::bite;
use crate::world::{Size, Tooth, World};

/// The result of an exploration.
#[derive(Debug, Default)]
pub struct Explored {
    pub states: usize,
    pub transitions: usize,
    pub depth: usize,
    /// True if no board was left to visit.
    pub closed: bool,
    pub witnesses: BTreeMap<&'static str, Witness>,
    pub broken: Vec<Broken>,
    /// The codes of the refusals that were met.
    pub refusals: BTreeMap<String, usize>,
    graph: Graph,
}

/// The number of times that a property was asked where it says something, and the shortest way to the first such board.
#[derive(Debug, Clone, Default)]
pub struct Witness {
    pub count: usize,
    pub path: Vec<String>,
}

/// A property that does not hold, with the shortest way to it.
#[derive(Debug, Clone)]
pub struct Broken {
    pub property: &'static str,
    pub why: String,
    pub path: Vec<String>,
}

/// Explores until nothing is left, or that many boards are known. What follows from a broken board is not visited: it
/// would break other promises too.
pub fn explore(size: Size, most: usize, tooth: Option<Tooth>, watch: &dyn Fn(usize)) -> Explored {
    let first = World { tooth, ..World::new(size) };
    let mut known: HashMap<u128, u32> = HashMap::from([(fingerprint(&first), 0)]);
    let mut queue = VecDeque::from([(0_u32, 0_usize, first)]);
    let mut found = Explored::default();
    found.graph.parents.push(None);
    while let Some((at, depth, world)) = queue.pop_front() {
        watch(at as usize);
        found.depth = found.depth.max(depth);
        let is_sound = found.ask(&world, at);
        let is_end = is_end(&world);
        if is_end {
            found.graph.ends.push(at);
        }
        if known.len() >= most || !is_sound {
            found.graph.open.push(at);
            continue;
        }
        let asked = LazyCell::new(|| asked_for(&world));
        // After an edit by hand the way out may be another edit; the person is asked for something at least.
        if world.is_edited && !asked.is_empty() {
            found.graph.ends.push(at);
        }
        for (action, next) in found.successors(&world, at, tooth) {
            found.transitions += 1;
            // What follows an end is asked of its steps only.
            if is_end {
                continue;
            }
            let fresh = u32::try_from(known.len()).unwrap_or(u32::MAX);
            let to = *known.entry(fingerprint(&next)).or_insert(fresh);
            let mover = match action.is_humans() {
                true => Mover::Human { is_asked: action.is_asked(&asked) },
                false => Mover::Team,
            };
            found.graph.edges.push(Edge { from: at, to, mover, is_vain: action.is_vain() });
            if to == fresh {
                found.graph.parents.push(Some((at, action)));
                queue.push_back((to, depth + 1, next));
            }
        }
    }
    found.states = known.len();
    found.closed = found.graph.open.is_empty();
    found.check_graph();
    found
}

/// True if the goal is decided, or nothing of it is left to do.
pub(crate) fn is_end(world: &World) -> bool {
    let board = &world.state.board;
    let decided = board.goal.ready().is_some_and(|goal| goal.status != GoalStatus::InProgress);
    decided || board.summaries().all(|task| task.status.is_some_and(Status::is_terminal))
}

impl Explored {
    /// The boards after each action; one whose step breaks a promise is left out.
    fn successors(&mut self, world: &World, at: u32, tooth: Option<Tooth>) -> Vec<(Action, World)> {
        let mut all = Vec::new();
        for action in Action::all(world) {
            let result = match tooth.and_then(|tooth| bite(tooth, world, &action)) {
                Some(bitten) => Ok(bitten),
                None => step(world, &action),
            };
            match result {
                Ok(next) if self.ask_step(world, &action, &next, at) => all.push((action, next)),
                Ok(_) => self.graph.open.push(at),
                Err(refusal) => *self.refusals.entry(refusal.code().to_owned()).or_default() += 1,
            }
        }
        all
    }

    /// True if the board keeps all promises.
    fn ask(&mut self, world: &World, at: u32) -> bool {
        // Each is noted: `all` would stop at the first.
        let answers = properties::ask_board(world).into_iter();
        answers.filter(|(name, answer)| !self.note(name, answer.clone(), at, None)).count() == 0
    }

    fn ask_step(&mut self, before: &World, action: &Action, after: &World, at: u32) -> bool {
        let asked = properties::OF_STEPS.iter();
        asked.filter(|one| !self.note(one.name, one.ask(before, action, after), at, Some(action))).count()
            == 0
    }

    fn note(
        &mut self,
        property: &'static str,
        answer: Option<Result<(), String>>,
        at: u32,
        last: Option<&Action>,
    ) -> bool {
        let Some(answer) = answer else { return true };
        let path = || {
            let path = self.graph.path(at);
            path.iter().chain(last).map(Action::words).collect()
        };
        let known = self.witnesses.entry(property);
        known.or_insert_with(|| Witness { count: 0, path: path() }).count += 1;
        let Err(why) = answer else { return true };
        if !self.broken.iter().any(|broken| broken.property == property) {
            self.broken.push(Broken { property, why, path: path() });
        }
        false
    }

    /// From every board the goal can end without a person, or a person is asked for a step that leads on; and no
    /// circle of the team's steps has a session without a result.
    fn check_graph(&mut self) {
        let dead_ends = self.graph.dead_ends();
        let answer = match dead_ends.len() {
            0 => Ok(()),
            count => Err(format!("{count} boards lead to no end without a step that nobody is asked for")),
        };
        self.note(properties::WAY_OUT, Some(answer), dead_ends.first().copied().unwrap_or(0), None);
        let (count, endless) = self.graph.vain_sessions();
        let why = "this session without a result can be repeated for ever".to_owned();
        let answer = if endless.is_some() { Err(why) } else { Ok(()) };
        let first = self.graph.edges.iter().find(|edge| edge.is_vain).map_or(0, |edge| edge.to);
        let at = endless.map_or(first, |edge| edge.to);
        self.note(properties::SESSIONS_END, (count > 0).then_some(answer), at, None);
        for (name, count) in [(properties::WAY_OUT, self.states), (properties::SESSIONS_END, count)] {
            self.witnesses.entry(name).and_modify(|witness| witness.count = count);
        }
    }
}

//! Visits every board that a team can reach, breadth first.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap, VecDeque};

use liza_core::model::{GoalStatus, Status};

use crate::alphabet::{Action, step};
use crate::canonical::fingerprint;
use crate::properties::{self, Property};
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
    /// How often each property was asked where it says something.
    pub witnesses: BTreeMap<&'static str, usize>,
    pub broken: Vec<Broken>,
    /// The codes of the refusals that were met.
    pub refusals: BTreeMap<String, usize>,
    graph: Graph,
}

/// A property that does not hold, with the shortest way to it.
#[derive(Debug, Clone)]
pub struct Broken {
    pub property: &'static str,
    pub why: String,
    pub path: Vec<String>,
}

#[derive(Debug, Default)]
struct Graph {
    /// The way to each board: its predecessor and the action.
    parents: Vec<Option<(u32, Action)>>,
    /// From, to, and whether only a person can do it and is asked for it.
    edges: Vec<(u32, u32, Mover)>,
    ends: Vec<u32>,
    /// Boards whose successors are not known.
    open: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mover {
    Team,
    Human { is_asked: bool },
}

/// Explores until nothing is left, or that many boards are known.
pub fn explore(size: Size, most: usize, tooth: Option<Tooth>) -> Explored {
    let first = World { tooth, ..World::new(size) };
    let mut known: HashMap<u128, u32> = HashMap::from([(fingerprint(&first), 0)]);
    let mut queue = VecDeque::from([(0_u32, 0_usize, first)]);
    let mut found = Explored::default();
    found.graph.parents.push(None);
    while let Some((at, depth, world)) = queue.pop_front() {
        found.depth = found.depth.max(depth);
        found.ask(&world, at);
        let is_end = is_end(&world);
        if is_end {
            found.graph.ends.push(at);
        }
        if known.len() >= most {
            found.graph.open.push(at);
            continue;
        }
        let asked = LazyCell::new(|| properties::asked_for(&world));
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
                true => {
                    Mover::Human { is_asked: asked.iter().any(|command| command.contains(action.verb())) }
                }
                false => Mover::Team,
            };
            if to == fresh {
                found.graph.parents.push(Some((at, action)));
                queue.push_back((to, depth + 1, next));
            }
            found.graph.edges.push((at, to, mover));
        }
    }
    found.states = known.len();
    found.closed = found.graph.open.is_empty();
    found.check_ways_out();
    found
}

/// True if the goal is decided, or nothing of it is left to do.
pub(crate) fn is_end(world: &World) -> bool {
    let board = &world.state.board;
    let decided = board.goal.ready().is_some_and(|goal| goal.status != GoalStatus::InProgress);
    decided || board.summaries().all(|task| task.status.is_some_and(Status::is_terminal))
}

impl Explored {
    fn successors(&mut self, world: &World, at: u32, tooth: Option<Tooth>) -> Vec<(Action, World)> {
        let mut all = Vec::new();
        for action in Action::all(world) {
            let result = match tooth.and_then(|tooth| bite(tooth, world, &action)) {
                Some(bitten) => Ok(bitten),
                None => step(world, &action),
            };
            match result {
                Ok(next) => {
                    self.ask_step(world, &action, &next, at);
                    all.push((action, next));
                }
                Err(refusal) => *self.refusals.entry(refusal.code().to_owned()).or_default() += 1,
            }
        }
        all
    }

    fn ask(&mut self, world: &World, at: u32) {
        for property in properties::OF_BOARDS {
            // A person may write anything; the rest of the promises hold on such a board too.
            if world.is_edited && properties::OF_RULES_ALONE.contains(&property.name) {
                continue;
            }
            self.note(*property, property.ask(world), at, None);
        }
    }

    fn ask_step(&mut self, before: &World, action: &Action, after: &World, at: u32) {
        for property in properties::OF_STEPS {
            let answer = property.ask(before, action, after);
            self.note(Property { name: property.name, check: |_| None }, answer, at, Some(action));
        }
    }

    fn note(
        &mut self,
        property: Property,
        answer: Option<Result<(), String>>,
        at: u32,
        last: Option<&Action>,
    ) {
        let Some(answer) = answer else { return };
        *self.witnesses.entry(property.name).or_default() += 1;
        if let Err(why) = answer
            && !self.broken.iter().any(|broken| broken.property == property.name)
        {
            let mut path = self.path(at);
            path.extend(last.map(|action| format!("{action:?}")));
            self.broken.push(Broken { property: property.name, why, path });
        }
    }

    fn path(&self, mut at: u32) -> Vec<String> {
        let mut path = Vec::new();
        while let Some(Some((parent, action))) = self.graph.parents.get(at as usize) {
            path.push(format!("{action:?}"));
            at = *parent;
        }
        path.reverse();
        path
    }

    /// From every board the goal can end without a person, or a person is asked for a step that leads on.
    fn check_ways_out(&mut self) {
        let graph = &self.graph;
        let mut back: HashMap<u32, Vec<u32>> = HashMap::new();
        for (from, to, mover) in &graph.edges {
            if *mover != (Mover::Human { is_asked: false }) {
                back.entry(*to).or_default().push(*from);
            }
        }
        let mut leads_on = vec![false; graph.parents.len()];
        // Beyond the bound nothing is known: such a board is no witness against the property.
        let mut queue: Vec<u32> = graph.ends.iter().chain(&graph.open).copied().collect();
        while let Some(at) = queue.pop() {
            if !std::mem::replace(&mut leads_on[at as usize], true) {
                queue.extend(back.get(&at).into_iter().flatten());
            }
        }
        self.witnesses.insert(properties::WAY_OUT, leads_on.len());
        if let Some(stuck) = leads_on.iter().position(|leads| !leads) {
            let count = leads_on.iter().filter(|leads| !**leads).count();
            let path = self.path(u32::try_from(stuck).unwrap_or(0));
            let why = format!("{count} boards lead to no end without a step that nobody is asked for");
            self.broken.push(Broken { property: properties::WAY_OUT, why, path });
        }
    }
}

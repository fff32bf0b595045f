//! Visits every board that a team can reach, breadth first.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap, VecDeque};

use liza_core::model::GoalStatus;

use crate::alphabet::{Action, step};
use crate::asked::asked_for;
use crate::canonical::fingerprint;
use crate::graph::{Edge, Graph, Mover};
use crate::properties;
use crate::teeth::bite;
use crate::world::World;

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
/// would break other promises too. The result does not depend on the number of threads.
///
/// `watch` gets the number of boards that were visited, and of those that are known.
pub fn explore(first: World, most: usize, watch: &dyn Fn(usize, usize)) -> Explored {
    let mut known: HashMap<u128, u32> = HashMap::from([(fingerprint(&first), 0)]);
    let mut queue = VecDeque::from([Open { at: 0, depth: 0, world: first }]);
    let mut found = Explored::default();
    found.graph.parents.push(None);
    while !queue.is_empty() {
        let batch: Vec<Open> = queue.drain(..queue.len().min(BATCH)).collect();
        let is_full = known.len() >= most;
        for (board, look) in batch.iter().zip(look_at_all(&batch, &known, is_full)) {
            watch(board.at as usize, known.len());
            found.take(board, look, most, &mut known, &mut queue);
        }
    }
    found.states = known.len();
    found.closed = found.graph.open.is_empty();
    found.check_graph();
    found
}

/// The boards that the threads look at before the next ones are chosen.
const BATCH: usize = 64;

/// A board whose successors are not known.
struct Open {
    at: u32,
    depth: usize,
    world: World,
}

/// An answer of a property, with the step that it is about, if it is about one.
struct Noted {
    property: &'static str,
    answer: Result<(), String>,
    step: Option<Action>,
}

/// All that is asked of one board, without what is known of others.
struct Look {
    of_board: Vec<Noted>,
    of_steps: Vec<Noted>,
    is_end: bool,
    /// True if a person who has edited it is asked for something.
    asks_editor: bool,
    steps: Vec<Successor>,
    /// True if a step breaks a promise.
    has_broken_step: bool,
    refusals: Vec<&'static str>,
}

struct Successor {
    action: Action,
    mover: Mover,
    key: u128,
    /// Absent if the board is known.
    world: Option<World>,
}

/// Looks at the boards on all cores; where the bound is reached, at their promises only.
fn look_at_all(batch: &[Open], known: &HashMap<u128, u32>, is_full: bool) -> Vec<Look> {
    let look = |part: &[Open]| -> Vec<Look> {
        part.iter().map(|open| look_at(&open.world, known, is_full)).collect()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut parts = batch.chunks(batch.len().div_ceil(threads).max(1));
    let own = parts.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let others: Vec<_> = parts.map(|part| scope.spawn(move || look(part))).collect();
        let mut all = look(own);
        all.extend(others.into_iter().flat_map(|other| other.join().unwrap()));
        all
    })
}

fn look_at(world: &World, known: &HashMap<u128, u32>, is_full: bool) -> Look {
    let answers = properties::ask_board(world).into_iter();
    let noted =
        |(property, answer): (_, properties::Answer)| Some(Noted { property, answer: answer?, step: None });
    let mut look = Look {
        of_board: answers.filter_map(noted).collect(),
        of_steps: Vec::new(),
        is_end: is_end(world),
        asks_editor: false,
        steps: Vec::new(),
        has_broken_step: false,
        refusals: Vec::new(),
    };
    if is_full || !look.is_sound() {
        return look;
    }
    let asked = LazyCell::new(|| asked_for(world));
    // After an edit by hand the way out may be another edit; the person is asked for something at least.
    look.asks_editor = world.is_edited && !asked.is_empty();
    for action in Action::all_if(world, &|action| action.is_asked(&asked)) {
        let result = match world.tooth.and_then(|tooth| bite(tooth, world, &action)) {
            Some(bitten) => Ok(bitten),
            None => step(world, &action),
        };
        match result {
            Err(refusal) => look.refusals.push(refusal.code()),
            Ok(next) if look.ask_step(world, &action, &next) => {
                let mover = match action.is_humans() {
                    true => Mover::Human { is_asked: action.is_asked(&asked) },
                    false => Mover::Team,
                };
                look.add(action, mover, next, known);
            }
            Ok(_) => look.has_broken_step = true,
        }
    }
    look
}

impl Look {
    fn is_sound(&self) -> bool {
        self.of_board.iter().all(|noted| noted.answer.is_ok())
    }

    /// True if the step keeps all promises.
    fn ask_step(&mut self, before: &World, action: &Action, after: &World) -> bool {
        let mut is_sound = true;
        for one in properties::OF_STEPS {
            let Some(answer) = one.ask(before, action, after) else { continue };
            is_sound &= answer.is_ok();
            self.of_steps.push(Noted { property: one.name, answer, step: Some(action.clone()) });
        }
        is_sound
    }

    fn add(&mut self, action: Action, mover: Mover, next: World, known: &HashMap<u128, u32>) {
        // What follows an end is asked of its steps only.
        let key = if self.is_end { 0 } else { fingerprint(&next) };
        let world = (!self.is_end && !known.contains_key(&key)).then_some(next);
        self.steps.push(Successor { action, mover, key, world });
    }
}

/// True if the goal is decided, or nothing of it is left to do.
pub(crate) fn is_end(world: &World) -> bool {
    let board = &world.state.board;
    let decided = board.goal.ready().is_some_and(|goal| goal.status != GoalStatus::InProgress);
    decided || board.tasks.keys().all(|task| properties::has_ended(world, task))
}

impl Explored {
    /// Adds what was seen of a board; its successors are the next to look at.
    fn take(
        &mut self,
        board: &Open,
        look: Look,
        most: usize,
        known: &mut HashMap<u128, u32>,
        queue: &mut VecDeque<Open>,
    ) {
        let at = board.at;
        self.depth = self.depth.max(board.depth);
        let is_sound = look.is_sound();
        self.note_all(look.of_board, at);
        if look.is_end {
            self.graph.ends.push(at);
        }
        if known.len() >= most || !is_sound {
            self.graph.open.push(at);
            return;
        }
        if look.asks_editor {
            self.graph.ends.push(at);
        }
        if look.has_broken_step {
            self.graph.open.push(at);
        }
        self.note_all(look.of_steps, at);
        for code in look.refusals {
            *self.refusals.entry(code.to_owned()).or_default() += 1;
        }
        self.transitions += look.steps.len();
        for Successor { action, mover, key, world } in look.steps.into_iter().filter(|_| !look.is_end) {
            let fresh = u32::try_from(known.len()).unwrap_or(u32::MAX);
            let to = *known.entry(key).or_insert(fresh);
            self.graph.edges.push(Edge { from: at, to, mover, is_vain: action.is_vain() });
            if let Some(world) = world.filter(|_| to == fresh) {
                self.graph.parents.push(Some((at, action)));
                queue.push_back(Open { at: to, depth: board.depth + 1, world });
            }
        }
    }

    fn note_all(&mut self, noted: Vec<Noted>, at: u32) {
        for Noted { property, answer, step } in noted {
            self.note(property, Some(answer), at, step.as_ref());
        }
    }

    fn note(
        &mut self,
        property: &'static str,
        answer: Option<Result<(), String>>,
        at: u32,
        last: Option<&Action>,
    ) {
        let Some(answer) = answer else { return };
        let path = || {
            let path = self.graph.path(at);
            path.iter().chain(last).map(Action::words).collect()
        };
        let known = self.witnesses.entry(property);
        known.or_insert_with(|| Witness { count: 0, path: path() }).count += 1;
        let Err(why) = answer else { return };
        if !self.broken.iter().any(|broken| broken.property == property) {
            self.broken.push(Broken { property, why, path: path() });
        }
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

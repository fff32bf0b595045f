//! Boards with equal fingerprints have equal outcomes: without that, the exploration would overlook boards.

use std::collections::{HashMap, VecDeque};

use crate::alphabet::{Action, step};
use crate::canonical::plain;
use crate::every_command;
use crate::world::{Size, World};

/// What happens to a board under each action: a refusal's code, or the next board.
type Outcomes = Vec<(Action, Result<u128, String>)>;

#[derive(Debug, Default)]
pub struct Compared {
    pub pairs: usize,
    /// Pairs with another outcome: the action, and both.
    pub differences: Vec<String>,
}

/// Compares that many pairs of boards that differ and have the same fingerprint: under all that can happen in the world,
/// and every nth pair under a sample of every command.
pub fn compare(size: Size, most: usize, every: usize) -> Compared {
    let first = World::new(size);
    let mut known: HashMap<u128, (World, Outcomes)> = HashMap::new();
    let mut queue = VecDeque::from([(plain(&first), first)]);
    let mut compared = Compared::default();
    while let Some((key, world)) = queue.pop_front() {
        match known.get(&key) {
            Some((other, _)) if other.state == world.state => continue,
            Some((other, expected)) => {
                if compared.pairs.is_multiple_of(every) {
                    compared.differences.extend(every_command::differences(other, &world));
                }
                compared.pairs += 1;
                compared.differences.extend(difference(expected, &outcomes(&world).0));
            }
            None => {
                let (outcomes, next) = outcomes(&world);
                queue.extend(next);
                known.insert(key, (world, outcomes));
            }
        }
        if compared.pairs == most {
            break;
        }
    }
    compared
}

/// The first difference between two boards, under all that can happen, and also under every command.
pub(crate) fn differences(one: &World, other: &World, with_commands: bool) -> Option<String> {
    let first = difference(&outcomes(one).0, &outcomes(other).0);
    let commands = || every_command::differences(one, other).into_iter().next();
    first.or_else(|| with_commands.then(commands).flatten())
}

fn difference(expected: &Outcomes, found: &Outcomes) -> Option<String> {
    if expected.len() != found.len() {
        return Some(format!("{} actions / {}", expected.len(), found.len()));
    }
    let differs = expected.iter().zip(found).find(|(one, other)| one != other);
    differs.map(|(one, other)| format!("{one:?} / {other:?}"))
}

fn outcomes(world: &World) -> (Outcomes, Vec<(u128, World)>) {
    let mut next = Vec::new();
    let outcome = |action: Action| {
        let outcome = match step(world, &action) {
            Ok(after) => {
                let key = plain(&after);
                next.push((key, after));
                Ok(key)
            }
            Err(refusal) => Err(refusal.code().to_owned()),
        };
        (action, outcome)
    };
    let outcomes = Action::all(world).into_iter().map(outcome).collect();
    (outcomes, next)
}

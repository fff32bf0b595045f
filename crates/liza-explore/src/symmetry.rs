//! Two agents of a role that swap their places: the same happens, to the other one.
//!
//! The fingerprint is the same for both boards. That is tried: a board of a random run, and the same board with other names of
//! its agents, answer alike under all that can happen, by those names.

use std::collections::BTreeSet;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_128;

use crate::alphabet::{Action, step};
use crate::asked::asked_for;
use crate::canonical::{renamed, renamings};
use crate::form::{Names, name_in};
use crate::properties::ask_board;
use crate::simulate::Dice;
use crate::with_words::with_words;
use crate::world::{Size, World};

/// The steps of each run.
const STEPS: usize = 40;

#[derive(Debug, Default)]
pub struct Swapped {
    pub pairs: usize,
    pub differences: Vec<String>,
}

/// Plays runs by these seeds, and compares each board with those on which agents have swapped their places.
pub fn compare_swapped(size: Size, seeds: Range<u64>) -> Swapped {
    let mut found = Swapped::default();
    for seed in seeds {
        let (mut world, mut dice) = (World::new(size), Dice(seed));
        for _ in 0..STEPS {
            for names in renamings(size).iter().skip(1) {
                let other = with_words(&world, &|word| name_in(names, word).to_owned());
                let (here, there) = (answers(&world, names), answers(&other, &Names::new()));
                found.pairs += 1;
                let differs = here.symmetric_difference(&there).next();
                found.differences.extend(differs.map(|answer| format!("seed {seed}, {names:?}: {answer}")));
            }
            let all = Action::all(&world);
            let next = (0..all.len()).find_map(|_| step(&world, dice.pick(&all)?).ok());
            let Some(next) = next else { break };
            world = next;
        }
    }
    found
}

/// All that is ever asked of a board, by these names: its promises, and each action with its result.
fn answers(world: &World, names: &Names) -> BTreeSet<String> {
    let board = |world: &World| xxh3_128(renamed(world, names.clone()).as_bytes());
    let asked = asked_for(world);
    let answer = |action: Action| {
        let result = step(world, &action).map(|next| board(&next)).map_err(|refusal| refusal.code());
        let words = action.words();
        let words: Vec<&str> = words.split(' ').map(|word| name_in(names, word)).collect();
        format!("{}: asked {}, {result:?}", words.join(" "), action.is_asked(&asked))
    };
    let promises = ask_board(world).into_iter();
    let promises = promises.map(|(name, answer)| format!("{name}: {:?}", answer.map(|kept| kept.is_ok())));
    Action::all(world).into_iter().map(answer).chain(promises).chain([format!("{}", board(world))]).collect()
}

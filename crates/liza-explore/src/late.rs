//! The cap of times: what is over is over, however long ago.
//!
//! The fingerprint says "over" of each time beyond the grace. Without that no team would close, since time only grows. Whether
//! it is sound is tried: a board of a random run and the same board, on which all that is over was over earlier, answer
//! alike.

use std::ops::Range;

use liza_core::model::{Seconds, StopFiles, Timestamp};

use crate::alphabet::{Action, step};
use crate::asked::asked_for;
use crate::canonical::canonical;
use crate::pairs::differences;
use crate::properties::{ask_board, decided};
use crate::simulate::Dice;
use crate::with_words::with_words;
use crate::world::{Size, World};

/// The steps of each run.
const STEPS: usize = 60;

#[derive(Debug, Default)]
pub struct Late {
    /// Boards with something that is over, each compared with a later one.
    pub pairs: usize,
    pub differences: Vec<String>,
}

/// Plays runs by these seeds, and compares each board on which something is over with one on which it was over by a minute to a
/// month earlier: under all that can happen, and every nth pair under a sample of every command.
pub fn compare_late(size: Size, seeds: Range<u64>, every: usize) -> Late {
    let mut late = Late::default();
    for seed in seeds {
        let (mut world, mut dice) = (World::new(size), Dice(seed));
        for _ in 0..STEPS {
            let earlier = dice.roll() % 2_592_000 + 60;
            let other = with_late(&world, Seconds(earlier));
            if other.state != world.state {
                late.pairs += 1;
                let found = differing(&world, &other, late.pairs.is_multiple_of(every));
                late.differences.extend(found.map(|why| format!("seed {seed}, {earlier} s: {why}")));
            }
            let all = Action::all(&world);
            let next = (0..all.len()).find_map(|_| step(&world, dice.pick(&all)?).ok());
            let Some(next) = next else { break };
            world = next;
        }
    }
    late
}

/// The first difference between two boards, in all that is ever asked of them.
fn differing(one: &World, other: &World, with_commands: bool) -> Option<String> {
    if canonical(one) != canonical(other) {
        return Some(format!("{} / {}", canonical(one), canonical(other)));
    }
    if decisions(one) != decisions(other) {
        return Some(format!("NEEDS YOU: {:?} / {:?}", decisions(one), decisions(other)));
    }
    if ask_board(one) != ask_board(other) {
        return Some(format!("{:?} / {:?}", ask_board(one), ask_board(other)));
    }
    let agents = one.state.board.agents.ready().into_iter().flatten();
    let steps = |world: &World, agent| format!("{:?}", decided(world, agent, StopFiles::default()));
    let mut next = agents.map(|(agent, _)| (steps(one, *agent), steps(other, *agent)));
    let next = next.find(|(first, second)| first != second);
    next.map(|(first, second)| format!("{first} / {second}"))
        .or_else(|| differences(one, other, with_commands))
}

/// The commands that NEEDS YOU names. To start an agent, which it asks for after the grace, decides nothing on the board: whether
/// one starts is an action.
fn decisions(world: &World) -> Vec<String> {
    let mut asked = asked_for(world);
    asked.retain(|command| !command.starts_with("liza agent "));
    asked
}

/// The same board, on which everything that is over was over that much earlier.
fn with_late(world: &World, earlier: Seconds) -> World {
    let is_over = |time: Timestamp| time.unix() - world.now.unix() < -world.size.grace();
    with_words(world, &|word| match word.parse::<Timestamp>() {
        Ok(time) if is_over(time) => (time - earlier).to_string(),
        Ok(_) | Err(_) => word.to_owned(),
    })
}

//! Simulates whole teams by seed: `just simulate`. Arguments: the number of seeds, and the first one; a failing seed is
//! replayed with `just simulate 1 SEED`.

#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::collections::BTreeMap;

use liza_explore::simulate::simulate;
use liza_explore::world::Size;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let seeds: u64 = args.next().map_or(Ok(10_000), |text| text.parse())?;
    let first: u64 = args.next().map_or(Ok(0), |text| text.parse())?;
    let (mut merged, mut abandoned, mut moves) = (0, 0, 0);
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    for seed in first..first + seeds {
        let run = simulate(Size::of_seed(seed), seed);
        if let Some(broken) = run.broken {
            return Err(format!("seed {seed} ({}): {broken}", Size::of_seed(seed).name()).into());
        }
        (merged, abandoned, moves) = (merged + run.merged, abandoned + run.abandoned, moves + run.moves);
        run.refusals.into_iter().for_each(|(code, count)| *refusals.entry(code).or_default() += count);
        if (seed - first) % 1_000 == 999 {
            println!("{} seeds, {moves} moves", seed - first + 1);
        }
    }
    println!("{seeds} seeds, {moves} moves: {merged} tasks merged, {abandoned} abandoned, no promise broken");
    println!("refusals met: {refusals:?}");
    Ok(())
}

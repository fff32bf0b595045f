//! Simulates whole teams by seed: `just simulate`. Arguments: the number of seeds, and the first one; a failing seed is
//! replayed with `just simulate 1 SEED`. The figures go to `target/evidence/simulation.json`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its output is what it is for")]

use std::io::IsTerminal;
use std::time::Instant;

use liza_explore::evidence;
use liza_explore::simulate::simulate_many;
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let most: u64 = args.next().map_or(Ok(10_000), |text| text.parse())?;
    let first: u64 = args.next().map_or(Ok(0), |text| text.parse())?;
    let (began, is_shown) = (Instant::now(), std::io::stderr().is_terminal());
    let watch = |done: u64| {
        if is_shown && done.is_multiple_of(100) {
            eprint!("\r{done} of {most} seeds");
        }
    };
    let found = simulate_many(first, most, None, &watch);
    if let Some((seed, why)) = &found.broken {
        return Err(format!("seed {seed}, again with `just simulate 1 {seed}`: {why}").into());
    }
    let (codes, missing) = found.coverage();
    println!(
        "{} seeds, {} moves: {} tasks merged, {} abandoned, no promise broken",
        found.seeds, found.moves, found.merged, found.abandoned
    );
    println!("error codes of the rules reached: {} of {}", codes.len() - missing.len(), codes.len());
    println!("not reached: {missing:?}");
    let figures = json!({
        "first": first, "seeds": found.seeds, "moves": found.moves, "merged": found.merged, "abandoned": found.abandoned,
        "codes": codes, "faults": found.faults, "refusals": found.refusals, "seconds": began.elapsed().as_secs(),
    });
    evidence::write("simulation", figures)?;
    Ok(())
}

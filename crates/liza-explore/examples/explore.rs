//! Explores teams of several sizes and writes the figures as JSON: `just explore`.
//!
//! Argument: the most boards of each team that does not close.

#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::io::IsTerminal;
use std::time::Instant;

use liza_explore::evidence;
use liza_explore::search::explore;
use liza_explore::teeth::{FAULTS, Fault};
use liza_explore::world::Size;
use serde_json::{Value, json};

const SMALL: Size = Size::new(1, 1, 1);
/// More boards than any team has that closes.
const CLOSES: usize = 400_000;
/// The teams that close: each is visited to its end.
const CLOSED: [Size; 2] = [SMALL.asked().in_time(), Size { sessions: 1, ..SMALL.asked() }];
const TEAMS: [Size; 9] = [
    SMALL.asked(),
    SMALL,
    Size { validation: true, ..SMALL }.asked(),
    Size { validation: true, ..SMALL },
    Size { edits: true, ..SMALL },
    Size::new(1, 2, 2).asked(),
    Size::new(1, 2, 2),
    Size::new(2, 2, 2),
    Size::new(3, 2, 2),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let most: usize = args.next().map_or(Ok(20_000), |text| text.parse())?;
    let mut found_any = false;
    let teams = TEAMS.map(|size| (size, most)).into_iter().chain(CLOSED.map(|size| (size, CLOSES)));
    let teams: Vec<Value> = teams.map(|(size, most)| team(size, most, &mut found_any)).collect();
    let properties: Vec<Value> = FAULTS.iter().map(|fault| property(fault, &mut found_any)).collect();
    evidence::write("exploration", json!({ "teams": teams, "properties": properties }))?;
    if found_any { Err("a promise is broken, or a fault is not noticed".into()) } else { Ok(()) }
}

fn team(size: Size, most: usize, found_any: &mut bool) -> Value {
    let began = Instant::now();
    let name = size.name();
    let is_shown = std::io::stderr().is_terminal();
    let watch = |visited: usize| {
        if is_shown && visited.is_multiple_of(500) {
            eprint!("\r{name}: {visited} boards visited");
        }
    };
    let found = explore(size, most, None, &watch);
    let seconds = began.elapsed().as_secs_f64();
    let end = if found.closed { "closed" } else { "up to the bound" };
    println!(
        "{name}: {} boards, {} steps, depth {}, {end}, {seconds:.0} s",
        found.states, found.transitions, found.depth
    );
    for broken in &found.broken {
        *found_any = true;
        println!("BROKEN {}: {}\n  after {}", broken.property, broken.why, broken.path.join(", "));
    }
    let witnesses = found.witnesses.iter().map(|(name, witness)| ((*name).to_owned(), json!(witness.count)));
    json!({
        "name": name, "states": found.states, "transitions": found.transitions, "depth": found.depth,
        "closed": found.closed, "bound": most, "seconds": seconds.round(), "refusals": found.refusals,
        "witnesses": witnesses.collect::<serde_json::Map<_, _>>(), "broken": found.broken.len(),
    })
}

fn property(fault: &Fault, found_any: &mut bool) -> Value {
    let Fault { tooth, promise, size, boards } = fault;
    let found = explore(*size, *boards, Some(*tooth), &|_| {});
    let breaks: Vec<&str> = found.broken.iter().map(|one| one.property).collect();
    let is_exact = breaks == [*promise];
    *found_any |= !is_exact;
    println!("{promise}: {tooth:?} breaks {breaks:?}");
    let path =
        |wanted: &str| found.broken.iter().find(|one| one.property == wanted).map(|one| one.path.join(", "));
    let witness = found.witnesses.get(promise).map(|witness| witness.path.join(", "));
    json!({
        "name": promise, "mutation": format!("{tooth:?}"), "breaks": breaks, "witness": witness,
        "broken_by": path(promise),
    })
}

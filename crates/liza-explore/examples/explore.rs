//! Explores teams of several sizes and writes the figures as JSON: `just explore`.
//!
//! Argument: the most boards of each team that does not close.

#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::io::IsTerminal;
use std::time::Instant;

use liza_explore::alphabet::Action;
use liza_explore::evidence;
use liza_explore::search::explore;
use liza_explore::teeth::{FAULTS, Fault};
use liza_explore::world::{Size, World};
use serde_json::{Value, json};

const SMALL: Size = Size::new(1, 1, 1);
/// More boards than any team has that closes.
const CLOSES: usize = 1_000_000;
/// The teams that close: each is visited to its end.
const CLOSED: [Size; 3] = [
    SMALL.asked(),
    Size { sessions: 1, edits: true, ..SMALL.asked() },
    Size { sessions: 1, ..Size::new(1, 2, 2).asked().in_time() },
];
const TEAMS: [Size; 9] = [
    SMALL,
    Size { validation: true, ..SMALL }.asked(),
    Size { validation: true, ..SMALL },
    Size { edits: true, ..SMALL },
    Size { loses_records: true, ..SMALL },
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
    let faults = FAULTS.iter().zip(1..);
    let properties: Vec<Value> =
        faults.map(|(fault, number)| property(fault, number, &mut found_any)).collect();
    evidence::write("exploration", json!({ "teams": teams, "properties": properties }))?;
    if found_any { Err("a promise is broken, or a fault is not noticed".into()) } else { Ok(()) }
}

fn team(size: Size, most: usize, found_any: &mut bool) -> Value {
    let (began, name) = (Instant::now(), size.name());
    let found = explore(World::new(size), most, &shown(&name, most));
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

/// The progress, on a terminal.
fn shown(name: &str, most: usize) -> impl Fn(usize, usize) {
    let is_shown = std::io::stderr().is_terminal();
    move |visited, known| {
        if is_shown && visited.is_multiple_of(500) {
            eprint!("\r{name}: {visited} of {known} known boards visited, at most {most} ");
        }
    }
}

fn property(fault: &Fault, number: usize, found_any: &mut bool) -> Value {
    let Fault { tooth, promise, boards, .. } = fault;
    let name = format!("fault {number} of {}, {tooth:?}", FAULTS.len());
    let found = explore(fault.world(), *boards, &shown(&name, *boards));
    let breaks: Vec<&str> = found.broken.iter().map(|one| one.property).collect();
    let is_exact = breaks == [*promise];
    *found_any |= !is_exact;
    println!("{promise}: {tooth:?} breaks {breaks:?}");
    let path =
        |wanted: &str| found.broken.iter().find(|one| one.property == wanted).map(|one| one.path.join(", "));
    let witness = found.witnesses.get(promise).map(|witness| witness.path.join(", "));
    let begin: Vec<String> = (fault.begin)(fault.size).iter().map(Action::words).collect();
    json!({
        "name": promise, "mutation": format!("{tooth:?}"), "breaks": breaks, "witness": witness,
        "begin": begin.join(", "),
        "broken_by": path(promise),
    })
}

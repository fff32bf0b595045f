//! Explores teams of several sizes and writes the figures as JSON: `just explore`.
//!
//! Arguments: the most boards of each team, and the file.

#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::time::Instant;

use liza_explore::search::explore;
use liza_explore::teeth::FAULTS;
use liza_explore::world::{Size, Tooth};
use serde_json::{Value, json};

const TEAMS: [Size; 6] = [
    Size::new(1, 1, 1),
    Size { validation: true, ..Size::new(1, 1, 1) },
    Size { edits: true, ..Size::new(1, 1, 1) },
    Size::new(1, 2, 2),
    Size::new(2, 2, 2),
    Size::new(3, 2, 2),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let most: usize = args.next().map_or(Ok(20_000), |text| text.parse())?;
    let file = args.next().unwrap_or_else(|| "target/evidence/exploration.json".to_owned());
    let mut found_any = false;
    let teams: Vec<Value> = TEAMS.iter().map(|size| team(*size, most, &mut found_any)).collect();
    let properties: Vec<Value> = FAULTS.iter().map(|(tooth, promise)| property(*tooth, promise)).collect();
    if let Some(folder) = std::path::Path::new(&file).parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(
        &file,
        serde_json::to_string_pretty(&json!({ "teams": teams, "properties": properties }))?,
    )?;
    println!("written: {file}");
    if found_any { Err("a promise is broken".into()) } else { Ok(()) }
}

fn team(size: Size, most: usize, found_any: &mut bool) -> Value {
    let began = Instant::now();
    let found = explore(size, most, None);
    let (seconds, name) = (began.elapsed().as_secs_f64(), size.name());
    let end = if found.closed { "closed" } else { "up to the bound" };
    println!(
        "{name}: {} boards, {} steps, depth {}, {end}, {seconds:.0} s",
        found.states, found.transitions, found.depth
    );
    for broken in &found.broken {
        *found_any = true;
        println!("BROKEN {}: {}\n  after {}", broken.property, broken.why, broken.path.join(", "));
    }
    json!({
        "name": name, "states": found.states, "transitions": found.transitions, "depth": found.depth,
        "closed": found.closed, "bound": most, "seconds": seconds.round(), "refusals": found.refusals,
        "witnesses": found.witnesses, "broken": found.broken.len(),
    })
}

fn property(tooth: Tooth, promise: &str) -> Value {
    let found = explore(TEAMS[0], 3_000, Some(tooth));
    let broken = found.broken.iter().find(|broken| broken.property == promise);
    println!("{promise}: {tooth:?} {}", if broken.is_some() { "is noticed" } else { "IS NOT NOTICED" });
    let also: Vec<&str> =
        found.broken.iter().map(|one| one.property).filter(|name| *name != promise).collect();
    json!({
        "name": promise, "mutation": format!("{tooth:?}"), "noticed": broken.is_some(), "breaks_also": also,
        "witness": broken.map(|broken| broken.path.clone()),
    })
}

//! `liza tui` in a real terminal (tmux): its CPU time while the team works, and how soon a large project is on the screen.
//!
//! `cargo bench -p liza --bench screen`

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement stops at the first thing that is wrong"
)]

mod shared;
#[path = "../tests/support/mod.rs"]
mod support;

use std::fmt::Write as _;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use liza_team::project::Project;
use shared::{add, cpu_ticks, describe, name};
use support::TestProject;
use support::tmux::Tmux;

const TASKS: usize = 100;
const AGENTS: usize = 20;
/// Ten a second.
const PAUSE: Duration = Duration::from_millis(100);
const TIME: Duration = Duration::from_secs(30);
const MANY: usize = 10_000;

fn main() {
    println!("{TASKS} tasks and {AGENTS} agents that change ten times a second, {} s", TIME.as_secs());
    for size in [(80, 24), (200, 60)] {
        let percent = at_work(size);
        println!(
            "  CPU of the screen, {} × {}  {percent:>6.1} % of one core (wanted: under 5 %)",
            size.0, size.1
        );
    }
    println!("\n{MANY} tasks");
    many();
}

/// The screen with a line in the shell's place, so that the process of the terminal is the screen.
fn screen<'p>(project: &'p TestProject, size: (u16, u16)) -> (Tmux<'p>, u32) {
    let tmux = Tmux::start(project, size, &format!("exec '{}' tui", env!("CARGO_BIN_EXE_liza")));
    let process = tmux.pane("#{pane_pid}").parse().unwrap();
    (tmux, process)
}

fn at_work(size: (u16, u16)) -> f64 {
    let project = TestProject::new();
    let opened = Project::open(&project.root).unwrap();
    (0..TASKS).for_each(|number| add(&opened, number, None));
    for number in 1..=AGENTS {
        project.liza(&["register", &format!("coder-{number}")]).ok();
    }
    let (tmux, process) = screen(&project, size);
    tmux.wait_for(name(0).as_str());
    change(&opened, &project, Duration::from_secs(3));
    let (before, began) = (cpu_ticks(process), Instant::now());
    let last = change(&opened, &project, TIME);
    let percent = (cpu_ticks(process) - before) as f64 / began.elapsed().as_secs_f64();
    // What was measured did show the changes.
    describe(&opened, 0, format!("Shown after change {last}"));
    tmux.press(&["Enter"]);
    tmux.wait_for(&format!("Shown after change {last}"));
    percent
}

/// Changes tasks and agents in turn for that long; returns how often.
fn change(opened: &Project, project: &TestProject, long: Duration) -> usize {
    let (end, mut next) = (Instant::now() + long, Instant::now());
    let mut count = 0;
    while Instant::now() < end {
        match count % 4 {
            0 => drop(project.liza(&["heartbeat", &format!("coder-{}", count % AGENTS + 1)])),
            _ => describe(opened, count % TASKS, format!("Change {count} of it")),
        }
        count += 1;
        next += PAUSE;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    count
}

/// Prints how long it takes until the first task is on the screen.
fn many() {
    let project = TestProject::new();
    add(&Project::open(&project.root).unwrap(), 0, None);
    multiply(&project);
    project.liza(&["validate"]).ok();
    let began = Instant::now();
    let (tmux, _) = screen(&project, (120, 40));
    tmux.wait_for("10000 open");
    println!("  on the screen after      {:.0?} (wanted: under 1 s)", began.elapsed());
}

/// Repeats the only task of a blackboard under other names.
fn multiply(project: &TestProject) {
    let path = project.root.join(".liza/state.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let id = name(0).to_string();
    let start = text.find(&format!("- id: {id}")).expect("the task");
    let start = text[..start].rfind('\n').unwrap() + 1;
    let indent = text[start..].find('-').unwrap();
    let inside = |line: &str| line.trim().is_empty() || line.find(|letter| letter != ' ') > Some(indent);
    let length: usize = text[start..]
        .split_inclusive('\n')
        .enumerate()
        .take_while(|(number, line)| *number == 0 || inside(line))
        .map(|(_, line)| line.len())
        .sum();
    let block = &text[start..start + length];
    let mut all = text[..start].to_owned();
    all.push_str(block);
    for number in 1..MANY {
        write!(all, "{}", block.replace(&id, &format!("t-{number:05}"))).unwrap();
    }
    all.push_str(&text[start + length..]);
    fs::write(&path, all).unwrap();
}

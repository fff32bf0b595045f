//! What a command costs before it does anything, against an empty program in the same run. Wanted: under 5 ms more. And what
//! nine texts of 900 KB on the board cost, against an empty board. Wanted: at most twice the time.
//!
//! `cargo bench -p liza --bench startup`

#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 60;

fn main() {
    let home = tempfile::tempdir().unwrap();
    let empty = empty_program(home.path());
    let project = project(home.path());
    let [bare, full] = ["bare", "full"].map(|name| repository(home.path(), name));
    add_long_discoveries(&full);
    let liza = env!("CARGO_BIN_EXE_liza");
    let commands: [(&str, &str, &[&str], &Path); 8] = [
        ("an empty program", empty.to_str().unwrap(), &[], &project),
        ("liza --version", liza, &["--version"], &project),
        ("liza heartbeat", liza, &["heartbeat", "coder-1"], &project),
        ("liza note", liza, &["note", "x"], &project),
        ("liza status", liza, &["status"], &project),
        ("liza get", liza, &["get", ".goal.id"], &project),
        ("status, empty", liza, &["status"], &bare),
        ("status, 9 x 900 KB", liza, &["status"], &full),
    ];
    // Interleaved, so that a busy moment of the machine falls on all of them.
    let mut times: Vec<Vec<Duration>> = vec![Vec::with_capacity(ROUNDS); commands.len()];
    for _ in 0..ROUNDS {
        for ((_, program, arguments, folder), times) in commands.iter().zip(&mut times) {
            times.push(time(Command::new(program).args(*arguments).current_dir(folder)));
        }
    }
    // On a busy machine the fastest tenth says more about the program than the median does.
    println!("{:<18} {:>23}   {:>23}", "", "fastest tenth", "median");
    println!(
        "{:<18} {:>7} {:>8} {:>6}   {:>7} {:>8} {:>6}",
        "", "ms", "over ms", "ratio", "ms", "over ms", "ratio"
    );
    let figures: Vec<(f64, f64)> = times.iter_mut().map(|times| (at(times, 10), at(times, 2))).collect();
    for ((name, ..), (fast, median)) in commands.iter().zip(&figures) {
        let (fast_0, median_0) = figures[0];
        print!("{name:<18} {fast:>7.2} {:>8.2} {:>6.1}   ", fast - fast_0, fast / fast_0);
        println!("{median:>7.2} {:>8.2} {:>6.1}", median - median_0, median / median_0);
    }
    let [.., (without, _), (with, _)] = figures[..] else { return };
    println!(
        "\nstatus with nine discoveries of 900 KB / of an empty board {:.2} (wanted: at most 2)",
        with / without
    );
}

/// A program that does nothing, made by the same compiler.
fn empty_program(home: &Path) -> PathBuf {
    let (source, program) = (home.join("empty.rs"), home.join("empty"));
    std::fs::write(&source, "fn main() {}\n").unwrap();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let made = Command::new(rustc).args(["-O", "-o"]).arg(&program).arg(&source).status().unwrap();
    assert!(made.success());
    program
}

/// A repository with a blackboard, ten tasks and an agent.
fn project(home: &Path) -> PathBuf {
    let root = repository(home, "project");
    for n in 0..10 {
        let id = format!("task-{n}");
        let words = ["add-task", "--id", &id, "--desc", "x", "--spec", "specs/vision.md"];
        run(&root, env!("CARGO_BIN_EXE_liza"), &[&words[..], &["--done", "x", "--scope", "x"]].concat());
    }
    run(&root, env!("CARGO_BIN_EXE_liza"), &["register", "coder-1"]);
    root
}

/// A repository with an empty blackboard.
fn repository(home: &Path, name: &str) -> PathBuf {
    let root = home.join(name);
    std::fs::create_dir_all(root.join("specs")).unwrap();
    std::fs::write(root.join("specs/vision.md"), "# Vision\n").unwrap();
    run(&root, "git", &["init", "-q"]);
    run(&root, "git", &["add", "."]);
    run(&root, "git", &["-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "start"]);
    run(&root, env!("CARGO_BIN_EXE_liza"), &["init", "Measure"]);
    root
}

/// As an agent without confinement could write them.
fn add_long_discoveries(root: &Path) {
    let text = "word \\\"quoted\\\" ñ ".repeat(45_000);
    let entry = |n: u32| {
        format!(
            "- {{id: disc-{n}, by: coder-1, severity: high, urgency: immediate, description: \"{text}\"}}\n"
        )
    };
    let path = root.join(".liza/state.yaml");
    let board = std::fs::read_to_string(&path).unwrap();
    let found: String = (1..10).map(entry).collect();
    let changed = board.replace("discovered: []\n", &format!("discovered:\n{found}"));
    assert_ne!(board, changed);
    std::fs::write(&path, changed).unwrap();
}

fn run(root: &Path, program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).current_dir(root).stdout(Stdio::null()).status();
    assert!(status.unwrap().success(), "{program} {arguments:?}");
}

fn time(command: &mut Command) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    assert!(command.status().unwrap().success(), "{command:?}");
    start.elapsed()
}

/// The time that one in so many runs did not exceed, in milliseconds.
fn at(times: &mut [Duration], part: usize) -> f64 {
    times.sort();
    times[times.len() / part].as_secs_f64() * 1000.0
}

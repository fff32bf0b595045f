//! What the confinement costs at the start of a session, with and without it in the same run: from `liza agent` to the first
//! command of the agent program (wanted: at most 1.5 times as long), and of that the part from the saved prompt on, in which
//! the confinement is made.
//!
//! `cargo bench -p liza --bench session`

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a bench fails by panicking, and uses a part of the support"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use support::TestProject;

const ROUNDS: usize = 40;

/// Prints the time, then does the work: a program that fails again and again would be held.
const SCRIPT: &str = r#"#!/bin/sh
date +%s%N
cat > /dev/null
echo work > "$1.txt" && git add . && git commit -qm "work on $1"
LIZA pre-check "$1" --intent "do it" --validation "cat $1.txt"
LIZA submit-for-review "$1" HEAD
"#;

/// Milliseconds to the first command of the agent program.
struct Start {
    from_command: f64,
    from_prompt: f64,
}

fn main() {
    let projects = ["off", "auto"].map(project);
    let mut starts: [Vec<Start>; 2] = [Vec::new(), Vec::new()];
    // Interleaved, so that a busy moment of the machine falls on both.
    for round in 0..ROUNDS {
        for (project, starts) in projects.iter().zip(&mut starts) {
            starts.push(start(project, &format!("t-{round}")));
        }
    }
    compare("start of a session", &starts, |start| start.from_command, "(wanted: at most 1.5)");
    compare("of that, from the prompt", &starts, |start| start.from_prompt, "");
}

fn compare(what: &str, starts: &[Vec<Start>; 2], part: fn(&Start) -> f64, wanted: &str) {
    let [(fast_off, median_off), (fast, median)] =
        starts.each_ref().map(|starts| figures(starts.iter().map(part).collect()));
    println!("{what:<26} fastest tenth      median");
    println!("  not confined             {fast_off:>10.1} ms {median_off:>8.1} ms");
    println!("  confined                 {fast:>10.1} ms {median:>8.1} ms");
    println!(
        "  ratio                    {:>10.2}    {:>8.2}    {wanted}",
        fast / fast_off,
        median / median_off
    );
}

fn figures(mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    let at = |share: usize| *times.get(times.len() / share).unwrap();
    (at(10), at(2))
}

/// A project whose agent program prints the time first.
fn project(sandbox: &str) -> TestProject {
    let project = TestProject::new();
    let program = project.home().join("clock.sh");
    fs::write(&program, SCRIPT.replace("LIZA", env!("CARGO_BIN_EXE_liza"))).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    project.set_config("sandbox", sandbox);
    let clock = format!("{{clock: {{program: {}, args: [\"{{task}}\"]}}}}", program.display());
    project.set_config("providers", &clock);
    project
}

/// Runs one session.
fn start(project: &TestProject, task: &str) -> Start {
    project.add_task(task);
    let commanded = i128::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap();
    project.liza(&["agent", "coder", task, "--cli", "clock", "--once"]).ok();
    let newest = |folder: &str| -> PathBuf {
        let entries = fs::read_dir(project.root.join(".liza").join(folder)).unwrap().flatten();
        let named =
            |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().ends_with(&format!("-{task}"));
        entries.map(|entry| entry.path()).find(named).unwrap()
    };
    let prompt = fs::metadata(newest("agent-prompts")).unwrap();
    let saved = i128::from(prompt.mtime()) * 1_000_000_000 + i128::from(prompt.mtime_nsec());
    let output = fs::read_to_string(newest("agent-outputs")).unwrap();
    let began = output.lines().find_map(|line| line.trim().parse::<i128>().ok());
    let began = began.unwrap_or_else(|| panic!("{output}"));
    let since = |then: i128| (began - then) as f64 / 1e6;
    Start { from_command: since(commanded), from_prompt: since(saved) }
}

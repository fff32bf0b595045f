//! A validation of a task beside an incremental build: the same edits, in turn, in a workspace of generated crates that needs
//! no network. Wanted: at most 1.3 times as long, in crates as people have them; small ones show what each validation costs.
//!
//! `cargo bench -p liza --bench validation` prints one table. It needs rooms, and cargo on the PATH.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a measurement stops at the first thing that is wrong"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use support::TestProject;

const CRATES: usize = 10;
const ROUNDS: usize = 5;

/// The crate that each round edits; those with a higher number depend on it.
const EDITED: usize = 8;

fn main() {
    for functions in [150, 600] {
        measure(functions);
    }
}

fn measure(functions: usize) {
    let project = workspace(functions);
    let plain = plain_copy(&project);
    let full = timed(|| build(&project, &plain));
    submit(&project, "zero", &source(EDITED, 1, functions));
    let first = timed(|| validate(&project, "zero"));
    println!(
        "{CRATES} crates of {functions} functions; a full build {:.1} s, a validation from nothing {:.1} s",
        secs(full),
        secs(first)
    );
    project.liza_as("code-reviewer-1", &["submit-verdict", "zero", "REJECTED", "Once more."]).ok();
    submit(&project, "zero", &source(EDITED, 2, functions));
    // The human's approval needs no validation, so the merge builds.
    project.liza(&["submit-verdict", "zero", "APPROVED"]).ok();
    let mut merge = project.program();
    merge.args(["wt-merge", "zero"]);
    project.run(&mut with_toolchain(merge)).ok();
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for round in 10..10 + ROUNDS {
        let edited = source(EDITED, round, functions);
        edit(&plain, &edited);
        bare.push(timed(|| build(&project, &plain)));
        submit(&project, "one", &edited);
        ours.push(timed(|| validate(&project, "one")));
        let again = "Once more.\n\nPrior Feedback Status:\n- RESOLVED: all\n";
        project.liza_as("code-reviewer-1", &["submit-verdict", "one", "REJECTED", again]).ok();
    }
    let (bare, ours) = (median(bare), median(ours));
    println!("median in s over {ROUNDS} rounds");
    println!("incremental build {bare:.2}, validation {ours:.2}, × {:.2} (wanted: at most 1.3)", ours / bare);
}

/// A team whose work has to build.
fn workspace(functions: usize) -> TestProject {
    let project = TestProject::bare();
    project.write(".gitignore", "target/\n");
    project.write("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"2\"\n");
    for number in 0..CRATES {
        let depends = (number > 0).then(|| format!("c{0} = {{ path = \"../c{0}\" }}\n", number - 1));
        let manifest = format!(
            "[package]\nname = \"c{number}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n{}",
            depends.unwrap_or_default()
        );
        project.write(&format!("crates/c{number}/Cargo.toml"), &manifest);
        project.write(&format!("crates/c{number}/src/lib.rs"), &source(number, 0, functions));
    }
    let last = CRATES - 1;
    let main = format!("fn main() {{ println!(\"{{}}\", c{last}::edited()); }}\n");
    project.write(&format!("crates/c{last}/src/main.rs"), &main);
    build(&project, &project.root);
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "workspace"]);
    project.liza(&["init", "Measure"]).ok();
    project.liza(&["config", "validation", "[\"cargo build --offline\"]"]).ok();
    let toolchain = Path::new(env!("CARGO")).ancestors().nth(2).unwrap();
    project.liza(&["config", "sandbox_readable", &format!("[{}]", toolchain.display())]).ok();
    project.liza(&["config", "max_coder_iterations", "100"]).ok();
    project.liza(&["config", "max_review_cycles", "100"]).ok();
    for agent in ["coder-1", "code-reviewer-1"] {
        project.register(agent);
        project.liza(&["heartbeat", agent, "--for", "36000"]).ok();
    }
    project
}

/// Many functions with enough in them to take time, and one that an edit changes.
fn source(number: usize, edit: usize, functions: usize) -> String {
    let mut text = String::from("use std::collections::BTreeMap;\n");
    for function in 0..functions {
        let _ = writeln!(
            text,
            "pub fn f{function}(x: u64) -> String {{ let mut m = BTreeMap::new(); for i in 0..x {{ m.insert(format!(\"{{i}}-{function}\"), \
             vec![i; {function}]); }} m.iter().map(|(k, v)| format!(\"{{k}}{{}}\", v.iter().sum::<u64>())).collect::<Vec<_>>().join(\",\") }}"
        );
    }
    let below = if number == 0 { "0".to_owned() } else { format!("c{}::edited()", number - 1) };
    let _ = writeln!(text, "pub fn edited() -> u64 {{ {below} + f1({edit}).len() as u64 }}");
    text
}

fn edit(folder: &Path, edited: &str) {
    let file = folder.join(format!("crates/c{EDITED}/src/lib.rs"));
    std::fs::write(file, edited).unwrap();
}

fn plain_copy(project: &TestProject) -> PathBuf {
    let place = project.home().join("plain");
    project.git(&["worktree", "add", "-q", "--detach", place.to_str().unwrap()]);
    place
}

/// A build as a person starts it.
fn build(project: &TestProject, folder: &Path) {
    let mut command = with_toolchain(project.command("cargo"));
    let status = command.args(["build", "--offline", "--quiet"]).current_dir(folder).status().unwrap();
    if !status.success() {
        panic!("cargo failed in {}", folder.display());
    }
}

fn validate(project: &TestProject, task: &str) {
    let mut program = project.program();
    program.args(["claim-review", task, "code-reviewer-1"]);
    project.run(&mut with_toolchain(program)).ok();
}

/// The projects of tests have a home folder of their own, in which rustup finds nothing.
fn with_toolchain(mut command: Command) -> Command {
    let toolchain = Path::new(env!("CARGO")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap();
    let path = [toolchain].into_iter().chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(path).unwrap());
    command
}

fn submit(project: &TestProject, task: &str, edited: &str) {
    let tree = project.root.join(".worktrees").join(task);
    if !tree.exists() {
        project.add_task(task);
    }
    project.liza(&["claim-task", task, "coder-1"]).ok();
    edit(&tree, edited);
    project.git_at(&tree, &["commit", "-qam", "edit"]);
    let commit = project.git_at(&tree, &["rev-parse", "HEAD"]);
    project.liza_as("coder-1", &["submit-for-review", task, &commit]).ok();
}

fn timed(run: impl FnOnce()) -> Duration {
    let began = Instant::now();
    run();
    began.elapsed()
}

fn secs(time: Duration) -> f64 {
    time.as_secs_f64()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    secs(times[times.len() / 2])
}

//! Three processes on one database and one git remote, a clone each, beside one process on the file.

use std::time::Instant;

use liza_core::model::{AgentId, Role};
use liza_team::project::Project;

use crate::figures::check;
use crate::server::Server;
use crate::support::TestProject;
use crate::{Size, Team, fill, wait_for};

/// Commits are on the disk when they are acknowledged, as the file's writes are.
const DURABLE: &str = "-c fsync=on";

/// Prints the tasks per minute of each.
pub(crate) fn compare(size: Size) {
    let file = on_file(size);
    println!("  {:<44} {file:>6.0} tasks per minute", "the file, one process");
    for machines in [1, 3] {
        let rate = on_database(size, machines);
        let name = format!("the database and a git remote, {machines} of them");
        println!("  {name:<44} {rate:>6.0} tasks per minute, {:.0} % of the file's", rate / file * 100.0);
    }
}

fn on_file(size: Size) -> f64 {
    let project = TestProject::new();
    fill(&Project::open(&project.root).unwrap(), size);
    work(&[&project], size, "integration")
}

fn on_database(size: Size, machines: usize) -> f64 {
    let server = Server::own(DURABLE);
    let home = tempfile::tempdir().unwrap();
    let bare = home.path().join("remote.git");
    let bare = bare.to_str().unwrap();
    let clones: Vec<TestProject> = (0..machines).map(|_| TestProject::bare()).collect();
    clones[0].git(&["init", "-q", "--bare", bare]);
    for clone in &clones {
        clone.git(&["remote", "add", "origin", bare]);
    }
    clones[0].git(&["push", "-q", "origin", "HEAD:refs/heads/main"]);
    clones[0].liza(&["init", "Retry everything", "--store", &server.address(), "--remote", "origin"]).ok();
    clones[1..].iter().for_each(|clone| {
        clone.liza(&["join", &server.address()]).ok();
    });
    fill(&Project::open(&clones[0].root).unwrap(), size);
    work(&clones.iter().collect::<Vec<_>>(), size, "refs/remotes/origin/integration")
}

/// The agents, shared out among the machines, at work until the goal is reached; returns the tasks per minute.
fn work(machines: &[&TestProject], size: Size, branch: &str) -> f64 {
    let part = |number: usize| number.div_ceil(machines.len());
    let share = Size { coders: part(size.coders), reviewers: part(size.reviewers), tasks: size.tasks };
    let began = Instant::now();
    let mut teams = vec![Team::start(machines[0], share)];
    let opened = Project::open(&machines[0].root).unwrap();
    // The others leave planning to it.
    wait_for("the planner is there", || {
        opened.state().unwrap().board.agents().unwrap().contains_key(&AgentId::new(Role::Planner, 1))
    });
    teams.extend(machines[1..].iter().map(|machine| Team::start(machine, share)));
    for (team, machine) in teams.iter_mut().zip(machines) {
        let ended = team.child.0.wait().unwrap();
        assert!(ended.success(), "{ended}: {}", machine.home().join("run.out").display());
    }
    let took = began.elapsed();
    if branch != "integration" {
        machines[0].git(&["fetch", "-q", "origin"]);
    }
    let state = opened.store().snapshot().unwrap();
    check(machines[0], &state, size.tasks, branch);
    size.tasks as f64 / took.as_secs_f64() * 60.0
}

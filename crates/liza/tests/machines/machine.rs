//! Machines of one project: a home and a clone each, one git remote, one database.

use std::fs;

use liza_core::model::{Loaded, LogEntry, Sandbox, Seconds, State};
use liza_store::{Address, Store};
use liza_team::project::{Project, now};

use crate::server::clock_at;
use crate::support::TestProject;
use crate::support::process::Running;

/// A machine: a home and a clone. The first commit is the same in all of them.
pub(crate) fn machine(bare: &str) -> TestProject {
    let machine = TestProject::bare();
    machine.git(&["remote", "add", "origin", bare]);
    machine
}

/// Puts the blackboard of a new project into the database.
pub(crate) fn begin(machine: &TestProject, address: &str) {
    machine.liza(&["init", "Say hello, say goodbye, say good night", "--remote", "origin"]).ok();
    let mut state = machine.snapshot();
    let Loaded::Ready(config) = &mut state.board.config else { panic!("no config") };
    (config.lease_duration, config.heartbeat_interval) = (Seconds(10), Seconds(2));
    (config.coder_poll_interval, config.sandbox) = (Seconds(1), Sandbox::Off);
    fs::remove_dir_all(machine.root.join(".liza")).unwrap();
    let [agent, action, detail] = ["human", "goal_created", "three machines"].map(str::to_owned);
    let log = LogEntry { timestamp: now(), agent, action, task: None, detail };
    liza_database::install();
    let address: Address = address.parse().unwrap();
    Store::create_in_database(&machine.root, &address, "team", &state, &log).unwrap();
    // As its person would: sessions without a sandbox are accepted on each machine.
    machine.liza(&["config", "--trust"]).ok();
}

pub(crate) fn join(machine: &TestProject, address: &str) {
    liza_database::install();
    let address: Address = address.parse().unwrap();
    Store::join_database(&machine.root, &address, Some("team")).unwrap();
    fs::write(machine.root.join(".git/info/exclude"), "/.liza/\n/.worktrees/\n").unwrap();
    machine.liza(&["config", "--trust"]).ok();
}

pub(crate) fn agent(machine: &TestProject, role: &str) -> Running {
    Running::liza(machine, &["agent", role, "--cli", "rehearsal"])
}

/// The same on a machine whose clock is wrong, such as `+10m`.
pub(crate) fn agent_at(machine: &TestProject, role: &str, offset: &str) -> Running {
    let mut program = machine.program();
    program.args(["agent", role, "--cli", "rehearsal"]).envs(clock_at(offset));
    Running::start(machine, program)
}

pub(crate) fn state(machine: &TestProject) -> State {
    Project::open(&machine.root).unwrap().store().snapshot().unwrap()
}

/// Two machines with the blackboard of a new project, at their own addresses of the same database.
pub(crate) fn two_machines(bare: &str, addresses: [&str; 2]) -> [TestProject; 2] {
    let machines = [machine(bare), machine(bare)];
    machines[0].git(&["init", "-q", "--bare", bare]);
    machines[0].git(&["push", "-q", "origin", "HEAD:refs/heads/main"]);
    begin(&machines[0], addresses[0]);
    join(&machines[1], addresses[1]);
    machines
}

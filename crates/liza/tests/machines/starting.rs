//! Teams that start on several machines at the same moment.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use liza_core::model::{GoalStatus, Role, Status};

use crate::machine::{begin, join, machine, state};
use crate::server::Server;
use crate::support::TestProject;
use crate::support::process::{Running, wait_up_to};

/// Starts a team that waits, after it has looked for a planner and before it registers, until all teams are there.
fn team(machine: &TestProject, meeting: &Path, number: usize, teams: usize) -> Running {
    let folder = machine.home().join("bin");
    fs::create_dir_all(&folder).unwrap();
    let (path, meeting) = (std::env::var_os("PATH").unwrap(), meeting.display());
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in *GIT_COMMITTER_IDENT*) touch '{meeting}/{number}'; n=0\n\
         while [ $(ls '{meeting}' | wc -l) -lt {teams} ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n + 1)); done;; esac\n\
         PATH=${{PATH#*:}} exec git \"$@\"\n"
    );
    fs::write(folder.join("git"), text).unwrap();
    fs::set_permissions(folder.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path))).unwrap();
    let mut program = machine.program();
    let words = ["run", "--cli", "rehearsal", "--in-place", "--plain", "--coders", "1", "--reviewers", "1"];
    program.args(words).env("PATH", path);
    Running::start(machine, program)
}

/// Covers: AX-16
#[test]
fn needs_postgres_teams_that_start_at_the_same_moment_all_run() {
    let server = Server::own("");
    let home = tempfile::tempdir().unwrap();
    let (bare, meeting) = (home.path().join("remote.git"), home.path().join("meeting"));
    fs::create_dir(&meeting).unwrap();
    let bare = bare.to_str().unwrap();
    let machines = [machine(bare), machine(bare), machine(bare)];
    machines[0].git(&["init", "-q", "--bare", bare]);
    machines[0].git(&["push", "-q", "origin", "HEAD:refs/heads/main"]);
    begin(&machines[0], &server.address());
    machines[1..].iter().for_each(|machine| join(machine, &server.address()));
    let numbered = machines.iter().enumerate();
    let mut teams: Vec<Running> =
        numbered.map(|(number, machine)| team(machine, &meeting, number, machines.len())).collect();
    let is_done = || {
        let is_over = state(&machines[0]).board.goal.ready()?.status == GoalStatus::Completed;
        is_over.then_some(())
    };
    let done = wait_up_to(Duration::from_secs(120), is_done);
    let outputs: Vec<String> = teams.iter().map(Running::output).collect();
    assert!(done.is_some(), "{outputs:#?}");
    assert_eq!(fs::read_dir(&meeting).unwrap().count(), machines.len(), "they met: {outputs:#?}");
    let ended: Vec<i32> = teams.iter_mut().map(Running::wait).collect();
    let outputs: Vec<String> = teams.iter().map(Running::output).collect();
    assert_eq!(ended, [0, 0, 0], "{outputs:#?}");
    let without = |output: &&String| output.contains("plans already; this team has no planner of its own");
    assert_eq!(outputs.iter().filter(without).count(), 2, "{outputs:#?}");
    let log = liza_team::project::Project::open(&machines[0].root)
        .unwrap()
        .store()
        .log_reader()
        .read_new()
        .unwrap();
    let registered = |role: Role| {
        let is_one = |agent: &str| agent.starts_with(&format!("{}-", role.id_prefix()));
        log.iter().filter(|entry| entry.action == "registered" && is_one(&entry.agent)).count()
    };
    let roles = [Role::Planner, Role::Coder, Role::CodeReviewer].map(registered);
    assert_eq!(roles, [1, 3, 3], "{outputs:#?}");
    assert_eq!(state(&machines[0]).board.in_status(Status::Merged).count(), 3);
}

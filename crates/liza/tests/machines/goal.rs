//! A whole goal on three machines, one of which is cut off from the database and one of which dies; the clocks of two are
//! wrong by ten minutes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use liza_core::model::{AgentId, AgentRecord, EventName, GoalStatus, Role, State, Status, Timestamp};
use liza_team::project::{Project, now};

use crate::machine::{agent, agent_at, begin, join, machine, state};
use crate::proxy::DatabaseProxy;
use crate::server::Server;
use crate::support::TestProject;
use crate::support::process::{wait_for, wait_up_to};

/// Covers: MM-08, MM-03, MM-07, MM-11
#[test]
fn needs_postgres_needs_faketime_a_goal_is_finished_with_a_partition_a_dead_machine_and_wrong_clocks() {
    let started = now();
    let server = Server::own("");
    let home = tempfile::tempdir().unwrap();
    let bare: PathBuf = home.path().join("remote.git");
    let bare = bare.to_str().unwrap();
    let (one, two, three) = (machine(bare), machine(bare), machine(bare));
    one.git(&["init", "-q", "--bare", bare]);
    one.git(&["push", "-q", "origin", "HEAD:refs/heads/main"]);
    let proxy = DatabaseProxy::new(&server);
    begin(&one, &server.address());
    join(&two, &proxy.address());
    join(&three, &server.address());

    let mut planner = agent(&one, "planner");
    let mut dying = agent_at(&three, "coder", "-10m");
    let claimed =
        wait_for("a claim on the third machine", || state(&one).board.in_status(Status::Claimed).next());
    dying.kill();
    let _reviewer = agent(&one, "code-reviewer");
    let survivor = agent_at(&two, "coder", "+10m");
    let _other_reviewer = agent_at(&three, "code-reviewer", "-10m");
    let dead = state(&one).board.body(&claimed).unwrap().record().assigned_to;
    let survivors = |state: &State| -> Vec<AgentRecord> {
        let agents = state.board.agents.ready().into_iter().flatten();
        let is_survivor = |id: &AgentId| id.role() == Role::Coder && Some(*id) != dead;
        agents.filter(|(id, _)| is_survivor(id)).map(|(_, entry)| entry.clone()).collect()
    };
    wait_for("a claim on the second machine", || {
        survivors(&state(&one)).iter().any(|entry| entry.current_task.is_some()).then_some(())
    });
    proxy.partition(true);
    wait_for("its lease has ended", || {
        survivors(&state(&one)).iter().all(|entry| !entry.is_live(now())).then_some(())
    });
    proxy.partition(false);

    let done = wait_up_to(std::time::Duration::from_secs(240), || {
        let goal = state(&one).board.goal.ready()?.status;
        (goal == GoalStatus::Completed).then_some(())
    });
    let outputs = format!("{}\n---\n{}", planner.output(), survivor.output());
    assert!(done.is_some(), "{outputs}\n{}", one.liza(&["status"]).stdout);
    let state = state(&one);
    assert_eq!(state.board.in_status(Status::Merged).count(), 3, "{claimed} was finished by another machine");
    check_claims(&state);
    check_work(&one, &state, bare);
    check_times(&one, started);
    assert_eq!(planner.wait(), 0, "{}", planner.output());
}

/// Between two claims of a task its owner has ended: no two coders have it at the same time.
fn check_claims(state: &State) {
    for (task, body) in state.bodies() {
        let mut owners: BTreeMap<String, u32> = BTreeMap::new();
        for event in body.record().events().filter(|event| event.is_claim()) {
            *owners.entry(event.event.clone()).or_default() += 1;
        }
        let first = owners.get("claimed").copied().unwrap_or_default();
        assert!(first <= 1, "{task} was claimed twice: {owners:?}");
        let mut owner = None;
        for event in body.record().events() {
            let by = event.agent.as_deref().filter(|agent| agent.starts_with("coder-"));
            owner = if event.is_claim() { by } else { owner };
            assert!(by.is_none() || by == owner, "{task}: {by:?} worked after {owner:?} had claimed it");
        }
    }
}

/// All that was written has the time of the database.
fn check_times(machine: &TestProject, started: Timestamp) {
    let log = Project::open(&machine.root).unwrap().store().log_reader().read_new().unwrap();
    let times: Vec<Timestamp> = log.iter().map(|entry| entry.timestamp).collect();
    assert!(times.is_sorted(), "time never decreases: {times:?}");
    let wrong = |time: &&Timestamp| **time < started || **time > now();
    assert_eq!(times.iter().find(wrong), None, "since {started}");
}

/// Every submitted commit is on the integration branch of the remote.
fn check_work(machine: &TestProject, state: &State, bare: &str) {
    let remote = |arguments: &[&str]| machine.git_at(std::path::Path::new(bare), arguments);
    for (task, body) in state.bodies() {
        let submitted = body.record().events().filter(|event| event.is(EventName::ReadyForReview));
        for commit in submitted.filter_map(|event| event.text("commit")) {
            let kept = remote(&["for-each-ref", "--format=%(refname)", "--contains", &commit]);
            assert!(!kept.is_empty(), "{commit} of {task} is lost");
        }
    }
    assert_eq!(remote(&["for-each-ref", "refs/liza/task"]), "", "no reference of a task that is over");
}

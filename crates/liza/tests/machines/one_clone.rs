//! What a command does in one clone of a team: it reads the shared archive, and removes only what is here.

use std::time::{Duration, Instant};

use crate::machine::{state, two_machines};
use crate::server::Server;

/// Covers: MM-02, SP-08
#[test]
fn needs_postgres_every_machine_shows_an_archived_task() {
    let server = Server::own("");
    let home = tempfile::tempdir().unwrap();
    let (bare, address) = (home.path().join("remote.git"), server.address());
    let [one, two] = two_machines(bare.to_str().unwrap(), [&address, &address]);
    one.add_task("old");
    one.liza(&["abandon-task", "old", "--reason", "not needed"]).ok();
    one.liza(&["lock", "write", "sprint.scope.planned", "[]"]).ok();
    assert!(one.liza(&["archive", "--older-than", "0s"]).ok().contains("moved to the archive: old"));
    for machine in [&one, &two] {
        let shown = machine.liza(&["show", "old"]).ok().to_owned();
        assert!(shown.contains("old  ABANDONED, in the archive") && shown.contains("not needed"), "{shown}");
        assert!(!machine.root.join(".liza/archive").exists());
    }
    let error = two.liza(&["abandon-task", "old", "--reason", "x", "--json"]).refused(1, "archived");
    assert!(error["hint"].as_str().unwrap().contains("liza show old"), "{error}");
}

/// Covers: MM-03
#[test]
fn needs_postgres_every_command_uses_the_time_of_the_database() {
    for (seconds, name) in [(-600, "behind"), (600, "ahead")] {
        let server = Server::own("");
        let home = tempfile::tempdir().unwrap();
        let (bare, address) = (home.path().join("remote.git"), server.address());
        let [one, _two] = two_machines(bare.to_str().unwrap(), [&address, &address]);
        server.sql(&format!(
            "UPDATE liza.projects SET clock_offset_ms = {seconds} * 1000, clock_ms = clock_ms + ({seconds} - 60) * 1000"
        ));
        one.liza(&["config", "lease_duration", "500"]).ok();
        one.register("coder-1");
        assert_eq!(one.liza(&["validate"]).ok().trim(), "VALID", "{name}");
        let status = one.liza(&["status", "--json"]).result();
        assert_eq!(status["agents"][0]["liveness"], "live", "{name}: {status}");
        let text = one.liza(&["status"]).ok().to_owned();
        assert!(!text.contains("LEASE EXPIRED") && !text.contains("gone"), "{name}: {text}");
        let alerts = one.liza(&["watch", "--once", "--no-desktop"]).ok().to_owned();
        assert!(!alerts.contains("LEASE EXPIRED") && !alerts.contains("INVALID"), "{name}: {alerts}");
    }
}

/// Covers: MM-11
#[test]
fn needs_postgres_a_stop_file_stops_all_machines_at_the_next_command_where_no_agent_runs() {
    let server = Server::own("");
    let home = tempfile::tempdir().unwrap();
    let (bare, address) = (home.path().join("remote.git"), server.address());
    let [one, two] = two_machines(bare.to_str().unwrap(), [&address, &address]);
    two.write(".liza/PAUSE", "");
    for machine in [&two, &one] {
        let status = machine.liza(&["status", "--json"]).result();
        assert_eq!(status["stopped"][0]["file"], "PAUSE", "{status}");
    }
    one.liza(&["resume"]).ok();
    assert_eq!(two.liza(&["status", "--json"]).result()["stopped"], serde_json::json!([]));
}

/// Covers: MM-11
#[test]
fn needs_postgres_with_a_stop_file_a_command_waits_once_for_a_database_that_is_down() {
    let server = Server::own("");
    let home = tempfile::tempdir().unwrap();
    let (bare, address) = (home.path().join("remote.git"), server.address());
    let [_one, two] = two_machines(bare.to_str().unwrap(), [&address, &address]);
    two.write(".liza/PAUSE", "");
    server.stop("immediate");
    let began = Instant::now();
    assert_ne!(two.liza(&["status"]).code, 0);
    // It tries for ten seconds.
    assert!(began.elapsed() < Duration::from_secs(17), "{:?}", began.elapsed());
    server.start("");
    two.liza(&["status"]).ok();
    assert!(!two.root.join(".liza/PAUSE").exists(), "the next command shares it");
}

/// Covers: MM-01, UI-07
#[test]
fn needs_postgres_remove_leaves_the_team_to_the_other_machines() {
    let server = Server::own("");
    let home = tempfile::tempdir().unwrap();
    let (bare, address) = (home.path().join("remote.git"), server.address());
    let [one, two] = two_machines(bare.to_str().unwrap(), [&address, &address]);
    one.register("coder-1");
    two.register("coder-2");
    let error = two.liza(&["remove", "--yes", "--json"]).refused(1, "already_running");
    assert!(error["message"].as_str().unwrap().starts_with("coder-2"), "coder-1 is elsewhere: {error}");
    two.liza(&["deregister", "coder-2"]).ok();
    let text = two.liza(&["remove", "--yes"]).ok().to_owned();
    assert!(text.contains("the blackboard team in postgres://"), "{text}");
    assert!(text.contains("on the git remote origin: branch integration and refs/liza/"), "{text}");
    assert!(!two.root.join(".liza").exists());
    assert!(state(&one).board.agents.ready().unwrap().len() == 1, "the others go on");
    // The command that the text names.
    let again = text.split("to use it here again: liza ").nth(1).unwrap().lines().next().unwrap();
    two.liza(&again.split(' ').collect::<Vec<_>>()).ok();
    assert_eq!(state(&two), state(&one));
}

/// Covers: AX-09
#[test]
fn needs_postgres_lock_modify_finds_the_file_that_its_command_names() {
    let server = Server::own("");
    let home = tempfile::tempdir().unwrap();
    let (bare, address) = (home.path().join("remote.git"), server.address());
    let [one, two] = two_machines(bare.to_str().unwrap(), [&address, &address]);
    one.liza(&["lock", "modify", "sed -i 's/^goal:/mine: 1\\ngoal:/' .liza/state.yaml"]).ok();
    one.liza(&["lock", "modify", "sed -i 's/^mine: 1/mine: 2/' \"$LIZA_STATE\""]).ok();
    assert_eq!(two.liza(&["get", ".mine"]).ok(), "2\n");
    one.liza(&["lock", "modify", "--json", "false"]).refused(1, "command_failed");
    assert!(!one.root.join(".liza/state.yaml").exists(), "it was only a copy");
}

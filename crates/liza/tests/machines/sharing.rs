//! What the machines of a project share besides the blackboard: alarms and stop files.

use std::fs;
use std::time::{Duration, Instant};

use liza_core::model::StopFiles;
use liza_team::project::{Project, now};
use liza_team::watch::{WatchOptions, WatchReport, Watcher};

use crate::machine::two_machines;
use crate::server::Server;
use crate::support::TestProject;
use crate::support::process::{Running, wait_up_to};

fn machines(server: &Server) -> ([TestProject; 2], tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    let bare = home.path().join("remote.git");
    let address = server.address();
    (two_machines(bare.to_str().unwrap(), [&address, &address]), home)
}

pub(crate) fn watcher(machine: &TestProject) -> Watcher {
    let options = WatchOptions { desktop: false, ..WatchOptions::default() };
    Watcher::new(&Project::open(&machine.root).unwrap(), options).unwrap()
}

/// What a check found to be new that contains this text.
fn new_with(report: &WatchReport, text: &str) -> usize {
    report.new.iter().filter(|alert| alert.line().contains(text)).count()
}

/// How often alerts.log has this text.
fn logged(machine: &TestProject, text: &str) -> usize {
    let log = fs::read_to_string(machine.root.join(".liza/alerts.log")).unwrap_or_default();
    log.lines().filter(|line| line.contains(text)).count()
}

fn block(machine: &TestProject) {
    machine.liza(&["mark-blocked", "one", "--reason", "no", "--question", "Why?", "--attempted", "a"]).ok();
}

/// Covers: MM-11
#[test]
fn needs_postgres_an_alarm_is_raised_on_one_machine_and_shown_on_all() {
    let server = Server::own("");
    let ([one, two], _home) = machines(&server);
    one.add_task("one");
    let (mut first, mut second) = (watcher(&one), watcher(&two));
    first.check(now());
    second.check(now());
    block(&one);
    assert_eq!(new_with(&first.check(now()), "BLOCKED"), 1);
    assert_eq!(new_with(&second.check(now()), "BLOCKED"), 1, "its screen shows it, too");
    assert_eq!((logged(&one, "BLOCKED"), logged(&two, "BLOCKED")), (1, 0), "raised once");
    // A watcher that starts later does not raise it again, nor one that has lost its own file.
    drop(second);
    fs::remove_file(two.root.join(".liza/alerts.state")).unwrap();
    let mut second = watcher(&two);
    second.check(now());
    assert_eq!(logged(&two, "BLOCKED"), 0);
    // The machine that raised it is gone: another one notices the end, and raises the next one.
    drop(first);
    one.liza(&["unblock-task", "one"]).ok();
    second.check(now());
    block(&one);
    second.check(now());
    watcher(&one).check(now());
    assert_eq!((logged(&one, "BLOCKED"), logged(&two, "BLOCKED")), (1, 1), "another episode");
    // What only one machine can see stays its own.
    fs::write(two.root.join(".liza/state.yaml.stale-1"), "").unwrap();
    second.check(now());
    watcher(&one).check(now());
    assert_eq!((logged(&one, "STALE EDIT"), logged(&two, "STALE EDIT")), (0, 1));
}

/// Covers: MM-11, AC-13
#[test]
fn needs_postgres_foreign_commits_are_raised_once_by_machines_that_see_them_at_different_times() {
    let server = Server::own("");
    let ([one, two], _home) = machines(&server);
    two.git(&["fetch", "-q", "origin", "integration:integration"]);
    let (mut first, mut second) = (watcher(&one), watcher(&two));
    let theirs = one.git(&["commit-tree", "integration^{tree}", "-p", "integration", "-m", "theirs"]);
    one.git(&["update-ref", "refs/heads/integration", &theirs]);
    one.git(&["push", "-q", "origin", "integration"]);
    let kind = "FOREIGN COMMITS";
    assert_eq!(new_with(&first.check(now()), kind), 1);
    assert_eq!(new_with(&second.check(now()), kind), 0, "its branch is behind");
    two.git(&["fetch", "-q", "origin", "integration:integration"]);
    assert_eq!(new_with(&second.check(now()), kind), 1, "its screen shows it, too");
    // While a merge is tried, the branch cannot be judged: what was found stays.
    let merging = fs::File::create(one.root.join(".liza/merge.lock")).unwrap();
    merging.lock().unwrap();
    let during = first.check(now());
    assert!(during.current.iter().any(|alert| alert.line().contains(kind)), "{during:?}");
    drop(merging);
    assert_eq!(new_with(&first.check(now()), kind), 0);
    assert_eq!((logged(&one, kind), logged(&two, kind)), (1, 0), "raised once");
    one.liza(&["accept-integration"]).ok();
    for watcher in [&mut first, &mut second] {
        assert!(!watcher.check(now()).current.iter().any(|alert| alert.line().contains(kind)));
    }
}

/// Covers: MM-11
#[test]
fn needs_postgres_a_bare_stop_file_becomes_a_row_within_two_seconds() {
    let server = Server::own("");
    let ([one, two], _home) = machines(&server);
    let seen = Project::open(&one.root).unwrap();
    let here = |files: StopFiles| (files.pause, files.checkpoint);
    for (words, file, expected) in [
        (&["watch"][..], "PAUSE", (true, false)),
        (&["agent", "coder", "--cli", "rehearsal"], "CHECKPOINT", (false, true)),
    ] {
        let mut running = Running::liza(&two, words);
        let lock = if words[0] == "watch" { "watch.lock" } else { "agent-locks/coder-1.lock" };
        let started =
            wait_up_to(Duration::from_secs(30), || two.root.join(".liza").join(lock).exists().then_some(()));
        assert!(started.is_some(), "{}", running.output());
        let bare = two.root.join(".liza").join(file);
        fs::write(&bare, "").unwrap();
        let created = Instant::now();
        let row = wait_up_to(Duration::from_secs(10), || {
            (here(seen.stop_files()) == expected).then(|| created.elapsed())
        });
        let took = row.unwrap_or_else(|| panic!("no row: {}", running.output()));
        // Two seconds by design; a busy machine may add to it.
        assert!(took < Duration::from_secs(6), "{words:?} took {took:?}");
        let removed = wait_up_to(Duration::from_secs(10), || (!bare.exists()).then_some(()));
        assert!(removed.is_some(), "the row replaces the file");
        one.liza(&["resume"]).ok();
        assert_eq!(here(seen.stop_files()), (false, false));
        running.kill();
    }
}

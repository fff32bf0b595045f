//! A failover to a copy of the database that lacks the last commits: the branch has merges that the blackboard has lost.

use std::fs;
use std::time::Duration;

use liza_team::project::now;

use crate::machine::{agent, state, two_machines};
use crate::proxy::DatabaseProxy;
use crate::server::Server;
use crate::sharing::watcher;
use crate::support::TestProject;
use crate::support::process::wait_up_to;

/// A server, a copy of it, and two machines with a team.
struct Pair {
    primary: Server,
    standby: Server,
    proxy: DatabaseProxy,
    home: tempfile::TempDir,
    machines: [TestProject; 2],
}

impl Pair {
    fn new() -> Self {
        let primary = Server::own("");
        let standby = Server::standby_of(&primary);
        let (proxy, home) = (DatabaseProxy::new(&primary), tempfile::tempdir().unwrap());
        let (bare, address) = (home.path().join("remote.git"), proxy.address());
        let machines = two_machines(bare.to_str().unwrap(), [&address, &address]);
        Self { primary, standby, proxy, home, machines }
    }

    /// The copy has all that was written until now, and gets nothing more.
    fn part(&self) {
        let at = self.primary.sql("SELECT pg_current_wal_lsn()").remove(0);
        let has = format!("SELECT pg_last_wal_replay_lsn() >= '{at}'");
        wait_for("the copy follows", || self.standby.sql(&has) == ["t"]);
        self.standby.sql("ALTER SYSTEM SET primary_conninfo = ''");
        self.standby.sql("SELECT pg_reload_conf()");
        wait_for("they are apart", || self.primary.sql("SELECT pid FROM pg_stat_replication").is_empty());
    }

    fn fail_over(&self) {
        self.primary.stop("immediate");
        self.standby.promote();
        self.proxy.fail_over(&self.standby);
    }

    /// The titles of the remote's branch.
    fn merges_of(&self, task: &str) -> usize {
        let bare = self.home.path().join("remote.git");
        let titles = self.machines[0].git_at(&bare, &["log", "--format=%s", "refs/heads/integration"]);
        titles.lines().filter(|title| title.starts_with(&format!("Merge {task}"))).count()
    }
}

#[track_caller]
fn wait_for(what: &str, mut is_true: impl FnMut() -> bool) {
    assert!(wait_up_to(Duration::from_secs(60), || is_true().then_some(())).is_some(), "{what}");
}

/// A coder's work on a task that it has claimed.
fn submit(machine: &TestProject, task: &str, coder: &str) {
    let tree = machine.tree(task);
    fs::write(tree.join(format!("{task}.txt")), "done\n").unwrap();
    machine.git_at(&tree, &["add", "-A"]);
    machine.git_at(&tree, &["commit", "-qm", task]);
    let head = machine.git_at(&tree, &["rev-parse", "HEAD"]);
    machine.liza_as(coder, &["submit-for-review", task, &head]).ok();
}

fn review_and_merge(machine: &TestProject, task: &str) {
    machine.liza(&["claim-review", task, "code-reviewer-1"]).ok();
    machine.liza_as("code-reviewer-1", &["submit-verdict", task, "APPROVED"]).ok();
    machine.liza(&["wt-merge", task]).ok();
}

/// Covers: MM-12
#[test]
fn needs_postgres_a_task_that_was_merged_before_a_failover_is_not_done_again() {
    let pair = Pair::new();
    let [one, two] = &pair.machines;
    one.liza(&["config", "lease_duration", "600"]).ok();
    for name in ["coder-1", "coder-2", "code-reviewer-1"] {
        one.register(name);
    }
    for task in ["claimed", "reviewed", "open", "other"] {
        one.add_task(task);
    }
    two.git(&["fetch", "-q", "origin", "integration:integration"]);
    one.liza(&["claim-task", "reviewed", "coder-2"]).ok();
    submit(one, "reviewed", "coder-2");
    one.liza(&["claim-task", "claimed", "coder-1"]).ok();
    pair.part();
    // The copy never gets any of this; git has all of it.
    review_and_merge(one, "reviewed");
    submit(one, "claimed", "coder-1");
    review_and_merge(one, "claimed");
    one.liza(&["claim-task", "open", "coder-2"]).ok();
    submit(one, "open", "coder-2");
    review_and_merge(one, "open");
    let mut watcher = watcher(one);
    watcher.check(now());
    pair.fail_over();
    wait_for("the copy takes writes", || one.liza(&["note", "after the failover"]).code == 0);
    let open = [("claimed", "CLAIMED"), ("reviewed", "READY_FOR_REVIEW"), ("open", "UNCLAIMED")];
    let statuses = |machine: &TestProject| open.map(|(task, _)| (task, machine.status(task)));
    assert_eq!(statuses(one), open, "the blackboard has gone back");

    let told = watcher.check(now()).notices.join("\n");
    assert!(told.contains("the blackboard went back from revision"), "{told}");
    let again = watcher.check(now()).notices.join("\n");
    assert!(!again.contains("went back"), "said once: {again}");

    // No one does it again: the machine that merged it, and one whose branch is behind.
    one.liza(&["claim-task", "claimed", "coder-1", "--json"]).refused(1, "merge_not_recorded");
    one.liza(&["claim-review", "reviewed", "code-reviewer-1", "--json"]).refused(1, "merge_not_recorded");
    let mut coder = agent(two, "coder");
    wait_for("the coder takes what is left", || two.status("other") == "READY_FOR_REVIEW");
    two.liza(&["claim-task", "open", "coder-2", "--json"]).refused(1, "merge_not_recorded");
    coder.kill();
    assert_eq!(statuses(two), open, "{}", coder.output());

    // Everyone can see why.
    for machine in [one, two] {
        let status = machine.liza(&["status", "--json"]).result();
        assert_eq!(status["claimable"], serde_json::json!([]), "{status}");
        let needs = status["needs_you"].to_string();
        assert!(needs.contains("lost them: merges of claimed, open, reviewed."), "{needs}");
        let doctor = machine.liza(&["doctor"]);
        assert!(doctor.stdout.contains("the merges of claimed, open, reviewed"), "{}", doctor.stdout);
    }
    let said = two.liza(&["accept-integration"]).ok().to_owned();
    assert!(said.contains("are recorded: reviewed, claimed, open"), "{said}");
    assert_eq!(statuses(one), open.map(|(task, _)| (task, "MERGED")));
    for (task, _) in open {
        assert_eq!(pair.merges_of(task), 1, "{task}");
    }
    let recorded = state(one).board.goal.ready().unwrap().integration_head.clone().unwrap();
    assert_eq!(recorded.as_str(), one.git(&["ls-remote", "origin", "refs/heads/integration"])[..40].trim());
    assert_eq!(one.liza(&["validate"]).ok().trim(), "VALID");
}

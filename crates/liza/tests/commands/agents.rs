//! Registration, leases and claims.

use liza_core::model::{Seconds, Timestamp};
use liza_team::project::now;

use crate::fixture::{claimed, claimed_at, submitted, under_review};
use crate::support::TestProject;

/// Covers: CL-10, AG-02, CM-03
#[test]
fn a_registered_agent_has_a_lease_and_a_generation() {
    let project = TestProject::new();
    let result = project.liza(&["register", "coder-1", "--json"]).result();
    assert_eq!((&result["agent"], &result["role"]), (&"coder-1".into(), &"coder".into()));
    assert_eq!(result["generation"], 2);
    let run = project.liza(&["register", "code-reviewer-1", "--terminal", "/dev/pts/7"]);
    assert!(run.ok().contains("LIZA_AGENT_ID=code-reviewer-1 LIZA_AGENT_GENERATION=3"), "{}", run.stdout);
    assert!(project.state().contains("terminal: /dev/pts/7"));
    let error = project.liza(&["register", "coder-1", "--json"]).refused(1, "agent_live");
    assert_eq!(error["hint"], "wait until its lease expires, or use another number");
    project.register("planner-1");
    project.liza(&["register", "planner-2", "--json"]).refused(1, "planner_live");
    for bad in ["bob", "coder", "coder-01", "../coder-1", ""] {
        project.liza(&["register", bad, "--json"]).refused(1, "usage");
    }
}

/// Covers: CL-07, CL-10, CM-03
#[test]
fn a_heartbeat_renews_the_lease_and_stops_an_old_generation() {
    let project = TestProject::new();
    let generation = claimed(&project, "core", "coder-1");
    let text = project.liza_in("coder-1", generation, &["heartbeat", "coder-1", "--for", "1800"]);
    let until: Timestamp =
        text.ok().strip_prefix("the lease of coder-1 runs until ").unwrap().parse().unwrap();
    assert!(until.since(now()).0.abs_diff(1800) < 60, "{until}");
    let until = project.liza(&["heartbeat", "coder-1", "--json"]).result()["lease_expires"].clone();
    assert_eq!(project.state().matches(until.as_str().unwrap()).count(), 2, "agent and task");
    let old = project.liza_in("coder-1", generation - 1, &["heartbeat", "coder-1", "--json"]);
    let error = old.refused(42, "fenced");
    assert!(error["hint"].as_str().unwrap().contains("exit code 42"), "{error}");
    project.liza_as("coder-2", &["heartbeat", "coder-1", "--json"]).refused(1, "not_your_agent");
    project.liza(&["heartbeat", "coder-9", "--json"]).refused(1, "not_registered");
    for bad in ["0", "-5", "86401", "soon"] {
        project.liza(&["heartbeat", "coder-1", "--for", bad, "--json"]).refused(1, "usage");
    }
}

/// Covers: AG-02, CL-10, CM-03
#[test]
fn only_its_own_generation_can_deregister_an_agent() {
    let project = TestProject::new();
    let generation = project.register("coder-1");
    project.liza_in("coder-1", generation, &["deregister", "coder-1", "--json"]).refused(1, "not_permitted");
    assert_eq!(project.liza(&["deregister", "coder-1"]).ok(), "coder-1 is deregistered\n");
    let error = project.liza(&["deregister", "coder-1", "--json"]).refused(1, "not_registered");
    assert_eq!(error["hint"], "liza register coder-1");
    project.register("coder-2");
    assert_eq!(project.liza(&["deregister", "coder-2", "--json"]).result()["agent"], "coder-2");
}

/// Covers: AG-01, CM-05
#[test]
fn an_invalid_environment_is_refused() {
    let project = TestProject::new();
    let error = project.liza_as("bob", &["pause", "--json"]).refused(1, "bad_agent_id");
    assert!(error["message"].as_str().unwrap().contains("expected coder-N"), "{error}");
    let mut program = project.program();
    program.args(["pause", "--json"]).env("LIZA_AGENT_ID", "coder-1").env("LIZA_AGENT_GENERATION", "x");
    project.run(&mut program).refused(1, "bad_agent_id");
}

/// Covers: CL-11, CM-03
#[test]
fn release_claim_releases_the_claim_of_a_coder() {
    let project = TestProject::new();
    claimed(&project, "core", "coder-1");
    project.write(".worktrees/core/half.txt", "half done\n");
    let error = project.liza(&["release-claim", "core", "--json"]).refused(1, "lease_live");
    assert_eq!(error["hint"], "liza release-claim core --force takes it anyway");
    project.liza(&["release-claim", "core", "--role", "reviewer", "--json"]).refused(1, "nothing_to_release");
    let text = project.liza(&["release-claim", "core", "--force", "--reason", "-- it hangs"]).ok().to_owned();
    assert_eq!(text, "core is UNCLAIMED, ready for another coder\n");
    assert!(!project.root.join(".worktrees/core").exists());
    assert_ne!(project.git(&["branch", "--list", "rescue/core-*"]), "");
    project.liza(&["release-claim", "core", "--json"]).refused(1, "nothing_to_release");
    project.liza(&["release-claim", "core", "--role", "boss", "--json"]).refused(1, "usage");
    project.liza_as("coder-1", &["release-claim", "core", "--json"]).refused(1, "not_permitted");

    claimed_at(&project, "late", "coder-2", now() - Seconds(3600));
    let result = project.liza(&["release-claim", "late", "--role", "coder", "--json"]).result();
    assert_eq!(result, serde_json::json!({"task": "late", "status": "UNCLAIMED"}));
}

/// Covers: CL-11, CL-09, CM-03
#[test]
fn stale_review_claims_are_released_and_live_ones_kept() {
    let project = TestProject::new();
    under_review(&project, "stale", "code-reviewer-1", now() - Seconds(3600));
    submitted(&project, "waiting", "coder-2");
    assert_eq!(
        project.liza(&["clear-stale-review-claims"]).ok(),
        "released for another code reviewer: stale\n"
    );
    let result = project.liza(&["clear-stale-review-claims", "--json"]).result();
    assert_eq!(result, serde_json::json!({"cleared": []}));
    assert_eq!(project.liza(&["clear-stale-review-claims"]).ok(), "no stale review claims\n");
    assert!(!project.state().contains("reviewing_by: code-reviewer-1"));
    let generation = project.register("planner-1");
    let words = ["clear-stale-review-claims", "--json"];
    project.liza_in("planner-1", generation, &words).refused(1, "not_permitted");
}

/// Covers: CL-11
#[test]
fn release_claim_releases_the_claim_of_a_code_reviewer() {
    let project = TestProject::new();
    under_review(&project, "core", "code-reviewer-1", now());
    project.liza(&["release-claim", "core", "--role", "coder", "--json"]).refused(1, "nothing_to_release");
    let text = project.liza(&["release-claim", "core", "--role", "code_reviewer", "--force"]).ok().to_owned();
    assert_eq!(text, "core is ready for another code reviewer\n");
}

/// Covers: AX-09
#[test]
fn stop_all_and_remove_know_agents_that_were_registered_by_hand() {
    let project = TestProject::new();
    project.liza(&["register", "coder-1"]).ok();
    let error = project.liza(&["remove", "--yes", "--json"]).refused(1, "already_running");
    assert_eq!(error["message"], "coder-1 is registered here, without a process");
    assert!(error["hint"].as_str().unwrap().contains("liza stop --all"), "{error}");
    let result = project.liza(&["stop", "--all", "--json"]).result();
    assert_eq!(result["ended"], serde_json::json!(["coder-1"]));
    project.liza(&["remove", "--yes"]).ok();
}

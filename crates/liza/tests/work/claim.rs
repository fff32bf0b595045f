//! claim-task, wt-create, wt-delete: which agent gets a task, and in which worktree.

use std::fs;

use liza_core::model::{Actor, Generation};
use liza_team::engine::{Discarded, Engine, EngineError, discard};
use liza_team::lifecycle::{claim_task, create_worktree, recover as recover_project, wt_merge};
use liza_team::project::Project;

use crate::fixture::*;
use crate::support::TestProject;

/// Covers: CL-04, IV-04, CM-03
#[test]
fn a_claim_creates_a_worktree_on_the_tasks_branch() {
    let project = team();
    project.add_task("one");
    let result = claim(&project, "one", "coder-1").result();
    assert_eq!(result["status"], "CLAIMED");
    assert_eq!(result["worktree"], ".worktrees/one");
    assert_eq!(result["made"], true);
    let head = project.git_at(&project.tree("one"), &["rev-parse", "HEAD"]);
    assert_eq!(head, tip(&project, "integration"));
    assert_eq!(project.git_at(&project.tree("one"), &["branch", "--show-current"]), "task/one");
    let record = project.record("one");
    assert_eq!(record.base_commit.unwrap().as_str(), head);
    assert_eq!(record.reservation, None);
    assert_eq!(project.git(&["status", "--porcelain"]), "", "git does not see the worktree");
    check_consistent(&project);
}

/// Covers: CL-01
#[test]
fn an_unclaimable_task_is_refused_with_the_reason() {
    let project = team();
    let more = ["--desc", "x", "--spec", "specs/vision.md", "--done", "x", "--scope", "x"];
    project.liza(&[&["add-task", "--id", "draft", "--draft"][..], &more].concat()).ok();
    claim(&project, "draft", "coder-1").refused(1, "not_claimable");
    project.add_task("first");
    project.liza(&[&["add-task", "--id", "second", "--depends", "first"][..], &more].concat()).ok();
    let error = claim(&project, "second", "coder-1").refused(1, "dependencies_unmet");
    assert!(error["message"].as_str().unwrap().contains("first (UNCLAIMED)"), "{error}");
    claim(&project, "nothing", "coder-1").refused(1, "unknown_task");
    claim(&project, "first", "coder-9").refused(1, "not_registered");
    claim(&project, "first", "code-reviewer-1").refused(1, "wrong_role");
    assert_eq!(fs::read_dir(project.root.join(".worktrees")).map_or(0, Iterator::count), 0);
    assert_eq!(branches(&project, "task/*"), Vec::<String>::new());
    claim(&project, "first", "coder-1").ok();
    claim(&project, "first", "coder-2").refused(1, "claimed_by_other");
    expire(&project, "coder-1");
    claim(&project, "first", "coder-2").ok();
    assert!(history(&project, "first").contains(&"reclaimed_after_expiry".to_owned()));
}

/// Covers: CL-02, CL-06
#[test]
fn a_rejected_task_waits_for_its_own_coder_and_keeps_its_worktree() {
    let project = team();
    let head = rejected(&project, "one");
    fs::write(project.tree("one").join("note.tmp"), "mine").unwrap();
    let base = project.record("one").base_commit;
    claim(&project, "one", "coder-2").refused(1, "reserved_for_coder");
    advance(&project, "other", "x");
    let result = claim(&project, "one", "coder-1").result();
    assert_eq!((result["made"].clone(), result["iteration"].clone()), (false.into(), 2.into()));
    assert_eq!(project.git_at(&project.tree("one"), &["rev-parse", "HEAD"]), head);
    assert!(project.tree("one").join("note.tmp").exists());
    assert_eq!(project.record("one").base_commit, base);
}

/// Covers: CL-02, CL-06
#[test]
fn when_its_coder_is_gone_another_starts_fresh_and_the_old_work_is_kept() {
    let project = team();
    let head = rejected(&project, "one");
    fs::write(project.tree("one").join("uncommitted"), "unsaved\n").unwrap();
    expire(&project, "coder-1");
    let new_base = advance(&project, "other", "x");
    let run = claim(&project, "one", "coder-2");
    let result = run.result();
    assert_eq!(result["rescued"], "rescue/one-1");
    assert!(run.stderr.contains("unmerged work of one is kept on rescue/one-1"), "{run:?}");
    assert_eq!(show(&project, "rescue/one-1", "uncommitted"), "unsaved");
    project.git(&["merge-base", "--is-ancestor", &head, "rescue/one-1"]);
    assert_eq!(project.git_at(&project.tree("one"), &["rev-parse", "HEAD"]), new_base);
    assert!(!project.tree("one").join("uncommitted").exists());
    let record = project.record("one");
    assert_eq!((record.iteration, record.review_cycles_current), (Some(1), Some(0)));
    assert_eq!(record.base_commit.unwrap().as_str(), new_base);
}

/// Covers: CL-06, NT-02
#[test]
fn a_task_that_was_handed_off_continues_in_its_worktree_with_any_coder() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let head = commit(&project, &project.tree("one"), "half", "half\n");
    let words = ["handoff", "one", "--summary", "half done", "--next-action", "the rest"];
    project.liza_as("coder-1", &words).ok();
    expire(&project, "coder-1");
    let result = claim(&project, "one", "coder-2").result();
    assert_eq!(result["made"], false);
    assert_eq!(project.git_at(&project.tree("one"), &["rev-parse", "HEAD"]), head);
    assert_eq!(branches(&project, "rescue/*"), Vec::<String>::new());
}

/// Covers: CL-06, RV-11
#[test]
fn an_integration_fix_continues_in_its_worktree_with_the_head_to_merge() {
    let project = team();
    let head = conflicted(&project, "one");
    let integration = tip(&project, "integration");
    let result = claim(&project, "one", "coder-2").result();
    assert_eq!(result["made"], false);
    assert_eq!(project.git_at(&project.tree("one"), &["rev-parse", "HEAD"]), head);
    let record = project.record("one");
    assert_eq!(record.base_commit.unwrap().as_str(), integration);
    assert_eq!((record.integration_fix, record.iteration), (Some(true), Some(1)));
    assert!(history(&project, "one").contains(&"claimed_for_integration_fix".to_owned()));
    check_consistent(&project);
}

/// Covers: CL-03, LM-06
#[test]
fn a_coder_that_failed_gets_the_task_again_only_by_the_planner_or_if_it_is_alone() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let block = ["mark-blocked", "one", "--reason", "unclear", "--question", "What?"];
    project.liza_as("coder-1", &block).ok();
    project.liza(&["unblock-task", "one"]).ok();
    assert!(!project.tree("one").exists(), "unblocking removes the worktree");
    claim(&project, "one", "coder-1").refused(1, "failed_before");
    expire(&project, "coder-2");
    claim(&project, "one", "coder-1").ok();

    project.liza(&["heartbeat", "coder-2"]).ok();
    project.liza_as("coder-1", &block).ok();
    project.liza(&["unblock-task", "one", "--same-coder"]).ok();
    assert!(project.tree("one").exists());
    claim(&project, "one", "coder-2").refused(1, "reserved_for_coder");
    claim(&project, "one", "coder-1").ok();
}

/// Covers: CL-07
#[test]
fn agent_and_task_have_the_same_lease_and_an_expired_one_stops_the_agent_until_renewed() {
    let project = TestProject::new();
    let generation = project.register("coder-1");
    claimed(&project, "one", "coder-1");
    let lease = |project: &TestProject| project.record("one").lease_expires.unwrap();
    let of_agent = |project: &TestProject| {
        let state = project.snapshot();
        state
            .board
            .agents()
            .unwrap()
            .get(&"coder-1".parse::<liza_core::model::AgentId>().unwrap())
            .unwrap()
            .lease_expires
            .unwrap()
    };
    let (first, now) = (lease(&project), liza_team::project::now());
    assert!(first > now && first <= now + liza_core::model::Seconds(300));
    assert_eq!(of_agent(&project), first);
    let head = commit(&project, &project.tree("one"), "x", "x\n");
    expire(&project, "coder-1");
    assert_eq!(of_agent(&project), lease(&project));
    let submit = ["submit-for-review", "one", &head, "--json"];
    project.liza_in("coder-1", generation, &submit).refused(42, "lease_lost");
    assert_eq!(project.status("one"), "CLAIMED");
    project.liza(&["heartbeat", "coder-1"]).ok();
    assert!(lease(&project) >= first);
    project.liza_in("coder-1", generation, &submit).ok();
}

/// Covers: CL-08, AG-17
#[test]
fn under_pause_and_checkpoint_leases_are_renewed_but_nothing_is_claimed() {
    let project = team();
    claimed(&project, "one", "coder-1");
    project.add_task("two");
    for (stop, go) in [("pause", "resume"), ("checkpoint", "resume")] {
        expire(&project, "coder-1");
        project.liza(&[stop]).ok();
        claim(&project, "two", "coder-2").refused(42, "halted");
        claim(&project, "one", "coder-2").refused(42, "halted");
        project.liza(&["heartbeat", "coder-1"]).ok();
        assert!(project.record("one").lease_expires.unwrap() > liza_team::project::now());
        project.liza(&[go]).ok();
    }
    claim(&project, "one", "coder-2").refused(1, "claimed_by_other");
    assert!(!project.tree("two").exists());
}

/// Covers: CL-10
#[test]
fn an_older_registration_is_refused_at_every_git_step() {
    let project = team();
    approved(&project, "done");
    claimed(&project, "one", "coder-1");
    project.add_task("two");
    let before = project.git(&["show-ref"]);
    let opened = Project::open(&project.root).unwrap();
    let code = |error: EngineError| error.refusal().unwrap().code();
    let old = |agent: &str| Engine::new(&opened, Actor::Supervisor(agent.parse().unwrap(), Generation(1)));
    let task = |id: &str| id.parse().unwrap();
    let coder = "coder-2".parse().unwrap();
    assert_eq!(code(claim_task(&old("coder-2"), &task("two"), coder).unwrap_err()), "fenced");
    assert_eq!(code(create_worktree(&old("coder-1"), &task("one"), true).unwrap_err()), "fenced");
    assert_eq!(code(wt_merge(&old("code-reviewer-1"), &task("done")).unwrap_err()), "fenced");
    assert_eq!(code(recover_project(&old("coder-1")).unwrap_err()), "fenced");
    assert_eq!(project.git(&["show-ref"]), before);
    project.liza_in("coder-1", 1, &["recover", "--json"]).refused(1, "not_permitted");
    project.liza_in("code-reviewer-1", 1, &["wt-merge", "done", "--json"]).refused(1, "not_permitted");
    project.liza_in("coder-1", 1, &["claim-task", "two", "coder-1", "--json"]).refused(1, "not_permitted");
    check_consistent(&project);
}

/// Covers: CL-11
#[test]
fn a_released_claim_leaves_the_work_on_a_rescue_branch() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let head = commit(&project, &project.tree("one"), "x", "x\n");
    project.liza(&["release-claim", "one", "--json"]).refused(1, "lease_live");
    let run = project.liza(&["release-claim", "one", "--force"]);
    run.ok();
    assert!(run.stderr.contains("kept on rescue/one-1"), "{run:?}");
    assert_eq!(tip(&project, "rescue/one-1"), head);
    assert!(!project.tree("one").exists() && branches(&project, "task/*").is_empty());
    assert_eq!(project.status("one"), "UNCLAIMED");
    submitted(&project, "two");
    project.liza(&["claim-review", "two", "code-reviewer-1"]).ok();
    expire(&project, "code-reviewer-1");
    project.liza(&["clear-stale-review-claims"]).ok();
    assert_eq!(project.record("two").reviewing_by, None);
    check_consistent(&project);
}

/// Covers: CL-04
#[test]
fn a_claim_whose_worktree_cannot_be_created_leaves_nothing() {
    let project = team();
    project.add_task("one");
    let path = git_wrapper(&project, "case \"$*\" in *'read-tree -u'*) echo no room >&2; exit 128;; esac");
    let words = ["claim-task", "one", "coder-1", "--json"];
    let error = project.run(project.program().args(words).env("PATH", &path)).refused(3, "git");
    assert!(error["message"].as_str().unwrap().contains("no room"), "{error}");
    assert_eq!((project.status("one"), project.record("one").reservation), ("UNCLAIMED", None));
    assert!(!project.tree("one").exists() && branches(&project, "task/*").is_empty());
    check_consistent(&project);
    claim(&project, "one", "coder-2").ok();
}

/// Covers: CL-04, RV-04
#[test]
fn a_claim_never_changes_files_that_it_did_not_create() {
    let project = team();
    project.add_task("one");
    fs::create_dir_all(project.tree("one").join(".git")).unwrap();
    fs::write(project.tree("one").join("theirs"), "keep\n").unwrap();
    let error = claim(&project, "one", "coder-1").refused(3, "git");
    assert!(error["message"].as_str().unwrap().contains("not a worktree that Liza created"), "{error}");
    assert_eq!(fs::read_to_string(project.tree("one").join("theirs")).unwrap(), "keep\n");
    assert_eq!(project.record("one").reservation, None);
}

/// Covers: CM-07
#[test]
fn wt_create_needs_a_claim_and_wt_delete_an_unused_worktree() {
    let project = team();
    project.add_task("one");
    project.liza(&["wt-create", "one", "--json"]).refused(1, "wrong_status");
    claim(&project, "one", "coder-1").ok();
    project.liza(&["wt-delete", "one", "--json"]).refused(1, "wrong_status");
    let head = commit(&project, &project.tree("one"), "x", "x\n");
    let same = project.liza(&["wt-create", "one", "--json"]).result();
    assert_eq!((same["made"].clone(), same["worktree"].clone()), (false.into(), ".worktrees/one".into()));
    assert_eq!(project.git_at(&project.tree("one"), &["rev-parse", "HEAD"]), head);
    let fresh = project.liza(&["wt-create", "--fresh", "one", "--json"]).result();
    assert_eq!((fresh["made"].clone(), fresh["rescued"].clone()), (true.into(), "rescue/one-1".into()));
    assert_eq!(project.git_at(&project.tree("one"), &["rev-parse", "HEAD"]), tip(&project, "integration"));
    fs::write(project.tree("one").join("y"), "y\n").unwrap();
    project.liza(&["mark-blocked", "one", "--reason", "x", "--question", "y?"]).ok();
    let run = project.liza(&["wt-delete", "one"]);
    run.ok();
    assert!(run.stderr.contains("rescue/one-2"), "{run:?}");
    assert_eq!(show(&project, "rescue/one-2", "y"), "y");
    assert!(!project.tree("one").exists() && branches(&project, "task/*").is_empty());
    check_consistent(&project);
}

/// Covers: CL-04, LM-06
#[test]
fn a_late_removal_does_not_affect_the_next_coders_worktree() {
    let project = team();
    let opened = Project::open(&project.root).unwrap();
    let discard = |task: &str| discard(&opened, &task.parse().unwrap()).unwrap();
    rejected(&project, "two");
    claimed(&project, "one", "coder-1");
    // Not even if no agent is registered: claimed and rejected work is continued.
    for agent in ["coder-1", "coder-2"] {
        project.liza(&["deregister", agent]).ok();
    }
    for task in ["one", "two"] {
        assert_eq!(discard(task), Discarded::Needed);
        assert!(project.tree(task).join(".git").exists());
    }
    check_consistent(&project);
}

/// Covers: IS-04
#[test]
fn a_damaged_worktree_is_made_again_and_reported() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let head = commit(&project, &project.tree("one"), "x", "x\n");
    project.liza(&["heartbeat", "coder-1"]).ok();
    commit(&project, &project.tree("one"), "y", "not taken yet\n");
    fs::remove_dir_all(project.tree("one").join(".git/objects")).unwrap();
    claim(&project, "one", "coder-1").ok();
    assert_eq!(project.git_at(&project.tree("one"), &["rev-parse", "HEAD"]), head);
    let anomalies = &project.snapshot().journal.anomalies;
    assert_eq!(anomalies.len(), 1);
    assert_eq!(show(&project, "rescue/one-1", "y"), "not taken yet", "its files were saved");
    assert!(project.state().contains("it was damaged; it was made again"), "{}", project.state());
    check_consistent(&project);
}

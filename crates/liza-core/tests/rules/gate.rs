//! A merge that changes what judges it waits for the human's word on exactly this change.

use liza_core::model::{Actor, GateChange, MergeHold, Sha, Status, TestFailure};
use liza_core::protocol::{
    AcceptGate, AcceptIntegration, BeginMerge, Command, HoldCause, HoldMerge, MarkBlocked, SubmitVerdict,
    Verdict,
};
use liza_core::rules::claimable::{HeldMerge, held_merge, mergeable_for};
use liza_status::alarms::{AlarmKind, Observations, alarms};
use liza_status::needs_you::needs_you;
use liza_status::view::view;
use liza_testkit::worlds::*;

fn change(commit: Sha, after: &str) -> GateChange {
    GateChange {
        commit,
        before: "old".into(),
        after: after.into(),
        files: vec!["scripts/integration-test.sh".into()],
        old_failure: None,
        accepted: None,
    }
}

fn hold_for(id: &str, version: u32, change: GateChange) -> Command {
    let commit = change.commit.clone();
    Command::from(HoldMerge { task: task(id), commit, cause: HoldCause::Gate { version, change } })
}

fn accept(old_fails: bool) -> Command {
    Command::from(AcceptGate { task: task("t"), old_fails })
}

/// An approved task that waits for the human's word on the gate.
fn held_with(old_failure: Option<TestFailure>) -> World {
    let mut world = World::with_task(Status::Approved);
    let change = GateChange { old_failure, ..change(sha('a'), "new") };
    world.must(world.supervisor(reviewer(1)), hold_for("t", 0, change));
    world
}

fn failure() -> TestFailure {
    TestFailure {
        what: "integration test failed with exit status 7".into(),
        output: ".liza/integration-tests/t-old-1.log".into(),
        last_lines: vec!["error: seven".into()],
    }
}

fn held<'w>(world: &'w World, id: &str) -> Option<HeldMerge<'w>> {
    held_merge(&world.state.board, world.state.board.summary(&task(id)).unwrap())
}

fn to_merge(world: &World) -> Vec<String> {
    mergeable_for(&world.state.board, reviewer(1), world.now).iter().map(ToString::to_string).collect()
}

/// Covers: JU-01
#[test]
fn a_change_of_the_gate_asks_the_human_and_blocks_no_other_work() {
    let mut world = held_with(Some(failure()));
    world.add("other", ready());
    world.claim("other", coder(2));
    world.submit("other", coder(2), sha('e'));
    world.approve("other");
    assert_eq!(held(&world, "t"), Some(HeldMerge::Gate));
    assert_eq!(to_merge(&world), ["other"], "it is not tried again and again");
    world.refused_with(
        "gate_changed",
        world.supervisor(reviewer(1)),
        Command::from(BeginMerge { task: task("t") }),
    );
    let (state, seen) = (&world.state, Observations::default());
    let asked = needs_you(state, &seen, &alarms(state, &seen, world.now), world.now);
    let [need] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(need.kind, AlarmKind::GateChanged);
    assert_eq!(need.command, "liza accept-gate t --old-fails");
    for words in
        ["scripts/integration-test.sh", "exit status 7", "error: seven", "liza submit-verdict t REJECTED"]
    {
        assert!(need.text.contains(words), "{words}: {}", need.text);
    }
    let view = view(state, &seen, world.now);
    let shown = view.tasks.iter().find(|shown| shown.id.as_str() == "t").unwrap();
    assert!(shown.next.to_string().contains("waits for you"), "{}", shown.next);
}

/// Covers: JU-01
#[test]
fn only_the_human_accepts_a_gate_and_says_so_if_the_old_one_fails() {
    let mut world = held_with(Some(failure()));
    for other in [world.agent(reviewer(1)), world.supervisor(reviewer(1)), world.agent(planner())] {
        world.refused_with("not_permitted", other, accept(true));
    }
    world.refused_with("old_gate_fails", Actor::Human, accept(false));
    world.must(Actor::Human, accept(true));
    assert_eq!((held(&world, "t"), to_merge(&world)), (None, vec!["t".to_owned()]));
    let accepted = world.record("t").gate_change.clone().unwrap().accepted.unwrap();
    assert!(accepted.old_fails);
    assert_eq!(world.last_event("t").event, "gate_accepted");
    world.refused_with("no_gate_change", Actor::Human, accept(true));

    let mut passes = held_with(None);
    passes.must(Actor::Human, accept(true));
    let accepted = passes.record("t").gate_change.clone().unwrap().accepted.unwrap();
    assert!(!accepted.old_fails, "the word is not wider than the question");
}

/// Covers: JU-01
#[test]
fn another_gate_or_another_commit_asks_again() {
    let mut world = held_with(None);
    world.must(Actor::Human, accept(false));
    world.must(world.supervisor(reviewer(1)), hold_for("t", 0, change(sha('a'), "newer")));
    assert_eq!(held(&world, "t"), Some(HeldMerge::Gate));
    assert_eq!(world.record("t").gate_change.as_ref().unwrap().accepted, None);
    let told = world.record("t").events().count();
    world.must(world.supervisor(reviewer(1)), hold_for("t", 0, change(sha('a'), "newer")));
    assert_eq!(world.record("t").events().count(), told, "the same question is recorded once");
}

/// Covers: JU-01
#[test]
fn a_hold_ends_when_the_gate_of_the_branch_changes() {
    let mut world = held_with(None);
    let accept = AcceptIntegration { head: sha('d'), detail: "sync".into(), merged: Vec::new() };
    world.must(Actor::Human, Command::from(accept));
    assert_eq!((held(&world, "t"), to_merge(&world)), (None, vec!["t".to_owned()]));
    // A hold that was computed before the change is over at once.
    world.must(world.supervisor(reviewer(1)), hold_for("t", 0, change(sha('a'), "new")));
    assert_eq!(held(&world, "t"), None);

    let mut world = held_with(None);
    world.add("gate", ready());
    world.claim("gate", coder(2));
    world.submit("gate", coder(2), sha('e'));
    world.approve("gate");
    world.must(world.supervisor(reviewer(1)), hold_for("gate", 0, change(sha('e'), "new")));
    world.must(Actor::Human, Command::from(AcceptGate { task: task("gate"), old_fails: false }));
    assert_eq!(held(&world, "t"), Some(HeldMerge::Gate));
    world.merge("gate");
    assert_eq!(held(&world, "t"), None, "its question is another one now");
}

/// Covers: JU-01
#[test]
fn the_human_can_send_a_changed_gate_back_or_block_it() {
    let verdict = |verdict| {
        Command::from(SubmitVerdict { task: task("t"), verdict, facts: None, commit: None, moved: None })
    };
    let mut world = held_with(None);
    world.refused_with("wrong_status", Actor::Human, verdict(Verdict::Approved(None)));
    world.must(Actor::Human, verdict(Verdict::Rejected("keep the test".into())));
    assert_eq!((world.status("t"), world.record("t").merge_held.clone()), (Status::Rejected, None));

    let mut world = held_with(None);
    let reason = "decide first".to_owned();
    let block = MarkBlocked { task: task("t"), reason, questions: Vec::new(), attempted: Vec::new() };
    world.must(Actor::Human, Command::from(block));
    assert_eq!((world.status("t"), world.record("t").merge_held.clone()), (Status::Blocked, None));
    // An approved task that waits for nothing keeps its approval.
    let mut free = World::with_task(Status::Approved);
    free.refused_with("wrong_status", Actor::Human, verdict(Verdict::Rejected("no".into())));
    assert_eq!(MergeHold::Gate(3).to_string(), "gate-3");
}

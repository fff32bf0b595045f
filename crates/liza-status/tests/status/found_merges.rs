//! Tasks whose merge is on the integration branch and not on the blackboard: they wait for the human.

use crate::supervise::{each, situation};
use liza_core::model::{BranchMerge, BranchSteps, Sha, State, Status};
use liza_core::rules::found_merges::{FoundMerges, unrecorded};
use liza_core::supervise::{Situation, Step, Work, next_step};
use liza_status::alarms::{AlarmKind, ForeignCommits, Observations, alarms};
use liza_status::view::view;
use liza_testkit::team::*;

fn merge(name: &str, commit: char, merge_commit: char) -> BranchMerge {
    BranchMerge { task: task(name), commit: sha(commit), merge_commit: sha(merge_commit) }
}

fn steps(merges: Vec<BranchMerge>) -> BranchSteps {
    BranchSteps { merges, has_others: false }
}

fn found(state: &State, merges: Vec<BranchMerge>) -> FoundMerges {
    FoundMerges::new(&state.board, &steps(merges))
}

fn seen(state: &State) -> Observations {
    let (head, expected) = (sha('d'), sha('e'));
    let commits = vec!["dddddddd Merge t".to_owned()];
    let merges = found(state, vec![merge("t", 'f', 'd')]);
    let foreign = ForeignCommits { head, expected, commits, merge_of: None, merges };
    Observations { foreign_commits: Some(foreign), last_progress: Some(now()), ..Observations::default() }
}

/// Covers: MM-12
#[test]
fn an_open_task_waits_if_its_merge_is_on_the_branch() {
    for &status in Status::ALL {
        let state = state_with(status);
        let waits = found(&state, vec![merge("t", 'f', 'd')]);
        assert_eq!(waits.of(&task("t")).is_some(), !status.is_terminal(), "{status}");
        assert_eq!(waits.check(&task("t")).is_err(), !status.is_terminal(), "{status}");
        assert!(waits.check(&task("u")).is_ok(), "others go on");
        assert!(found(&state, vec![merge("u", 'f', 'd')]).is_empty(), "an unknown task");
        assert!(found(&state, Vec::new()).is_empty());
    }
}

/// Covers: MM-07, MM-12
#[test]
fn a_merge_of_what_is_approved_needs_no_human_unless_there_is_more() {
    let state = state_with(Status::Approved);
    let approved: Sha = state.board.body(&task("t")).unwrap().record().review_commit.clone().unwrap();
    let own = BranchMerge { task: task("t"), commit: approved, merge_commit: sha('d') };
    assert!(found(&state, vec![own.clone()]).is_empty());
    let with_others = BranchSteps { merges: vec![own.clone()], has_others: true };
    assert!(FoundMerges::new(&state.board, &with_others).of(&task("t")).is_some());
    let mut two = state;
    two.board.put(task("u"), record("u", Status::Claimed));
    let waits = found(&two, vec![own, merge("u", 'f', 'e')]);
    assert_eq!(waits.tasks().collect::<Vec<_>>(), [&task("t"), &task("u")]);
}

/// Covers: MM-12
#[test]
fn a_name_that_was_used_again_is_recorded_once() {
    let state = state_with(Status::Claimed);
    let twice = steps(vec![merge("t", 'f', 'd'), merge("t", '1', '2')]);
    assert_eq!(unrecorded(&state.board, &twice), [&merge("t", 'f', 'd')]);
}

/// Covers: MM-12, AG-04
#[test]
fn supervisors_neither_continue_nor_review_nor_merge_it_and_take_other_work() {
    let cases = [
        (Status::Unclaimed, "coder-1"),
        (Status::Rejected, "coder-1"),
        (Status::IntegrationFailed, "coder-2"),
        (Status::Claimed, "coder-1"),
        (Status::ReadyForReview, "code-reviewer-1"),
        (Status::Approved, "code-reviewer-1"),
    ];
    for (status, name) in cases {
        let mut state = state_with(status);
        let waits = found(&state, vec![merge("t", 'f', 'd')]);
        let step = |state: &State, found_merges: &FoundMerges| {
            next_step(&Situation { found_merges, ..situation(state, name) })
        };
        assert!(!matches!(step(&state, &FoundMerges::NONE), Step::Wait { .. }), "{status}");
        assert!(matches!(step(&state, &waits), Step::Wait { .. }), "{status}: {:?}", step(&state, &waits));
        let other = if name.starts_with("coder") { Status::Unclaimed } else { Status::ReadyForReview };
        let mut open = record("u", other);
        (open.reviewing_by, open.review_lease_expires) = (None, None);
        state.board.put(task("u"), open);
        let expected = match status {
            // It holds its claim until the human has settled it.
            Status::Claimed => None,
            _ if name.starts_with("coder") => Some(each(Work::Code, &["u"])),
            _ => Some(each(Work::Review, &["u"])),
        };
        let taken = Some(step(&state, &waits)).filter(|step| !matches!(step, Step::Wait { .. }));
        assert_eq!(taken, expected, "{status}");
    }
}

/// Covers: MM-12, AG-04
#[test]
fn a_reviewer_goes_on_with_reviews_while_all_merges_wait() {
    let mut state = state_with(Status::Approved);
    let mut open = record("u", Status::ReadyForReview);
    (open.reviewing_by, open.review_lease_expires) = (None, None);
    state.board.put(task("u"), open);
    state.board.put(task("v"), record("v", Status::Blocked));
    let waits = found(&state, vec![merge("v", 'f', 'd')]);
    let step = |found_merges: &FoundMerges| {
        next_step(&Situation { found_merges, ..situation(&state, "code-reviewer-1") })
    };
    let both = Step::Work(vec![Work::Merge(task("t")), Work::Review(task("u"))]);
    assert_eq!(step(&FoundMerges::NONE), both);
    assert_eq!(step(&waits), each(Work::Review, &["u"]), "a merge onto that branch would be refused");
}

/// Covers: MM-12, UI-02
#[test]
fn screens_and_alarms_say_why_it_waits() {
    for status in [Status::Unclaimed, Status::Claimed, Status::ReadyForReview, Status::Approved] {
        let state = state_with(status);
        let seen = seen(&state);
        let shown = view(&state, &seen, now());
        let shown_task = shown.tasks.iter().find(|shown| shown.id == task("t")).unwrap();
        assert!(
            shown_task.next.to_string().contains("its merge dddddddd is on the branch"),
            "{}",
            shown_task.next
        );
        let accept = Some("liza accept-integration");
        assert_eq!(
            (shown_task.command.as_deref(), shown_task.human_command.as_deref()),
            (accept, accept),
            "{status}"
        );
        assert_eq!((shown.claimable, shown.reviewable), (Vec::new(), Vec::new()), "{status}");
        let found = alarms(&state, &seen, now());
        let alarm = found.iter().find(|alarm| alarm.kind == AlarmKind::ForeignCommits).unwrap();
        assert!(alarm.text.contains("has lost them: merges of t. These tasks"), "{}", alarm.text);
    }
}

//! Names on the blackboard that lead nowhere, and IDs that are used twice.

use liza_core::model::{Actor, Discovery, DiscoveryId, Loaded, Severity, Status, Urgency, Value};
use liza_core::protocol::direct_edit::EditFound;
use liza_core::protocol::{AddTask, Command, EditTask, NewTask, TaskEdit};
use liza_core::rules::misspelled::distance;
use liza_testkit::worlds::*;

/// Covers: AC-32
#[test]
fn names_of_tasks_that_do_not_exist_and_ids_that_are_used_twice_are_reported() {
    let mut world = World::with_task(Status::Superseded);
    world.edit_record("t", |record| {
        record.superseded_by = Some(vec![task("gone")]);
        record.depends_on = Some(Vec::new());
    });
    let discovery = |id: u32, during: &str, converted: Option<&str>| Discovery {
        id: DiscoveryId(id),
        by: None,
        during: Some(task(during)),
        description: "d".to_owned(),
        severity: Severity::Low,
        urgency: Urgency::Deferred,
        recommendation: None,
        created: None,
        converted_to_task: converted.map(task),
        dismissed: None,
    };
    let found = vec![discovery(1, "nowhere", None), discovery(2, "t", Some("none")), discovery(2, "t", None)];
    world.state.board.discovered = Loaded::Ready(found);
    assert_eq!(
        world.violations(),
        [
            "t: superseded_by names gone, which does not exist",
            "discovered: during of disc-1 names nowhere, which does not exist",
            "discovered: converted_to_task of disc-2 names none, which does not exist",
            "discovered: the ID disc-2 is used twice",
        ]
    );
    // A task that went to the archive still exists.
    world.state.board.archived.insert(task("gone"), Status::Merged);
    world.state.board.discovered = Loaded::Ready(Vec::new());
    assert_eq!(world.violations(), [""; 0]);
}

/// Covers: AC-32
#[test]
fn a_dependency_that_is_named_twice_is_reported() {
    let mut world = World::with_task(Status::Unclaimed);
    world.must(Actor::Human, Command::from(AddTask { task: task("other"), new: ready() }));
    world.edit_record("t", |record| record.depends_on = Some(vec![task("other"), task("other")]));
    assert_eq!(world.violations(), ["t: depends_on names other twice"]);
}

/// Covers: AX-09
#[test]
fn a_section_that_was_edited_is_named_to_the_depth_of_three() {
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let with = |number| value(&format!(r#"{{"config": {{"providers": {{"mine": {{"a": {number}}}}}}}}}"#));
    let found = EditFound::between(&with(1), &with(2)).unwrap();
    assert_eq!(found.log_entry(World::new().now).detail, "config.providers.mine");
}

/// Covers: AC-11
#[test]
fn two_swapped_letters_are_one_typo() {
    assert_eq!(["ba", "a", "abc", "cd"].map(|other| distance("ab", other)), [1, 1, 1, 2]);
    assert_eq!(distance("abcd", "abdc"), 1);
}

/// Covers: RO-04
#[test]
fn a_specification_is_no_file_of_liza_or_git() {
    let mut world = World::with_task(Status::Unclaimed);
    for spec in [
        ".liza/state.yaml",
        ".git/config",
        "./.worktrees/t/x#a",
        "lib/.git/HEAD",
        ".LIZA/none",
        "x/../.git/config",
    ] {
        let new =
            NewTask { description: "d".to_owned(), spec_ref: Some(spec.to_owned()), ..NewTask::default() };
        let edit = TaskEdit { spec_ref: Some(spec.to_owned()), ..TaskEdit::default() };
        for command in [
            Command::from(AddTask { task: task("new"), new: NewTask { draft: true, ..new } }),
            Command::from(EditTask { task: task("t"), edit }),
        ] {
            let refusal = world.refused_with("bad_spec", Actor::Human, command);
            assert!(refusal.to_string().starts_with(spec), "{refusal}");
        }
    }
    world
        .edit("t", TaskEdit { spec_ref: Some("specs/.github/x.md#.liza".to_owned()), ..TaskEdit::default() });
}

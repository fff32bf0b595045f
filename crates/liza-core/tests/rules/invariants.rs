//! The invariants of the blackboard: each rule violated, and just satisfied.

use liza_core::model::{
    Actor, AgentRecord, AgentStatus, Anomaly, Change, Fault, Fields, Handoff, Loaded, RefusalClass, Role,
    Seconds, Status, TaskBody, TaskRecord, Value, Worktree,
};
use liza_core::protocol::{
    AddTask, ClaimRole, ClaimTask, Command, NewSprint, NewTask, ReleaseClaim, TaskEdit, WriteRetro,
};
use liza_core::rules::invariants::introduced;
use liza_testkit::worlds::*;

/// The violations that `validate` reports after a manual change of the record.
fn violations_after(status: Status, change: impl FnOnce(&mut TaskRecord)) -> Vec<String> {
    let mut world = World::with_task(status);
    assert!(world.violations().is_empty(), "valid before the change");
    world.edit_record("t", change);
    world.violations()
}

/// The violations that `validate` reports after a manual change of an agent's entry.
fn agent_violations_after(status: Status, change: impl FnOnce(&mut AgentRecord)) -> Vec<String> {
    let mut world = World::with_task(status);
    world.edit_agent(coder(1), change);
    world.violations()
}

/// Covers: IV-01
#[test]
fn a_draft_has_no_owner() {
    let found = violations_after(Status::Draft, |record| record.assigned_to = Some(coder(1)));
    assert_eq!(found, ["t: DRAFT task is assigned to coder-1"]);
    assert!(violations_after(Status::Unclaimed, |record| record.assigned_to = Some(coder(1))).is_empty());
}

/// Covers: IV-02
#[test]
fn a_task_that_is_not_a_draft_has_its_criteria() {
    let strip = |record: &mut TaskRecord| {
        record.done_when = Some(" ".into());
        record.spec_ref = None;
    };
    for &status in Status::ALL {
        let found = violations_after(status, strip);
        if matches!(status, Status::Draft | Status::Superseded | Status::Abandoned) {
            assert!(found.is_empty(), "{status}: {found:?}");
        } else {
            let both =
                [format!("t: {status} task has no done_when"), format!("t: {status} task has no spec_ref")];
            assert_eq!(found, both);
        }
    }
}

/// Covers: IV-03
#[test]
fn the_spec_file_exists() {
    let mut world = World::new();
    world.disk.missing_specs.insert("specs/retry.md".into());
    let found = world.violations();
    assert_eq!(found, ["t: spec_ref specs/retry.md#auth: the project has no file specs/retry.md"]);
    let another = Command::from(AddTask { task: task("u"), new: ready() });
    assert_eq!(world.violates(Actor::Human, another).len(), 1);
    world.disk.missing_specs = ["specs/retry.md#auth".to_owned()].into();
    assert!(world.violations().is_empty(), "the anchor is not part of the path");
}

/// Covers: IV-04
#[test]
fn a_claimed_task_has_coder_worktree_lease_and_base() {
    type Gap = (&'static str, fn(&mut TaskRecord));
    let gaps: [Gap; 4] = [
        ("assigned_to", |record| record.assigned_to = None),
        ("worktree", |record| record.worktree = None),
        ("lease_expires", |record| record.lease_expires = None),
        ("base_commit", |record| record.base_commit = None),
    ];
    for (field, gap) in gaps {
        assert_eq!(violations_after(Status::Claimed, gap), [format!("t: CLAIMED task has no {field}")]);
    }
}

/// Covers: IV-04
#[test]
fn the_worktree_of_a_claimed_task_exists() {
    let mut world = World::with_task(Status::Claimed);
    world.disk.worktrees.clear();
    assert_eq!(world.violations(), ["t: CLAIMED task's worktree .worktrees/t does not exist"]);
    let mut reserved = World::new();
    reserved.reserve("t", coder(1), base());
    reserved.disk.worktrees.remove(&Worktree::of(&task("t")));
    let claim = Command::from(ClaimTask { task: task("t"), coder: coder(1) });
    reserved.violates(reserved.supervisor(coder(1)), claim);
    assert_eq!(reserved.status("t"), Status::Unclaimed);
}

/// Covers: IV-04
#[test]
fn an_integration_fix_may_lack_a_base_and_an_expired_lease_is_no_violation() {
    let mut fix = World::with_task(Status::IntegrationFailed);
    fix.claim("t", coder(1));
    fix.edit_record("t", |record| record.base_commit = None);
    assert!(fix.violations().is_empty());
    let now = fix.now;
    let past = violations_after(Status::Claimed, |record| record.lease_expires = Some(now - Seconds(9999)));
    assert!(past.is_empty(), "{past:?}");
}

/// Covers: IV-05
#[test]
fn each_status_has_its_required_fields() {
    type Gap = (Status, &'static str, fn(&mut TaskRecord));
    let gaps: [Gap; 6] = [
        (Status::ReadyForReview, "review_commit", |record| record.review_commit = None),
        (Status::Rejected, "rejection_reason", |record| record.rejection_reason = Some(" ".into())),
        (Status::Blocked, "blocked_reason", |record| record.blocked_reason = Some(String::new())),
        (Status::Blocked, "blocked_questions", |record| record.blocked_questions = Some(Vec::new())),
        (Status::Superseded, "superseded_by", |record| record.superseded_by = Some(Vec::new())),
        (Status::Superseded, "rescope_reason", |record| record.rescope_reason = None),
    ];
    for (status, field, gap) in gaps {
        assert_eq!(violations_after(status, gap), [format!("t: {status} task has no {field}")]);
    }
}

/// Covers: IV-05
#[test]
fn a_merged_task_has_no_worktree() {
    let found = violations_after(Status::Merged, |record| record.worktree = Some(Worktree::of(&task("t"))));
    assert_eq!(found, ["t: MERGED task still has the worktree .worktrees/t"]);
}

/// Covers: IV-06
#[test]
fn dependencies_exist() {
    let found = violations_after(Status::Unclaimed, |record| record.depends_on = Some(vec![task("nowhere")]));
    assert_eq!(found, ["t: depends_on names nowhere, which does not exist"]);
    let mut world = World::new();
    world.state.board.archived.insert(task("old"), Status::Abandoned);
    world.edit_record("t", |record| record.depends_on = Some(vec![task("old")]));
    assert!(world.violations().is_empty(), "archived tasks count");
}

/// Covers: IV-06
#[test]
fn a_cycle_is_printed_and_refused() {
    let mut world = World::new();
    let after = |id| NewTask { depends_on: vec![task(id)], ..ready() };
    world.add("a", after("t"));
    world.add("b", after("a"));
    world.add("c", after("t"));
    let close = edit("t", TaskEdit { depends_on: Some(vec![task("b")]), ..TaskEdit::default() });
    let wrong = world.violates(Actor::Human, close);
    assert_eq!(wrong, ["t: depends_on has a cycle: t → b → a → t"]);
    world.edit_record("t", |record| record.depends_on = Some(vec![task("b")]));
    let found = world.violations();
    assert_eq!(found.iter().filter(|text| text.contains("cycle")).count(), 1, "{found:?}");
}

/// Covers: IV-06
#[test]
fn a_diamond_is_no_cycle() {
    let mut world = World::new();
    let after = |ids: &[&str]| NewTask { depends_on: ids.iter().map(|id| task(id)).collect(), ..ready() };
    world.add("a", after(&["t"]));
    world.add("b", after(&["t"]));
    world.add("c", after(&["a", "b"]));
    assert!(world.violations().is_empty());
}

/// Covers: IV-07
#[test]
fn a_claimed_task_has_its_dependencies_merged() {
    let mut world = World::with_task(Status::Claimed);
    world.add("d", ready());
    world.edit_record("t", |record| record.depends_on = Some(vec![task("d")]));
    assert_eq!(world.violations(), ["t: CLAIMED, but its dependency d is not MERGED"]);
    let mut merged = World::with_task(Status::Merged);
    merged.add("d", NewTask { depends_on: vec![task("t")], ..ready() });
    merged.claim("d", coder(1));
    assert!(merged.violations().is_empty());
}

/// Covers: IV-08
#[test]
fn a_working_agent_has_a_task_and_a_lease_within_the_grace() {
    let found = agent_violations_after(Status::Claimed, |entry| entry.current_task = None);
    assert_eq!(found, ["coder-1: WORKING agent has no current_task"]);
    let found = agent_violations_after(Status::Claimed, |entry| entry.lease_expires = None);
    assert_eq!(found, ["coder-1: WORKING agent has no lease_expires"]);
    let mut world = World::with_task(Status::Claimed);
    world.pass(360);
    assert!(world.violations().is_empty(), "60 s of grace");
    world.pass(1);
    assert_eq!(world.violations().len(), 1);
    world.edit_agent(coder(1), |entry| entry.status = AgentStatus::Waiting);
    assert!(world.violations().is_empty(), "only WORKING requires it");
}

/// Covers: IV-09
#[test]
fn no_task_has_two_agents_and_no_coder_two_claims() {
    let mut shared = World::with_task(Status::Claimed);
    shared.edit_agent(coder(2), |entry| entry.current_task = Some(task("t")));
    assert_eq!(shared.violations(), ["t: assigned to two agents, coder-1 and coder-2"]);
    let mut greedy = World::with_task(Status::Claimed);
    greedy.add("u", ready());
    greedy.claim("u", coder(2));
    greedy.edit_record("u", |record| record.assigned_to = Some(coder(1)));
    assert_eq!(greedy.violations(), ["coder-1: has two CLAIMED tasks, t and u"]);
    greedy.edit_record("u", |record| record.status = Some(Status::Unclaimed));
    assert!(greedy.violations().is_empty());
}

/// Covers: IV-10
#[test]
fn an_integration_fix_follows_a_failed_merge() {
    let found = violations_after(Status::Claimed, |record| record.integration_fix = Some(true));
    assert_eq!(found, ["t: integration_fix is true, but the history has no integration_failed"]);
    assert!(violations_after(Status::Claimed, |record| record.integration_fix = Some(false)).is_empty());
    assert!(
        violations_after(Status::IntegrationFailed, |record| record.integration_fix = Some(true)).is_empty()
    );
}

/// Covers: IV-11
#[test]
fn failed_by_names_each_coder_once() {
    let twice = violations_after(Status::Blocked, |record| {
        record.failed_by = Some(vec![coder(1), coder(2), coder(1)])
    });
    assert_eq!(twice, ["t: failed_by names coder-1 twice"]);
    assert!(
        violations_after(Status::Blocked, |record| record.failed_by = Some(vec![coder(1), coder(2)]))
            .is_empty()
    );
}

fn anomaly(world: &mut World, kind: &str, details: Fields) {
    let (timestamp, kind) = (world.now, kind.to_owned());
    world.state.journal.anomalies.push(Anomaly { timestamp, task: None, reporter: None, kind, details });
}

/// Covers: IV-12
#[test]
fn anomalies_have_a_known_type_and_their_details() {
    let mut world = World::new();
    let some = Fields::from_iter([("count".to_owned(), Value::from("three"))]);
    anomaly(&mut world, "spec_gap", Fields::new());
    assert!(world.violations().is_empty());
    anomaly(&mut world, "grumbling", Fields::new());
    anomaly(&mut world, "retry_loop", some);
    let found = world.violations();
    assert!(found[0].starts_with("anomalies[1]: \"grumbling\" is not an anomaly type"), "{found:?}");
    assert!(found[0].contains("system_ambiguity"), "the valid ones are named");
    assert!(found[1].contains("count must be a whole number"), "{found:?}");
    assert!(found[2].contains("needs the detail error_pattern"), "{found:?}");
    assert_eq!(found.len(), 3);
}

/// Covers: IV-13
#[test]
fn task_names_are_unique_live_or_archived() {
    let mut world = World::new();
    world.state.board.archived.insert(task("old"), Status::Merged);
    for id in ["t", "old"] {
        let again = Command::from(AddTask { task: task(id), new: ready() });
        world.refused_with("task_exists", Actor::Human, again);
    }
}

/// Covers: IV-14
#[test]
fn an_agent_has_the_role_of_its_id_and_a_state_of_that_role() {
    let found = agent_violations_after(Status::Unclaimed, |entry| entry.role = Role::Planner);
    assert_eq!(found, ["coder-1: its role is planner, but its ID says coder"]);
    let found = agent_violations_after(Status::Unclaimed, |entry| entry.status = AgentStatus::Reviewing);
    assert_eq!(found, ["coder-1: a coder cannot be REVIEWING"]);
}

/// Covers: IV-14
#[test]
fn handoffs_have_both_fields_and_the_sprint_names_existing_tasks() {
    let mut world = World::new();
    let note = Handoff {
        agent: coder(1),
        role: None,
        context_used: None,
        timestamp: None,
        summary: "half".into(),
        next_action: " ".into(),
        approach: None,
        blockers: None,
        files_modified: Vec::new(),
        next_steps: Vec::new(),
    };
    world.state.board.handoff = Loaded::Ready([(task("t"), note)].into_iter().collect());
    world.edit_sprint().scope.planned.push(task("nowhere"));
    world.edit_sprint().scope.stretch.push(task("never"));
    world.edit_sprint().goal_ref = Some("goal-7".into());
    let found = world.violations();
    assert_eq!(
        found,
        [
            "sprint: scope names nowhere, which does not exist",
            "sprint: scope names never, which does not exist",
            "sprint: goal_ref is goal-7, but the goal is goal-1",
            "handoff: t has no next_action",
        ]
    );
}

/// Covers: IV-15
#[test]
fn validate_reports_everything_that_could_not_be_read() {
    let mut world = World::new();
    let fault = |field: &str| Fault { field: field.into(), message: format!("{field} is odd") };
    let slot = &mut world.state.board.tasks[&task("t")];
    let record = slot.body.as_ref().unwrap().record().clone();
    slot.body = Some(std::sync::Arc::new(TaskBody::new(record, vec![fault("priority")])));
    world.state.board.config = Loaded::Broken(fault("config"));
    world.state.board.circuit_breaker = Loaded::Broken(fault("circuit_breaker"));
    world.state.journal.faults.push(fault("anomalies"));
    let expected = [
        "t: priority is odd",
        "config: config is odd",
        "circuit_breaker: circuit_breaker is odd",
        "anomalies: anomalies is odd",
    ];
    assert_eq!(world.violations(), expected);
}

/// Covers: IV-16
#[test]
fn a_write_is_refused_for_violations_that_it_adds_not_for_older_ones() {
    let mut world = World::with_task(Status::Claimed);
    anomaly(&mut world, "grumbling", Fields::new());
    world.add("odd", ready());
    world.edit_record("odd", |record| record.depends_on = Some(vec![task("nowhere")]));
    world.edit_sprint().goal_ref = Some("goal-7".into());
    world.disk.worktrees.clear();
    assert_eq!(world.violations().len(), 4);
    world.heartbeat(coder(1));
    world.edit("odd", TaskEdit { priority: Some(1), ..TaskEdit::default() });
    world.must(Actor::Human, Command::from(WriteRetro { text: "odd".into() }));
    let worse =
        edit("odd", TaskEdit { depends_on: Some(vec![task("odd"), task("t")]), ..TaskEdit::default() });
    world.refused_with("bad_text", Actor::Human, worse);
}

/// Covers: IV-16
#[test]
fn a_broken_record_stops_commands_on_it_and_names_the_repair() {
    let mut world = World::with_task(Status::Claimed);
    world.edit_record("t", |record| record.lease_expires = None);
    let tries = [
        (world.agent(coder(1)), submit("t", sha('a'))),
        (world.agent(coder(1)), block("t")),
        (world.supervisor(coder(2)), reserve("t", coder(2), base())),
        (world.supervisor(reviewer(1)), claim_review("t", reviewer(1))),
        (world.agent(reviewer(1)), verdict("t", approved())),
        (world.supervisor(reviewer(1)), merged("t", sha('a'))),
        (Actor::Human, unblock("t")),
        (Actor::Human, edit("t", TaskEdit::default())),
        (Actor::Human, block("t")),
        (Actor::Human, supersede("t", &["n"])),
    ];
    for (actor, command) in tries {
        let refusal = world.refused_with("broken_task", actor, command);
        assert_eq!(refusal.class(), RefusalClass::Inconsistent);
        assert!(refusal.to_string().contains("CLAIMED task has no lease_expires"), "{refusal}");
        let hint = refusal.hint().unwrap_or_default();
        assert!(hint.contains("liza edit t") && hint.contains("liza abandon-task t"), "{hint}");
    }
    world.add("u", ready());
    world.claim("u", coder(2));
}

/// Covers: IV-16
#[test]
fn release_and_abandon_work_on_a_broken_record() {
    let mut world = World::with_task(Status::Claimed);
    world.edit_record("t", |record| record.lease_expires = None);
    let mut mistyped = world.clone();
    mistyped.edit_record("t", |record| record.status = None);
    for mut world in [world, mistyped] {
        let mut other = world.clone();
        let command = Command::from(ReleaseClaim {
            task: task("t"),
            role: ClaimRole::Coder,
            force: false,
            reason: None,
        });
        world.must(Actor::Human, command);
        assert_eq!(
            (world.status("t"), world.entry(coder(1)).current_task.clone()),
            (Status::Unclaimed, None)
        );
        assert!(world.violations().is_empty());
        world.claim("t", coder(2));
        other.abandon("t");
        assert_eq!(
            (other.status("t"), other.entry(coder(1)).current_task.clone()),
            (Status::Abandoned, None)
        );
    }
}

/// Covers: IV-16
#[test]
fn a_broken_section_stops_only_commands_that_need_it() {
    let mut world = World::with_task(Status::Claimed);
    let fault = Fault { field: "sprint".into(), message: "line 7".into() };
    world.state.board.sprint = Loaded::Broken(fault);
    let refusal = world.refused_with("broken_section", Actor::Human, Command::from(NewSprint));
    assert_eq!(refusal.class(), RefusalClass::Inconsistent);
    world.submit("t", coder(1), sha('a'));
}

/// Covers: IV-17
#[test]
fn every_task_has_description_status_date_and_a_priority_of_one_to_five() {
    type Gap = (&'static str, fn(&mut TaskRecord));
    let gaps: [Gap; 5] = [
        ("t: task has no description", |record| record.description = Some(" ".into())),
        ("t: task has no created", |record| record.created = None),
        ("t: priority 0 is not 1 (highest) to 5 (lowest)", |record| record.priority = Some(0)),
        ("t: priority 6 is not 1 (highest) to 5 (lowest)", |record| record.priority = Some(6)),
        ("t: task has no valid status: expected one of DRAFT, ", |record| record.status = None),
    ];
    for (message, gap) in gaps {
        let found = violations_after(Status::Unclaimed, gap);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(message), "{found:?}");
    }
}

/// Covers: IV-17
#[test]
fn a_new_task_has_priority_three_by_default() {
    let mut world = World::new();
    assert_eq!(world.record("t").priority, Some(3));
    assert_eq!(world.record("t").created, Some(world.now));
    for (priority, fits) in [(0, false), (1, true), (5, true), (6, false)] {
        let id = format!("p{priority}");
        let new = NewTask { priority: Some(priority), ..ready() };
        let command = Command::from(AddTask { task: task(&id), new });
        if fits {
            world.must(Actor::Human, command);
        } else {
            world.refused_with("bad_text", Actor::Human, command);
        }
    }
    let blank = NewTask { description: " ".into(), ..ready() };
    world.refused_with("missing", Actor::Human, Command::from(AddTask { task: task("x"), new: blank }));
}

/// Covers: IV-14, IV-16
#[test]
fn a_write_that_breaks_the_plan_is_reported() {
    let world = World::new();
    let mut sprint = world.sprint().clone();
    sprint.scope.planned.push(task("nowhere"));
    let change = Change { sprint: Some(sprint), ..Change::default() };
    let wrong = introduced(&world.state.board, &change, &world.disk, world.now);
    assert_eq!(wrong.len(), 1, "{wrong:?}");
}

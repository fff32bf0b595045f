//! What each actor may change in the file itself.

use liza_core::model::{Actor, Revision, Seconds, Status, StopFiles, Value};
use liza_core::protocol::direct_edit::EditFound;
use liza_core::protocol::manual_edit::{ManualEdit, admit, edited_places};
use liza_testkit::team::*;

fn value(json: &serde_json::Value) -> Value {
    serde_json::from_value(json.clone()).unwrap()
}

fn file() -> serde_json::Value {
    serde_json::json!({
        "version": 1,
        "tasks": [{"id": "t", "description": "x", "status": "CLAIMED", "done_when": "y"}],
        "agents": {"coder-1": {"role": "coder"}},
        "config": {"lease_duration": 300},
    })
}

/// The code of the refusal, if there is one, when the actor makes that change.
fn refused(actor: Actor, change: impl FnOnce(&mut serde_json::Value)) -> Option<&'static str> {
    let mut after = file();
    change(&mut after);
    let hand = ManualEdit {
        actor,
        now: now(),
        stop_files: StopFiles::default(),
        if_revision: None,
        verb: "lock write",
    };
    let board = state_with(Status::Claimed).board;
    admit(&board, &hand, &value(&file()), &value(&after)).err().map(|refusal| refusal.code())
}

/// Covers: CM-04, AG-12
#[test]
fn a_person_may_edit_everything_and_an_agent_little() {
    let coder = || Actor::Agent(agent("coder-1"), generation(agent("coder-1")));
    let other = || Actor::Operator(agent("coder-2"));
    let no = Some("not_permitted");
    assert_eq!(refused(Actor::Human, |file| file["tasks"][0]["status"] = "DRAFT".into()), None);
    assert_eq!(refused(coder(), |file| file["tasks"][0]["blocked_reason"] = "mine".into()), None);
    assert_eq!(refused(other(), |file| file["tasks"][0]["blocked_reason"] = "mine".into()), no);
    for actor in [coder, other] {
        assert_eq!(refused(actor(), |file| file["tasks"][0]["label"] = "new".into()), None);
        assert_eq!(refused(actor(), |file| file["mine"] = "new".into()), None);
        assert_eq!(refused(actor(), |file| file["agents"]["coder-1"]["mood"] = "new".into()), None);
        assert_eq!(refused(actor(), |file| file["agents"]["coder-1"]["role"] = "planner".into()), no);
        assert_eq!(refused(actor(), |file| file["agents"]["coder-9"] = serde_json::json!({})), no);
        assert_eq!(refused(actor(), |file| file["tasks"][0]["done_when"] = "less".into()), no);
        assert_eq!(refused(actor(), |file| file["tasks"] = serde_json::json!([])), no);
        assert_eq!(refused(actor(), |file| file["config"]["lease_duration"] = 9.into()), no);
    }
}

/// Covers: AC-14
#[test]
fn no_agent_edits_what_its_work_is_judged_by() {
    let coder = Actor::Agent(agent("coder-1"), generation(agent("coder-1")));
    for key in [
        "description",
        "done_when",
        "scope",
        "spec_ref",
        "priority",
        "depends_on",
        "max_iterations",
        "max_review_cycles",
        "lease_duration_override",
        "gate_change",
        "merge_held",
        "review_head",
        "takes_back",
        "facts",
        "impact",
        "approvals",
    ] {
        assert_eq!(refused(coder, |file| file["tasks"][0][key] = 3.into()), Some("not_permitted"), "{key}");
    }
}

/// Covers: CL-07, CL-10, AG-17
#[test]
fn generations_and_stop_files_apply_to_manual_edits() {
    let board = state_with(Status::Claimed).board;
    let coder = agent("coder-1");
    let hand = |actor, seconds, abort| {
        let stop_files = StopFiles { abort, ..StopFiles::default() };
        let hand = ManualEdit {
            actor,
            now: now() + Seconds(seconds),
            stop_files,
            if_revision: None,
            verb: "lock write",
        };
        admit(&board, &hand, &Value::Null, &Value::Null).err().map(|refusal| refusal.code())
    };
    let session = Actor::Agent(coder, generation(coder));
    assert_eq!(hand(session, 0, false), None);
    assert_eq!(hand(session, 301, false), Some("lease_lost"));
    assert_eq!(hand(session, 0, true), Some("halted"));
    assert_eq!(hand(Actor::Human, 0, true), None);
    assert_eq!(hand(Actor::Agent(coder, liza_core::model::Generation(99)), 0, false), Some("fenced"));
}

/// Covers: BB-11
#[test]
fn if_revision_applies_to_the_task_or_to_the_board() {
    let board = state_with(Status::Claimed).board;
    let own = board.summary(&task("t")).unwrap().revision;
    assert!(own < board.revision, "{own}");
    let check = |revision: Revision, change: fn(&mut serde_json::Value)| {
        let mut after = file();
        change(&mut after);
        let (now, stop_files) = (now(), StopFiles::default());
        let hand =
            ManualEdit { actor: Actor::Human, now, stop_files, if_revision: Some(revision), verb: "edit" };
        admit(&board, &hand, &value(&file()), &value(&after)).is_ok()
    };
    assert!(check(own, |file| file["tasks"][0]["label"] = "x".into()));
    assert!(!check(own, |file| file["mine"] = "x".into()));
    assert!(check(board.revision, |file| file["mine"] = "x".into()));
}

#[test]
fn paths_name_keys_of_tasks_and_sections() {
    let mut after = file();
    after["tasks"][0]["status"] = "DRAFT".into();
    after["config"]["lease_duration"] = 1.into();
    after["mine"] = 1.into();
    assert_eq!(edited_places(&value(&file()), &value(&after)).len(), 3);
}

/// Covers: AT-04, JU-01, JU-06, RO-02
#[test]
fn a_direct_edit_of_what_judges_the_work_or_protects_the_person_is_an_alarm() {
    let now = "2025-01-17T14:00:00Z".parse().unwrap();
    let is_alarm = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut after = file();
        change(&mut after);
        let found = EditFound::between(&value(&file()), &value(&after)).unwrap();
        found.alarm(Revision(7), now).is_some()
    };
    for key in [
        "status",
        "review_commit",
        "gate_change",
        "merge_held",
        "review_head",
        "review_moves",
        "takes_back",
        "facts",
    ] {
        assert!(is_alarm(&|file| file["tasks"][0][key] = "x".into()), "{key}");
    }
    for key in ["gate", "pass_env", "providers", "sandbox"] {
        assert!(is_alarm(&|file| file["config"][key] = "x".into()), "{key}");
    }
    assert!(is_alarm(&|file| file["goal"] = serde_json::json!({"gate_version": 3})));
    assert!(!is_alarm(&|file| file["tasks"][0]["description"] = "z".into()), "logged only");
}

/// Covers: AX-08
#[test]
fn an_edit_that_ends_a_goal_or_forces_a_new_plan_may_drop_fields_of_the_program() {
    let mut before = file();
    let head = serde_json::json!({"status": "IN_PROGRESS", "integration_head": "abc", "gate_version": 2});
    before["goal"] = head;
    for key in ["review_commit", "approved_by", "merge_held"] {
        before["tasks"][0][key] = "x".into();
    }
    let places = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut after = before.clone();
        change(&mut after);
        let found = EditFound::between(&value(&before), &value(&after)).unwrap();
        found.alarm(Revision(7), now()).map(|alarm| alarm.places).unwrap_or_default()
    };
    let goal = |status: &str| serde_json::json!({"status": status});
    let task = |reason: &str| {
        let [id, status] = ["t", "BLOCKED"];
        serde_json::json!([{"id": id, "description": "x", "status": status, "blocked_reason": reason, "done_when": "y"}])
    };
    assert_eq!(places(&|file| file["goal"] = goal("ABORTED")), Vec::<String>::new());
    assert_eq!(places(&|file| file["goal"] = goal("COMPLETED")), Vec::<String>::new());
    assert_eq!(places(&|file| file["tasks"] = task("human override")), Vec::<String>::new());
    assert_eq!(places(&|file| file["goal"] = goal("IN_PROGRESS")).len(), 2);
    assert_eq!(places(&|file| file["tasks"] = task("whatever")).len(), 4);
    let planted = |file: &mut serde_json::Value| {
        file["goal"] = serde_json::json!({"status": "ABORTED", "integration_head": "def"});
        file["tasks"] = task("human override");
        file["tasks"][0]["approved_by"] = "code-reviewer-1".into();
    };
    assert_eq!(places(&planted), ["goal.integration_head", "tasks.t.approved_by"]);
}

//! `liza config` and the shared file `liza.yaml`.

use crate::support::TestProject;

fn value(project: &TestProject, key: &str) -> (String, String) {
    let result = project.liza(&["config", key, "--json"]).result();
    let setting = &result["settings"][key];
    (setting["value"].to_string(), setting["source"].as_str().unwrap().to_owned())
}

fn is(project: &TestProject, key: &str, expected: &str, source: &str) {
    assert_eq!(value(project, key), (expected.to_owned(), source.to_owned()), "{key}");
}

/// An agent that starts and finds that its task does not exist.
fn start(project: &TestProject) -> crate::support::Run {
    let run = project.liza(&["agent", "coder", "nothing"]);
    assert_eq!(run.code, 1, "{run:#?}");
    run
}

/// Covers: UI-11
#[test]
fn a_shared_file_applies_after_it_was_accepted_and_the_blackboard_overrides_it() {
    let project = TestProject::new();
    is(&project, "max_crashes", "5", "default");
    project.write("liza.yaml", "max_crashes: 2\nlease_duration: 600\n");
    let run = project.liza(&["config"]);
    assert!(run.ok().contains("max_crashes") && run.stdout.contains("(default)"), "{run:#?}");
    assert!(run.stderr.contains("liza.yaml is not accepted"), "{run:#?}");
    let text = project.liza(&["config", "--trust"]).ok().to_owned();
    assert_eq!(text, "liza.yaml is accepted: max_crashes, lease_duration\n");
    is(&project, "max_crashes", "2", "liza.yaml");
    is(&project, "lease_duration", "600", "liza.yaml");
    let accepted = std::fs::read_to_string(project.home().join(".config/liza/accepted")).unwrap();
    assert!(accepted.contains(project.root.to_str().unwrap()), "{accepted}");
    project.liza(&["lock", "write", ".config.lease_duration", "900"]).ok();
    is(&project, "lease_duration", "900", "state.yaml");
    // The rules work with it.
    let config = project.snapshot().board.config.ready().unwrap().clone();
    assert_eq!((config.max_crashes, config.lease_duration.0), (2, 900));
    assert_eq!(project.liza(&["validate"]).ok().trim(), "VALID");
    assert_eq!(project.liza(&["config"]).stderr, "");
}

/// Covers: UI-11
#[test]
fn a_changed_file_waits_for_the_human_and_a_known_one_applies_when_an_agent_starts() {
    let project = TestProject::new();
    project.write("liza.yaml", "max_crashes: 2\n");
    project.liza(&["config", "--trust"]).ok();
    project.write("liza.yaml", "max_crashes: 9\n");
    let run = start(&project);
    assert!(run.stderr.contains("liza.yaml is not accepted"), "{run:#?}");
    is(&project, "max_crashes", "2", "liza.yaml");
    project.liza(&["config", "--trust"]).ok();
    is(&project, "max_crashes", "9", "liza.yaml");
    // What was accepted once needs no second question.
    project.write("liza.yaml", "max_crashes: 2\n");
    start(&project);
    is(&project, "max_crashes", "2", "liza.yaml");
    std::fs::remove_file(project.root.join("liza.yaml")).unwrap();
    start(&project);
    is(&project, "max_crashes", "5", "default");
}

/// Covers: UI-11
#[test]
fn mistakes_and_what_cannot_be_shared_are_refused() {
    let project = TestProject::new();
    project.liza(&["config", "--trust", "--json"]).refused(1, "no_team_file");
    for text in ["sandbox: off", "exec_wrapper: [sh]", "max_crashse: 1", "max_crashes: 0", "- a", "a: ["] {
        project.write("liza.yaml", text);
        project.liza(&["config", "--trust", "--json"]).refused(1, "bad_team_file");
        assert!(project.liza(&["config"]).stderr.contains("liza.yaml: "), "{text}");
    }
    project.write("liza.yaml", "max_crashes: 3\n");
    project.liza_as("coder-1", &["config", "--trust", "--json"]).refused(1, "not_permitted");
    project.liza(&["config", "nothing", "--json"]).refused(1, "unknown_setting");
    is(&project, "max_crashes", "5", "default");
}

/// Covers: UI-11
#[test]
fn a_merge_that_changes_the_file_is_an_alarm() {
    let project = TestProject::new();
    project.write("liza.yaml", "max_crashes: 2\n");
    project.git(&["add", "liza.yaml"]);
    project.git(&["commit", "-qm", "settings"]);
    project.liza(&["sync"]).ok();
    project.liza(&["config", "--trust"]).ok();
    assert!(!project.liza(&["status"]).ok().contains("TEAM FILE CHANGED"));
    project.git(&["checkout", "-qb", "other"]);
    project.write("liza.yaml", "max_crashes: 3\nsetup: rm -rf /\n");
    project.git(&["commit", "-qam", "more"]);
    project.git(&["checkout", "-q", "main"]);
    project.liza(&["sync", "other"]).ok();
    let status = project.liza(&["status", "--json"]).result();
    assert!(status["needs_you"].to_string().contains("liza config --trust"), "{status}");
    is(&project, "max_crashes", "2", "liza.yaml");
}

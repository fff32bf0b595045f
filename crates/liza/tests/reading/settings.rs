//! The settings: every number has a range, broken ones are an error, misspelled keys a warning.

use crate::support::{Run, TestProject};

/// A project with a task and this setting.
fn with(key: &str, value: &str) -> TestProject {
    let project = TestProject::new();
    project.add_task("one");
    project.set_config(key, value);
    project
}

#[track_caller]
fn message(run: &Run, exit: i32, code: &str) -> String {
    run.refused(exit, code)["message"].as_str().unwrap().to_owned()
}

/// Covers: AC-11
#[test]
fn a_number_out_of_range_is_refused_with_the_range_that_is_allowed() {
    let project = TestProject::new();
    let before = project.state();
    for (key, value, allowed) in [
        ("lease_duration", "0", "10 to 86400 s"),
        ("lease_duration", "86401", "10 to 86400 s"),
        ("heartbeat_interval", "0", "1 to 86400 s"),
        ("max_crashes", "-1", "1 to 1000"),
        ("max_review_cycles", "0", "1 to 1000"),
        ("lock_timeout", "99999999999", "0 to 3600 s"),
    ] {
        let run = project.liza(&["lock", "write", &format!(".config.{key}"), value, "--json"]);
        let found = message(&run, 1, "invalid");
        assert!(found.contains(&format!("{key} is {value}; allowed: {allowed}")), "{found}");
        assert_eq!(project.state(), before);
    }
    project.liza(&["lock", "write", ".config.lease_duration", "10"]).ok();
}

/// Covers: AC-11
#[test]
fn a_tasks_own_lease_has_the_same_range() {
    let project = TestProject::new();
    let add = |lease: &str| {
        let words = ["add-task", "--id", "one", "--desc", "x", "--spec", "specs/vision.md", "--done", "y"];
        project.liza(&[&words[..], &["--scope", "z", "--lease", lease, "--json"]].concat())
    };
    for lease in ["0", "9", "86401"] {
        let found = message(&add(lease), 1, "usage");
        assert!(found.contains("10..=86400"), "{found}");
    }
    add("10").ok();
    let path = ".tasks[0].lease_duration_override";
    let found = message(&project.liza(&["lock", "write", path, "9", "--json"]), 1, "invalid");
    assert!(found.contains("lease_duration_override is 9; allowed: 10 to 86400 s"), "{found}");
    let state = project.state().replace("lease_duration_override: 10", "lease_duration_override: 0");
    project.write(".liza/state.yaml", &state);
    project.register("coder-1");
    message(&project.liza(&["claim-task", "one", "coder-1", "--json"]), 4, "broken_task");
}

/// Covers: AC-11, AC-18
#[test]
fn broken_settings_are_an_error_with_their_place_and_never_the_defaults() {
    for (key, value, why) in [
        ("lease_duration", "0", "lease_duration is 0; allowed: 10 to 86400 s"),
        ("integration_branch", "[main]", "expected"),
    ] {
        let project = with(key, value);
        let line = format!("  {key}: {value}");
        let number = project.state().lines().position(|found| found == line).unwrap() + 1;
        for words in [
            &["register", "coder-1"][..],
            &["agent", "coder", "--cli", "rehearsal"],
            &["run", "--in-place", "--cli", "rehearsal"],
            &["claim-task", "one", "coder-1"],
        ] {
            let found = message(&project.liza(&[words, &["--json"]].concat()), 4, "broken_section");
            assert!(found.contains(why) && found.contains(&format!("line {number}")), "{words:?}: {found}");
        }
        assert!(!project.tree("one").exists());
        let invalid = project.liza(&["validate"]);
        assert!(invalid.code == 1 && invalid.stdout.contains(why), "{invalid:?}");
        // What needs no settings works, and so does what repairs them.
        project.liza(&["status"]).ok();
        project.liza(&["show", "one"]).ok();
        let value = if key == "lease_duration" { "300" } else { "integration" };
        project.liza(&["lock", "write", &format!(".config.{key}"), value, "--yaml"]).ok();
        project.register("coder-1");
    }
}

/// Covers: AC-11
#[test]
fn a_key_that_looks_misspelled_is_a_warning_everywhere() {
    let project = with("max_crashs", "3");
    let warning = "config.max_crashs has no effect: the key is unknown; did you mean max_crashes?";
    let validated = project.liza(&["validate"]);
    assert_eq!(validated.ok().trim(), "VALID");
    assert!(validated.stderr.contains(warning), "{}", validated.stderr);
    let warnings = project.liza(&["validate", "--json"]).result()["warnings"].to_string();
    assert!(warnings.contains(warning), "{warnings}");
    let checked = project.liza(&["doctor"]);
    assert!(checked.stdout.contains("config.max_crashs has no effect"), "{checked:?}");

    let write = |path: &str| project.liza(&["lock", "write", path, "1"]);
    let written = write(".tasks[0].prioriti");
    assert!(written.stderr.contains("did you mean priority?"), "{written:?}");
    assert!(!written.stderr.contains("max_crashs"), "an old one is not reported again: {written:?}");
    assert_eq!(write(".tasks[0].ticket").stderr, "", "a key of one's own is fine");
    project.liza(&["lock", "write", ".config.roles", "{coder: {cuont: 3}}", "--yaml"]).ok();
    let roles = project.liza(&["validate"]).stderr;
    assert!(roles.contains("config.roles.coder.cuont has no effect"), "{roles}");
}

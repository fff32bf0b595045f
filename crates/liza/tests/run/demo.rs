//! `liza demo`, as a new user calls it.

use std::fs;

use crate::support::TestProject;
use crate::support::process::Running;

/// A new user's folder: no git identity, no project.
fn new_user() -> TestProject {
    let project = TestProject::bare();
    fs::write(project.home().join("gitconfig"), "").unwrap();
    project
}

/// Covers: AG-16
#[test]
fn needs_script_in_a_terminal_the_demo_is_told_in_the_order_in_which_it_happens() {
    let place = new_user();
    let dir = place.home().join("demo").display().to_string();
    let mut demo = Running::liza_in_terminal(&place, &["demo", "--dir", &dir]);
    assert_eq!(demo.wait(), 0, "{}", demo.output());
    let said = demo.output();
    let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text}: {said}"));
    let order = [
        "makes the plan ready",
        "submits greet for review",
        "reviews greet",
        "rejects greet: bin/greet.sh:1",
        "continues greet after the rejection",
        "greet is merged",
        "every task of the sprint has ended",
        "Try next",
    ];
    assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{said}");
    assert!(at("marks farewell as blocked") < at("replaces farewell"), "{said}");
}

/// Covers: AG-15, AG-16
#[test]
fn the_demo_plays_its_whole_story_and_keeps_the_folder() {
    let place = new_user();
    let folder = place.home().join("demo");
    let dir = folder.display().to_string();
    let run = place.liza(&["demo", "--plain", "--dir", &dir]);
    let said = run.ok().to_owned();
    for part in [
        "planner-1        the plan has 4 tasks",
        "greet REJECTED: bin/greet.sh:1",
        "farewell BLOCKED: The vision does not say",
        "could not be merged",
        "good-night handed off",
        "goodbye REJECTED: validation_failed: `test \"$(sh bin/farewell.sh)\" = \"Goodbye!\"` failed",
        "APPROVED at",
        "planner-1        goal COMPLETED",
        "goal COMPLETED · 6 tasks: 5 merged, 1 replaced",
        "rejected once, then merged (approved by",
        "blocked once, replaced by goodbye and good-night",
        "merge failed once, then merged",
        "sent back by Liza once, then merged",
        "How each merge was judged (liza verify)",
        "CONSISTENT    ",
        "commits: 5 CONSISTENT, ",
        "without a signature this shows that history, receipts and approvals agree",
        "Try next",
    ] {
        assert!(said.contains(part), "{part}:\n{said}");
    }
    let last_merge = said.rfind(" is MERGED").unwrap();
    assert!(last_merge < said.find("starts: all tasks of sprint-1 have ended").unwrap(), "{said}");
    let log = fs::read_to_string(folder.join(".liza/log.yaml")).unwrap();
    assert!(!log.contains("end your turn") && !log.contains("exited 42"), "for an agent: {log}");
    // The red validation cost no reviewer's session.
    let red = said.find("goodbye REJECTED: validation_failed").unwrap();
    assert!(!said[..red].contains("reviews goodbye"), "{said}");
    let alarm =
        |line: &str| line.contains("⚠️ BLOCKED: farewell") || line.contains("🚨 INTEGRATION FAILED: ");
    // Not everywhere can a session be confined completely.
    let level = |line: &str| line.starts_with("liza: sessions are confined ");
    assert!(run.stderr.lines().all(|line| alarm(line) || level(line)), "{}", run.stderr);

    let git = |words: &[&str]| place.git_at(&folder, words);
    assert_eq!(git(&["status", "--porcelain"]), "");
    assert_eq!(git(&["branch", "--show-current"]), "main");
    git(&["checkout", "-q", "integration"]);
    for test in ["greet", "shout", "whisper", "farewell", "late"] {
        place.run(place.command("sh").current_dir(&folder).arg(format!("tests/{test}.sh"))).ok();
    }
    place.run(place.program().args(["validate"]).current_dir(&folder)).ok();
    let status = place.run(place.program().args(["status", "--json"]).current_dir(&folder)).result();
    assert_eq!(status["goal"]["status"], "COMPLETED");
    assert_eq!(status["agents"].as_array().unwrap().len(), 0, "{status}");

    let page = place.run(place.program().args(["status", "--all"]).current_dir(&folder)).ok().to_owned();
    assert!(!page.contains("tokens"), "no model was used: {page}");
    assert!(said.contains("liza is not on your PATH"), "{said}");

    // The tests that were reported as passing did run.
    let shown = place.run(place.program().args(["show", "greet"]).current_dir(&folder)).ok().to_owned();
    assert!(shown.contains("MERGED") && shown.contains("rejected"), "{shown}");
}

/// Covers: AG-16, CM-03
#[test]
fn a_custom_story_is_played_and_reported_as_json() {
    let place = new_user();
    let story =
        "project:\n  goal: Say hello\n  files:\n    - {path: specs/vision.md, text: \"# Hello\\n\"}\n";
    fs::write(place.home().join("story.yaml"), story).unwrap();
    let path = place.home().join("story.yaml").display().to_string();
    let folder = place.home().join("own").display().to_string();
    let words =
        ["demo", "--playbook", &path, "--dir", &folder, "--coders", "1", "--reviewers", "1", "--json"];
    let result = place.liza(&words).result();
    assert_eq!(result["reached"], true, "{result}");
    assert_eq!(result["progress"]["merged"], 1, "{result}");
    assert_eq!(result["verified"]["classes"]["CONSISTENT"], 1, "{result}");
    assert_eq!(fs::canonicalize(result["folder"].as_str().unwrap()).unwrap().file_name().unwrap(), "own");
}

/// Covers: AG-16, CM-05
#[test]
fn an_invalid_story_is_reported_before_anything_is_created() {
    let place = new_user();
    let refused = |words: &[&str], code: &str| {
        let words = [&["demo", "--json"], words].concat();
        place.liza(&words).refused(1, code)["message"].as_str().unwrap().to_owned()
    };
    let full = place.root.display().to_string();
    assert!(refused(&["--dir", &full], "exists").contains("not empty"));
    assert!(refused(&["--playbook", "nowhere.yaml"], "bad_playbook").contains("cannot read"));
    let write = |text: &str| fs::write(place.root.join("story.yaml"), text).unwrap();
    write("coder: []\n");
    assert!(refused(&["--playbook", "story.yaml"], "bad_playbook").contains("has no project"));
    write("project: {goal: x, files: [{path: ../../out, text: x}]}\n");
    let new = place.home().join("new").display().to_string();
    let out = refused(&["--playbook", "story.yaml", "--dir", &new], "bad_playbook");
    assert!(out.contains("not inside"), "{out}");
    assert!(!place.home().parent().unwrap().join("out").exists());
}

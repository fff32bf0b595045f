//! Input of people and agents: long, odd and hostile texts, stale revisions, folders.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use crate::fixture::claimed;
use crate::support::TestProject;

/// Covers: CM-05, BB-12
#[test]
fn every_text_is_kept_exactly() {
    let project = TestProject::new();
    let texts = [
        "-x",
        "--json-like",
        "- a list",
        "# no comment",
        "key: value",
        "'quotes' \"both\"",
        "🎉 émoji 漢字",
        "null",
        "2025-01-17T14:00:00Z",
        "a\n\nb\n  c",
        "tab\there",
        "%percent @at `tick` $(rm -rf x) \\n",
        "---",
        "...",
        "{a: [b",
    ];
    for text in texts {
        project.liza(&["align", "--summary", text]).ok();
        let shown = project.liza(&["goal", "--json"]).result();
        let last = shown["alignment_history"].as_array().unwrap().last().unwrap();
        assert_eq!(last["summary"], text);
    }
    assert_eq!(project.liza(&["validate"]).ok().trim(), "VALID");
    assert_eq!(project.log().matches("- timestamp:").count(), texts.len() + 1, "one entry, one line each");
}

/// Covers: CM-05
#[test]
fn control_characters_do_not_reach_the_blackboard() {
    let project = TestProject::new();
    project.liza(&["note", "red \u{1b}[31malert\u{1b}[0m\u{7} and\r\nmore"]).ok();
    let state = project.state();
    assert!(state.contains("red alert and"), "{state}");
    assert!(!state.contains(|c: char| c.is_control() && c != '\n'), "{state:?}");
    // A text of only control characters is blank.
    project.liza(&["note", "\u{7}\u{1b}[2J", "--json"]).refused(1, "missing");
}

/// Covers: CM-05
#[test]
fn a_megabyte_works_and_more_is_refused() {
    let project = TestProject::new();
    let line = "All work and no play makes Jack a dull boy, ü.\n";
    let megabyte = line.repeat(1_000_000 / line.len());
    project.liza_with(&["note", "-"], &megabyte).ok();
    project.liza_with(&["align", "--summary", "-"], &"x".repeat(1_000_000)).ok();
    let shown = project.liza(&["goal", "--json"]).result();
    assert_eq!(shown["alignment_history"][1]["summary"].as_str().unwrap().len(), 1_000_000);
    let before = project.state();
    let run = project.liza_with(&["note", "-", "--json"], &line.repeat(25_000));
    let error = run.refused(1, "bad_text");
    assert_eq!(error["message"], "the text is longer than 1024 KiB");
    // About the longest argument that a command line allows.
    project.liza(&["note", &"y".repeat(120_000)]).ok();
    assert!(project.state().len() > before.len() + 100_000);
    assert!(project.log().lines().all(|line| line.chars().count() < 400), "the log stays skimmable");
}

/// Covers: CM-05
#[test]
fn standard_input_is_text_or_refused() {
    let project = TestProject::new();
    project.liza_with(&["note", "-", "--json"], "").refused(1, "missing");
    project.liza_with(&["note", "-"], "from\na pipe\n").ok();
    assert!(project.state().contains("a pipe"));
    let mut program = project.program();
    program.args(["note", "-", "--json"]);
    program.stdin(fs::File::open(env!("CARGO_BIN_EXE_liza")).unwrap());
    project.run(&mut program).refused(1, "bad_text");
}

/// Covers: BB-11, CM-02
#[test]
fn a_stale_revision_is_refused_and_a_current_one_is_not() {
    let project = TestProject::new();
    project.add_task("core");
    project.liza(&["note", "the board moves on, the task does not"]).ok();
    project.liza(&["edit-task", "core", "--desc", "x", "--if-revision", "2"]).ok();
    let words = ["edit-task", "core", "--desc", "y", "--if-revision", "2", "--json"];
    let error = project.liza(&words).refused(4, "stale_revision");
    assert_eq!(error["message"], "core has changed since revision 2: it is at revision 4");
    assert_eq!(error["hint"], "read it again, then retry with --if-revision 4");
    project.liza(&["note", "x", "--if-revision", "3", "--json"]).refused(4, "stale_revision");
    project.liza(&["note", "x", "--if-revision", "4"]).ok();
    project.liza(&["note", "x", "--if-revision", "-1", "--json"]).refused(1, "usage");
}

/// Covers: CL-10, AG-17, CM-02
#[test]
fn every_command_stops_an_old_generation() {
    let project = TestProject::new();
    let generation = claimed(&project, "core", "coder-1");
    project.liza(&["deregister", "coder-1"]).ok();
    let newer = project.register("coder-1");
    assert!(newer > generation);
    let attempts: [&[&str]; 4] = [
        &["pre-check", "core", "--intent", "x", "--validation", "y"],
        &["mark-blocked", "core", "--reason", "x", "--question", "y"],
        &["handoff", "core", "--summary", "x", "--next-action", "y"],
        &["anomaly", "spec_ambiguity", "--task", "core"],
    ];
    let before = project.state();
    for words in attempts {
        project.liza_in("coder-1", generation, &[words, &["--json"]].concat()).refused(42, "fenced");
    }
    assert_eq!(project.state(), before);
}

/// Covers: CM-06
#[test]
fn it_works_in_sub_folders_and_worktrees_and_names_a_folder_without_project() {
    let project = TestProject::new();
    claimed(&project, "core", "coder-1");
    fs::create_dir_all(project.root.join("src/deep")).unwrap();
    project.liza(&["-C", "src/deep", "note", "from below"]).ok();
    project.liza(&["-C", ".worktrees/core", "note", "from a worktree"]).ok();
    assert!(project.state().contains("from a worktree"));
    let error = project.liza(&["-C", "/", "note", "x", "--json"]).refused(1, "no_project");
    assert_eq!(error["message"], "Liza is not set up here: no .liza folder in / or above it");
    project.liza(&["-C", "src/none", "note", "x", "--json"]).refused(1, "no_directory");
    project.liza(&["-C", "specs/vision.md", "note", "x", "--json"]).refused(1, "no_directory");
}

/// Covers: CM-02, CM-05, BB-10
#[test]
fn an_unwritable_lock_file_is_named_and_nothing_is_written() {
    let project = TestProject::new();
    let lock = project.root.join(".liza/state.yaml.lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    let before = project.state();
    let error = project.liza(&["note", "x", "--json"]).refused(1, "io");
    assert!(error["message"].as_str().unwrap().contains("state.yaml.lock"), "{error}");
    assert_eq!(project.state(), before);
}

/// Covers: CM-02, CM-03, CM-05
#[test]
fn usage_errors_exit_with_1_and_are_still_json() {
    let project = TestProject::new();
    let error = project.liza(&["note", "--json"]).refused(1, "usage");
    assert!(error["message"].as_str().unwrap().contains("<TEXT>"), "{error}");
    project.liza(&["sing", "--json"]).refused(1, "usage");
    let run = project.liza(&["note"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(run.stderr.contains("Usage: liza note"), "{}", run.stderr);
    let mut program = project.program();
    program.args(["note", "--json"]).arg(OsStr::from_bytes(b"not \xff text"));
    project.run(&mut program).refused(1, "usage");
    let run = project.liza(&["note", "x", "--quiet"]);
    assert_eq!((run.ok(), run.stderr.as_str()), ("", ""));
}

/// Covers: CM-02, UI-03
#[test]
fn a_command_without_what_it_needs_shows_an_example() {
    let project = TestProject::new();
    for (words, example) in [
        (&["show"][..], "  example: liza show retry-orders\n"),
        (&["answer"], "  example: liza answer retry-orders \"Three times"),
        (&["answer", "t"], "  example: liza answer retry-orders \"Three times"),
    ] {
        let run = project.liza(words);
        assert_eq!(run.code, 1, "{run:#?}");
        assert!(run.stderr.contains(example), "{run:#?}");
    }
    let run = project.liza(&["diff", "--numstat"]);
    assert!(run.code == 1 && !run.stderr.contains("as a value"), "{run:#?}");
}

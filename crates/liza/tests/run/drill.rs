//! `liza drill`: reviewers judge merged changes again, in copies, and the project does not notice.

use std::fs;

use crate::support::TestProject;

/// One function, in its own file.
const CODE: &str =
    "clamp() {\n  if [ \"$1\" -gt \"$2\" ]; then\n    echo \"$2\"\n  else\n    echo \"$1\"\n  fi\n}\n";
const TEST: &str = "set -e\n. ./clamp.sh\ntest \"$(clamp 5 3)\" = 3\ntest \"$(clamp 2 3)\" = 2\n";

/// A project in which a change with its own test is merged; `validation` are the commands that judge work.
fn project(validation: &str) -> TestProject {
    let project = TestProject::bare();
    project.write(
        "tests/all.sh",
        "set -e\nfor test in tests/test_*.sh; do test ! -e \"$test\" || sh \"$test\"; done\n",
    );
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "the tests"]);
    project.liza(&["init", "Clamp everything"]).ok();
    project.set_config("sandbox", "off");
    project.set_config("pass_env", "[LIZA]");
    project.set_config("validation", validation);
    project
}

fn merged(project: &TestProject) -> String {
    for agent in ["coder-1", "code-reviewer-1"] {
        project.register(agent);
    }
    project.add_task("clamp");
    project.liza(&["claim-task", "clamp", "coder-1"]).ok();
    let tree = project.tree("clamp");
    fs::create_dir_all(tree.join("tests")).unwrap();
    fs::write(tree.join("clamp.sh"), CODE).unwrap();
    fs::write(tree.join("tests/test_clamp.sh"), TEST).unwrap();
    project.git_at(&tree, &["add", "-A"]);
    project.git_at(&tree, &["commit", "-qm", "clamp a number"]);
    let head = project.git_at(&tree, &["rev-parse", "HEAD"]);
    project.liza_as("coder-1", &["submit-for-review", "clamp", &head]).ok();
    project.liza(&["claim-review", "clamp", "code-reviewer-1"]).ok();
    project.liza_as("code-reviewer-1", &["submit-verdict", "clamp", "APPROVED", "read it"]).ok();
    // As in every copy of a drill: not even an approved change is merged there.
    project.write(".liza/no-merges", "");
    project.liza(&["wt-merge", "clamp", "--json"]).refused(1, "not_permitted");
    fs::remove_file(project.root.join(".liza/no-merges")).unwrap();
    project.liza_as("code-reviewer-1", &["wt-merge", "clamp"]).ok();
    for agent in ["coder-1", "code-reviewer-1"] {
        project.liza(&["deregister", agent]).ok();
    }
    head
}

/// A reviewer that tries the function itself, looks for what a drill must not show, and tries to merge.
const ATTENTIVE: &str = r#"#!/bin/sh
cat > "$HOME/prompt-$$"
{
  git log --all --format='%an %ae %ad %cn %cd %s %P' --date=raw
  ls tests
  "$LIZA" show clamp
  "$LIZA" log
  "$LIZA" wt-merge clamp && echo MERGED
} > "$HOME/seen-$$" 2>&1
. ./clamp.sh
if [ "$(clamp 5 3)" = 3 ] && [ "$(clamp 2 3)" = 2 ]; then
  "$LIZA" submit-verdict clamp APPROVED "tried: clamp 5 3 and clamp 2 3"
else
  "$LIZA" submit-verdict clamp REJECTED "Blockers: 1
- [blocker] clamp.sh:2 - the comparison is wrong"
fi
"#;

fn with_attentive(project: &TestProject) {
    let script = project.home().join("attentive.sh");
    fs::write(&script, ATTENTIVE).unwrap();
    project.run(project.command("chmod").arg("755").arg(&script)).ok();
    project.set_config("providers", &format!("{{attentive: {{program: {}}}}}", script.display()));
}

/// The files that the sessions left in the home folder.
fn seen(project: &TestProject, prefix: &str) -> Vec<String> {
    let entries = fs::read_dir(project.home()).unwrap().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    named.map(|entry| fs::read_to_string(entry.path()).unwrap()).collect()
}

/// Covers: TR-03
#[test]
fn a_reviewer_is_drilled_in_copies_that_show_nothing_of_it_and_the_project_stays_as_it_was() {
    let project = project("[sh tests/all.sh]");
    with_attentive(&project);
    let commit = merged(&project);
    let (board, refs) = (project.state(), project.git(&["for-each-ref"]));
    let mut program = project.program();
    program.args(["drill", "--reviews", "2", "--cli", "attentive", "--yes", "--json"]);
    let run = project.run(program.env("LIZA", env!("CARGO_BIN_EXE_liza")));
    let result = run.result();
    assert!(
        run.stderr.contains("2 reviews by attentive") && run.stderr.contains("cost is unknown"),
        "{run:#?}"
    );
    assert!(run.stderr.contains("--reviews 770"), "{run:#?}");
    let rates = &result["rates"][0];
    let counts = |what: &str| (rates[what]["hits"].as_u64().unwrap(), rates[what]["n"].as_u64().unwrap());
    assert_eq!((counts("caught"), counts("false_alarms")), ((1, 1), (0, 1)), "{run:#?}");
    assert_eq!((&rates["program"], &rates["model"]), (&"attentive".into(), &serde_json::Value::Null));
    // The project has the result in its own file, and nothing else.
    assert_eq!((project.state(), project.git(&["for-each-ref"])), (board, refs));
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&project.read(".liza/drills.json")).unwrap(),
        result["records"]
    );
    let original = project.git(&["log", "-1", "--format=%an %ae %ad %cn %cd %s %P", "--date=raw", &commit]);
    let seen = seen(&project, "seen-");
    assert_eq!(seen.len(), 2);
    for text in &seen {
        assert!(text.contains(&original), "author, dates, message and parents: {original}\n{text}");
        assert!(text.contains("may not wt-merge") && !text.contains("MERGED"), "{text}");
        for hidden in [&commit, &commit[..7], "Merge", "test_clamp", "drill", "copied"] {
            assert!(!text.contains(hidden), "{hidden}: {text}");
        }
    }
    // The retrospective shows it, to people and to programs.
    let retro = project.liza(&["retro", "--json"]).result();
    assert_eq!(retro["drills"], result["rates_of_all_drills"]);
    assert_eq!(project.liza(&["status", "--json"]).result()["drilled"], result["rates_of_all_drills"]);
    let text = retro["text"].as_str().unwrap();
    assert!(
        text.contains("## Reviewers in drills") && text.contains("| attentive | its default | 1 of 1: 100 %"),
        "{text}"
    );
}

/// The test is missing in both copies, so a reviewer that only asks for tests catches nothing that it does not also raise for
/// correct work.
///
/// Covers: TR-03
#[test]
fn a_reviewer_that_asks_for_tests_is_not_taken_for_one_that_sees_defects() {
    let project = project("[sh tests/all.sh]");
    merged(&project);
    let result = project.liza(&["drill", "--reviews", "2", "--cli", "rehearsal", "--yes", "--json"]).result();
    let rates = &result["rates"][0];
    assert_eq!(
        (&rates["caught"]["hits"], &rates["false_alarms"]["hits"]),
        (&1.into(), &1.into()),
        "{result}"
    );
    assert_eq!(rates["program"], "rehearsal");
}

/// Covers: TR-03
#[test]
fn a_drill_that_cannot_be_says_why_and_what_to_do() {
    let project = project("[]");
    let drill = |words: &[&str]| project.liza(&[&["drill", "--json"], words].concat());
    let error = drill(&["--cli", "rehearsal", "--yes"]).refused(1, "nothing_to_drill");
    assert!(error["hint"].as_str().unwrap().contains("liza run"), "{error}");
    merged(&project);
    drill(&["--cli", "rehearsal"]).refused(1, "not_confirmed");
    let error = drill(&["--cli", "rehearsal", "--yes"]).refused(1, "nothing_to_drill");
    assert!(error["message"].as_str().unwrap().contains("1 change that is judged by no command"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("liza config validation"), "{error}");
    project.set_config("validation", "[\"true\"]");
    let error = drill(&["--cli", "rehearsal", "--yes"]).refused(1, "nothing_to_drill");
    assert!(error["message"].as_str().unwrap().contains("no small defect"), "{error}");
    project.set_config("providers", "{absent: {program: no-such-program-here}}");
    let error = drill(&["--cli", "absent", "--yes"]).refused(5, "program_missing");
    assert!(error["message"].as_str().unwrap().contains("no-such-program-here"), "{error}");
    project.liza_as("code-reviewer-1", &["drill", "--json"]).refused(1, "not_permitted");
    assert!(!project.root.join(".liza/drills.json").exists());
}

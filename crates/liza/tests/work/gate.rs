//! The gate: work is judged by the protected files of the integration branch, whatever the work made of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::fixture::*;
use crate::support::TestProject;

/// The program is broken if it says so; the gate asks a file that it sources.
const GATE: &str =
    "#!/bin/sh\ncd \"$(dirname \"$0\")/..\"\n. scripts/lib.sh\n. \"$(dirname \"$0\")/lib.sh\"\ncheck\n";
const LIB: &str = "check() { test ! -f broken; }\n";

/// A team with a gate on the integration branch.
fn gated() -> TestProject {
    gated_by(GATE)
}

fn gated_by(script: &str) -> TestProject {
    let project = team();
    advance(&project, "scripts/lib.sh", LIB);
    let folder = project.home().join("gate");
    project.git(&["worktree", "add", "-q", "-f", "--detach", folder.to_str().unwrap(), "integration"]);
    executable(&folder.join("scripts/integration-test.sh"), script);
    project.git_at(&folder, &["add", "-A"]);
    project.git_at(&folder, &["commit", "-qm", "the gate"]);
    let head = project.git_at(&folder, &["rev-parse", "HEAD"]);
    project.git(&["update-ref", "refs/heads/integration", &head]);
    project.git(&["worktree", "remove", "--force", folder.to_str().unwrap()]);
    project.liza(&["accept-integration"]).ok();
    project
}

fn executable(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// An approved task whose work is what `change` does in its worktree; returns the commit.
fn approved_work(project: &TestProject, task: &str, change: impl FnOnce(&Path)) -> String {
    claimed(project, task, "coder-1");
    let tree = project.tree(task);
    change(&tree);
    project.git_at(&tree, &["add", "-A"]);
    project.git_at(&tree, &["commit", "-qm", "the work"]);
    let head = project.git_at(&tree, &["rev-parse", "HEAD"]);
    submit(project, task, "coder-1", &head).ok();
    judge(project, task, &["APPROVED"]);
    head
}

fn broken(tree: &Path) {
    fs::write(tree.join("broken"), "").unwrap();
}

/// The work is not merged, and waits for the human, who is told that it fails under the old gate.
#[track_caller]
fn held_as_failing(project: &TestProject, task: &str) {
    let before = tip(project, "integration");
    merge_as_team(project, task).refused(1, "gate_changed");
    assert_eq!((tip(project, "integration"), project.status(task)), (before, "APPROVED"));
    let change = project.record(task).gate_change.unwrap();
    assert!(change.old_failure.is_some(), "the program is broken: {change:?}");
    let status = project.liza(&["status"]);
    let status = status.ok();
    for words in ["GATE CHANGED", &format!("liza accept-gate {task} --old-fails")] {
        assert!(status.contains(words), "{words}: {status}");
    }
    check_consistent(project);
}

/// Covers: JU-01
#[test]
fn a_broken_program_is_not_merged_by_a_script_that_exits_0() {
    let project = gated();
    approved_work(&project, "one", |tree| {
        broken(tree);
        executable(&tree.join("scripts/integration-test.sh"), "#!/bin/sh\nexit 0\n");
    });
    held_as_failing(&project, "one");
    let change = project.record("one").gate_change.unwrap();
    assert_eq!(change.files, ["scripts/integration-test.sh"]);
    for words in ["APPROVED", "it changes scripts/integration-test.sh (not accepted)", "exit status 1"] {
        let shown = project.liza(&["show", "one"]).stdout;
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

/// Covers: JU-01
#[test]
fn a_broken_program_is_not_merged_by_deleting_the_gate() {
    let project = gated();
    approved_work(&project, "one", |tree| {
        broken(tree);
        fs::remove_dir_all(tree.join("scripts")).unwrap();
    });
    held_as_failing(&project, "one");
}

/// Covers: JU-01
#[test]
fn a_gate_that_is_no_longer_executable_is_changed() {
    let project = gated_by("#!/usr/bin/env bash\nset -o pipefail || exit 9\n. scripts/lib.sh\ncheck\n");
    approved_work(&project, "one", |tree| {
        broken(tree);
        let script = tree.join("scripts/integration-test.sh");
        fs::set_permissions(script, fs::Permissions::from_mode(0o644)).unwrap();
    });
    let error = merge_as_team(&project, "one").refused(3, "integration_test");
    assert!(error["message"].as_str().unwrap().contains("exit status"), "{error}");

    let project = gated();
    approved_work(&project, "one", |tree| {
        let script = tree.join("scripts/integration-test.sh");
        fs::set_permissions(script, fs::Permissions::from_mode(0o644)).unwrap();
    });
    merge_as_team(&project, "one").refused(1, "gate_changed");
}

/// Covers: JU-01
#[test]
fn a_gate_that_is_reached_through_a_link_is_changed() {
    let project = gated();
    approved_work(&project, "one", |tree| {
        broken(tree);
        fs::remove_dir_all(tree.join("scripts")).unwrap();
        executable(&tree.join("tools/integration-test.sh"), "#!/bin/sh\nexit 0\n");
        symlink("tools", tree.join("scripts")).unwrap();
    });
    held_as_failing(&project, "one");

    let project = gated();
    approved_work(&project, "two", |tree| {
        broken(tree);
        fs::write(tree.join("lib.sh"), "check() { true; }\n").unwrap();
        fs::remove_file(tree.join("scripts/lib.sh")).unwrap();
        symlink("../lib.sh", tree.join("scripts/lib.sh")).unwrap();
    });
    held_as_failing(&project, "two");
}

/// Covers: JU-01
#[test]
fn the_target_of_a_link_of_the_gate_is_protected_and_none_leads_out() {
    let project = team();
    advance(&project, "tools/lib.sh", LIB);
    let folder = project.home().join("gate");
    project.git(&["worktree", "add", "-q", "-f", "--detach", folder.to_str().unwrap(), "integration"]);
    executable(&folder.join("scripts/integration-test.sh"), "#!/bin/sh\n. scripts/lib.sh\ncheck\n");
    symlink("../tools/lib.sh", folder.join("scripts/lib.sh")).unwrap();
    project.git_at(&folder, &["add", "-A"]);
    project.git_at(&folder, &["commit", "-qm", "the gate"]);
    let head = project.git_at(&folder, &["rev-parse", "HEAD"]);
    project.git(&["update-ref", "refs/heads/integration", &head]);
    project.git(&["worktree", "remove", "--force", folder.to_str().unwrap()]);
    project.liza(&["accept-integration"]).ok();
    approved_work(&project, "one", |tree| {
        broken(tree);
        fs::write(tree.join("tools/lib.sh"), "check() { true; }\n").unwrap();
    });
    held_as_failing(&project, "one");

    project.liza(&["config", "client_settings", "allow"]).ok();
    approved_work(&project, "two", |tree| {
        fs::remove_file(tree.join("scripts/lib.sh")).unwrap();
        symlink("/etc/passwd", tree.join("scripts/lib.sh")).unwrap();
    });
    let error = merge_as_team(&project, "two").refused(3, "integration_test");
    assert!(error["message"].as_str().unwrap().contains("leads out of the repository"), "{error}");
}

/// Covers: JU-01
#[test]
fn a_renamed_folder_of_the_gate_is_a_change() {
    let project = gated();
    approved_work(&project, "one", |tree| {
        broken(tree);
        fs::rename(tree.join("scripts"), tree.join("bin")).unwrap();
    });
    held_as_failing(&project, "one");
}

/// Covers: JU-01
#[test]
fn a_case_variant_of_the_gate_is_a_change() {
    let project = gated();
    approved_work(&project, "one", |tree| {
        broken(tree);
        executable(&tree.join("Scripts/Integration-Test.sh"), "#!/bin/sh\nexit 0\n");
    });
    // Where case counts, its own gate is the old one, and fails.
    merge_as_team(&project, "one").refused(3, "integration_test");
    approved_work(&project, "two", |tree| {
        executable(&tree.join("Scripts/Integration-Test.sh"), "#!/bin/sh\nexit 0\n");
    });
    merge_as_team(&project, "two").refused(1, "gate_changed");
}

/// Covers: JU-01
#[test]
fn a_file_that_the_gate_sources_is_protected() {
    let project = gated();
    approved_work(&project, "one", |tree| {
        broken(tree);
        fs::write(tree.join("scripts/lib.sh"), "check() { true; }\n").unwrap();
    });
    held_as_failing(&project, "one");
}

/// Covers: JU-01, RO-09
#[test]
fn what_is_tested_cannot_change_its_judge_while_it_runs() {
    let attacks = [
        "printf 'exit 0\\nexit 0\\nexit 0\\nexit 0\\n' > scripts/integration-test.sh",
        "printf '#!/bin/sh\\ncheck() { true; }\\n' > x; cat x > scripts/lib.sh; git checkout -q scripts/lib.sh",
        "mv scripts kept; mkdir scripts; echo 'check() { true; }' > scripts/lib.sh; sleep 0.2; rm -r scripts; mv kept scripts",
    ];
    for (number, attack) in attacks.into_iter().enumerate() {
        let project = gated_by("#!/bin/sh\nsh ./app\n. scripts/lib.sh\ncheck\n");
        // Without a room, the change is seen afterwards.
        project.set_config("sandbox_max_abi", "100");
        approved_work(&project, "one", |tree| {
            if number != 1 {
                broken(tree);
            }
            fs::write(tree.join("app"), format!("{attack}\nexit 0\n")).unwrap();
        });
        let before = tip(&project, "integration");
        let refused = merge_as_team(&project, "one");
        // The others find what they have broken.
        assert_eq!(refused.stdout.contains("does not count"), number == 1, "{refused:?}");
        refused.refused(3, "integration_test");
        assert_eq!((tip(&project, "integration"), project.status("one")), (before, "INTEGRATION_FAILED"));
    }
    // In a room, there is no change: the judge finds what is broken, and nothing else. What work does elsewhere is its own affair.
    let project = gated_by("#!/bin/sh\nsh ./app\n. scripts/lib.sh\ncheck\n");
    let all = attacks.join("\n").replace("sleep 0.2", "mkdir out; echo x > out/x");
    let attack = |tree: &Path| fs::write(tree.join("app"), format!("{all}\nexit 0\n")).unwrap();
    approved_work(&project, "one", |tree| {
        broken(tree);
        attack(tree);
    });
    let refused = merge_as_team(&project, "one");
    assert!(refused.stdout.contains("failed with exit status 1"), "{refused:?}");
    approved_work(&project, "two", attack);
    merge_as_team(&project, "two").ok();
}

/// Covers: JU-01
#[test]
fn an_honest_change_of_gate_and_program_is_merged_with_the_humans_word() {
    let project = gated();
    let rename = |tree: &Path| {
        broken(tree);
        fs::write(tree.join("scripts/lib.sh"), "check() { test -f broken; }\n").unwrap();
    };
    approved_work(&project, "one", rename);
    held_as_failing(&project, "one");
    // No other work is blocked, and the next one needs no word.
    approved(&project, "other");
    merge_as_team(&project, "other").ok();
    merge_as_team(&project, "one").refused(1, "gate_changed");
    project.liza_as("code-reviewer-1", &["accept-gate", "one", "--json"]).refused(1, "not_permitted");
    project.liza(&["accept-gate", "one", "--json"]).refused(1, "old_gate_fails");
    let accepted = project.liza(&["accept-gate", "one", "--old-fails", "--json"]).result();
    assert_eq!((&accepted["task"], &accepted["status"]), (&"one".into(), &"APPROVED".into()));
    // Another move of the branch keeps the word.
    approved(&project, "third");
    merge_as_team(&project, "third").ok();
    merge_as_team(&project, "one").ok();
    assert_eq!(project.status("one"), "MERGED");
    approved(&project, "after");
    merge_as_team(&project, "after").ok();
    check_consistent(&project);
}

/// Covers: JU-01
#[test]
fn the_humans_word_holds_for_one_commit_and_one_gate() {
    let project = gated();
    let add = |name: &'static str| move |tree: &Path| fs::write(tree.join(name), "x\n").unwrap();
    approved_work(&project, "one", add("scripts/one"));
    approved_work(&project, "two", add("scripts/two"));
    for task in ["one", "two"] {
        merge_as_team(&project, task).refused(1, "gate_changed");
        assert_eq!(project.record(task).gate_change.unwrap().old_failure, None);
        project.liza(&["accept-gate", task]).ok();
    }
    merge_as_team(&project, "one").ok();
    merge_as_team(&project, "two").refused(1, "gate_changed");
    project.liza(&["accept-gate", "two"]).ok();
    merge_as_team(&project, "two").ok();

    approved_work(&project, "three", add("scripts/three"));
    merge_as_team(&project, "three").refused(1, "gate_changed");
    project.liza(&["submit-verdict", "three", "REJECTED", "another one"]).ok();
    assert_eq!(project.status("three"), "REJECTED");
    claim(&project, "three", "coder-1").ok();
    let head = commit(&project, &project.tree("three"), "scripts/other", "y\n");
    submit(&project, "three", "coder-1", &head).ok();
    judge(&project, "three", &["APPROVED"]);
    merge_as_team(&project, "three").refused(1, "gate_changed");
    project.liza(&["accept-gate", "three"]).ok();
    merge_as_team(&project, "three").ok();
    check_consistent(&project);
}

/// Covers: JU-01
#[test]
fn the_first_gate_of_a_project_waits_for_the_human_and_one_of_the_persons_own_does_not() {
    let project = team();
    approved_work(&project, "one", |tree| {
        executable(&tree.join("scripts/integration-test.sh"), "#!/bin/sh\ntest -f specs/vision.md\n");
    });
    merge_as_team(&project, "one").refused(1, "gate_changed");
    let change = project.record("one").gate_change.unwrap();
    assert_eq!(change.old_failure, None, "there is no old gate");
    project.liza(&["accept-gate", "one"]).ok();
    merge_as_team(&project, "one").ok();
    approved(&project, "two");
    merge_as_team(&project, "two").ok();
    assert!(project.root.join(".liza/integration-tests/two-1.log").exists());

    let own = team();
    own.write("scripts/integration-test.sh", "#!/bin/sh\ntest ! -f broken\n");
    own.git(&["add", "scripts"]);
    own.git(&["commit", "-qm", "the test"]);
    own.liza(&["sync"]).ok();
    approved(&own, "one");
    merge_as_team(&own, "one").ok();
    approved_work(&own, "two", broken);
    merge_as_team(&own, "two").refused(3, "integration_test");
}

/// Covers: JU-01
#[test]
fn the_patterns_are_those_of_the_settings_and_never_those_of_the_work() {
    let project = gated();
    project.liza(&["config", "gate.watched", r#"["Makefile"]"#]).ok();
    approved_work(&project, "one", |tree| {
        broken(tree);
        fs::write(tree.join("liza.yaml"), "gate: {runs: [nothing], watched: []}\n").unwrap();
    });
    merge_as_team(&project, "one").refused(3, "integration_test");
    approved_work(&project, "two", |tree| fs::write(tree.join("Makefile"), "all:\n").unwrap());
    merge_as_team(&project, "two").refused(1, "gate_changed");
    assert_eq!(project.record("two").gate_change.unwrap().files, ["Makefile"]);
    project.liza(&["config", "gate.watch", "[]", "--json"]).refused(1, "unknown_setting");
}

/// Covers: JU-01
#[test]
fn a_project_says_what_judges_its_merges_and_what_any_task_can_change() {
    let project = team();
    let alone = "nothing but the code reviewer judges merges";
    let said = |project: &TestProject, verb: &str| project.liza(&[verb]).stdout;
    for verb in ["status", "doctor"] {
        assert_eq!(said(&project, verb).matches(alone).count(), 1, "{}", said(&project, verb));
    }
    project.write("Makefile", "test:\n\ttrue\n");
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "a test"]);
    let written = project.liza(&["init", "--test"]);
    let written = written.ok();
    let command =
        r#"liza config gate.watched '["liza.yaml", ".github/workflows/**", ".gitlab-ci.yml", "Makefile"]'"#;
    assert!(written.contains(command), "{written}");
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "a gate"]);
    project.liza(&["sync"]).ok();
    let doctor = said(&project, "doctor");
    assert!(doctor.contains("any task can change") && doctor.contains(command), "{doctor}");
    project
        .run(project.command("sh").args([
            "-c",
            &command.replace("liza ", "\"$0\" "),
            env!("CARGO_BIN_EXE_liza"),
        ]))
        .ok();
    let (doctor, status) = (said(&project, "doctor"), said(&project, "status"));
    assert!(!doctor.contains("any task can change") && !status.contains(alone), "{doctor}{status}");
}

/// Covers: JU-01
#[test]
fn protected_files_are_judged_as_they_are_stored() {
    let project = gated();
    advance(&project, ".gitattributes", "scripts/* text eol=crlf\n");
    approved(&project, "one");
    merge_as_team(&project, "one").ok();
    approved_work(&project, "two", broken);
    merge_as_team(&project, "two").refused(3, "integration_test");
}

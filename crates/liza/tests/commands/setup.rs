//! `liza setup` and the old names.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::TestProject;

const NAMES: [&str; 17] = [
    "liza-init.sh",
    "liza-lock.sh",
    "liza-validate.sh",
    "liza-watch.sh",
    "liza-analyze.sh",
    "liza-checkpoint.sh",
    "liza-agent.sh",
    "liza-claim-task.sh",
    "liza-submit-for-review.sh",
    "liza-submit-verdict.sh",
    "liza-add-task.sh",
    "wt-create.sh",
    "wt-merge.sh",
    "wt-delete.sh",
    "update-sprint-metrics.sh",
    "clear-stale-review-claims.sh",
    "release-claim.sh",
];

/// Covers: CM-01, CM-07, CM-03
#[test]
fn it_installs_templates_and_every_old_name() {
    let project = TestProject::bare();
    let result = project.liza(&["setup", "--json"]).result();
    assert_eq!(result["written"].as_array().unwrap().len(), NAMES.len() + 6);
    let folder = project.home().join(".liza");
    for name in NAMES {
        let target = fs::read_link(folder.join("scripts").join(name)).unwrap();
        assert_eq!(target, fs::canonicalize(env!("CARGO_BIN_EXE_liza")).unwrap(), "{name}");
    }
    let texts = ["CORE.md", "PAIRING_MODE.md", "MULTI_AGENT_MODE.md", "templates/vision-template.md"];
    for name in texts {
        assert!(fs::read_to_string(folder.join(name)).unwrap().starts_with("# "), "{name}");
    }
    let again = project.liza(&["setup"]);
    assert!(again.ok().contains("is up to date"), "{}", again.stdout);
    assert!(again.stdout.contains("liza init \"GOAL\""), "{}", again.stdout);
    // A home folder with ~/.liza is not a project.
    let mut program = project.program();
    let run = project.run(program.args(["goal", "--json"]).current_dir(project.home()));
    run.refused(1, "no_project");
}

/// Covers: CM-07
#[test]
fn changed_files_are_kept_unless_forced() {
    let project = TestProject::bare();
    project.liza(&["setup"]).ok();
    let folder = project.home().join(".liza");
    let (vision, script) = (folder.join("templates/vision-template.md"), folder.join("scripts/wt-create.sh"));
    fs::write(&vision, "mine").unwrap();
    fs::remove_file(&script).unwrap();
    fs::write(&script, "#!/bin/sh\n").unwrap();
    // A link to a program that no longer exists is updated.
    let moved = folder.join("scripts/wt-merge.sh");
    fs::remove_file(&moved).unwrap();
    symlink("/nowhere/liza", &moved).unwrap();
    let text = project.liza(&["setup"]).ok().to_owned();
    assert!(text.contains("templates/vision-template.md, scripts/wt-create.sh"), "{text}");
    assert_eq!(fs::read_to_string(&vision).unwrap(), "mine");
    assert!(moved.exists());
    project.liza(&["setup", "--force"]).ok();
    assert!(fs::read_to_string(&vision).unwrap().starts_with("# Vision"));
    assert!(fs::read_link(&script).is_ok());
}

/// Covers: CM-07, CM-05
#[test]
fn a_missing_home_and_an_unwritable_folder_are_reported() {
    let project = TestProject::bare();
    let mut program = project.program();
    project.run(program.args(["setup", "--json"]).env_remove("HOME")).refused(1, "no_home");
    project.liza_as("coder-1", &["setup", "--json"]).refused(1, "not_permitted");
    fs::write(project.home().join(".liza"), "a file").unwrap();
    let error = project.liza(&["setup", "--json"]).refused(1, "io");
    assert!(error["message"].as_str().unwrap().contains("/.liza"), "{error}");
}

/// Covers: CM-01
#[test]
fn the_old_names_do_what_the_scripts_did() {
    let project = TestProject::bare();
    project.liza(&["setup"]).ok();
    let old = |name: &str| project.command(project.home().join(".liza/scripts").join(name));
    project.run(old("liza-init.sh").arg("Implement retry logic")).ok();
    assert!(project.state().contains("Implement retry logic"));
    let task = ["--id", "task-3", "--desc", "d", "--spec", "specs/vision.md", "--done", "x", "--scope", "y"];
    project.run(old("liza-add-task.sh").args(task).env("LIZA_AGENT_ID", "planner-1")).ok();
    assert_eq!(project.run(&mut old("liza-validate.sh")).ok().trim(), "VALID");
    project.run(&mut old("update-sprint-metrics.sh")).ok();
    project.run(&mut old("clear-stale-review-claims.sh")).ok();
    // From another folder, with the project as the argument.
    project.run(old("liza-checkpoint.sh").arg(&project.root).current_dir(project.home())).ok();
    assert!(project.root.join(".liza/CHECKPOINT").exists());
    let run = project.run(old("liza-checkpoint.sh").arg("--help"));
    assert!(run.ok().contains("liza checkpoint"), "{}", run.stdout);
}

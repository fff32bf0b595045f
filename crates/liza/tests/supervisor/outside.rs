//! Worktrees outside of the project: no tool of the person that walks through the project meets agents' files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use liza_core::model::Status;
use liza_host::worktrees::worktrees_folder;

use crate::fixture::{Bench, CODER, REVIEWER};
use crate::support::TestProject;

/// A test that the agent leaves in its worktree for the person's test runner.
const PLANTED: &str = r#"
echo 'require("node:fs").writeFileSync(require("node:os").homedir() + "/ran", "")' > planted.test.js
"#;

/// Runs the person's own `node --test` in the root of the project; true if the agent's test ran.
fn runs_planted_test(bench: &Bench) -> bool {
    let (root, home) = (&bench.project.root, bench.home());
    let output = Command::new("node").arg("--test").current_dir(root).env("HOME", home).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("# fail 0"), "{output:?}");
    fs::remove_file(home.join("ran")).is_ok()
}

fn needs_node() -> bool {
    Command::new("node").arg("--version").output().is_ok()
}

/// Covers: RO-03
#[test]
fn needs_node_a_test_runner_of_the_project_meets_no_file_of_an_agent() {
    assert!(needs_node(), "node is missing");
    for (place, ran) in [("inside", true), ("outside", false)] {
        let bench = Bench::new("sandbox: auto", &[("c", &format!("{PLANTED}exit 1"))]);
        fs::write(bench.project.root.join("own.test.js"), "require('node:test')('own', () => {})").unwrap();
        bench.project.liza(&["config", "worktrees", place]).ok();
        bench.project.add_task("t1");
        bench.agent(&["coder", "t1", "--cli", "c", "--once"]).wait();
        assert!(bench.tree("t1").join("planted.test.js").is_file(), "{}", bench.outputs());
        assert_eq!(runs_planted_test(&bench), ran, "{place}");
        assert_eq!(bench.project.root.join(".worktrees").symlink_metadata().is_ok(), ran, "no link is there");
    }
}

/// Says where a session works, and what is at the place that the documents name.
const LOOK: &str = r#"
root=$(sed 's|/.git/objects$||' .git/objects/info/alternates)
[ "$root/.worktrees/$1/f" -ef f ] && echo "LOOK same files"
[ -e "$root/.worktrees" ] || echo "LOOK nothing there"
ls "${PWD%/*}" > /dev/null 2>&1 || echo "LOOK no other worktree"
echo x > "${PWD%/*}/planted" || echo "LOOK no file beside it"
echo "LOOK at $PWD"
echo "LOOK checked in $("$LIZA" check -- pwd)"
git config core.fsmonitor "$HOME/monitor"
"#;

/// Covers: RO-03
#[test]
#[cfg(target_os = "linux")]
fn a_task_goes_from_claim_to_merge_with_its_worktree_outside() {
    for (config, documented) in [
        ("sandbox: auto", "LOOK same files"),
        ("sandbox: auto\nsandbox_max_abi: 100", "LOOK nothing there"),
        ("sandbox: off", "LOOK nothing there"),
    ] {
        let coder = format!("touch f\n{LOOK}rm f\n{CODER}");
        let bench = Bench::new(config, &[("c", &coder), ("r", REVIEWER)]);
        let [monitor, ran] = ["monitor", "monitored"].map(|name| bench.home().join(name));
        fs::write(&monitor, "#!/bin/sh\n: > \"$HOME/monitored\"\n").unwrap();
        fs::set_permissions(&monitor, fs::Permissions::from_mode(0o755)).unwrap();
        bench.project.liza(&["config", "worktrees", "outside"]).ok();
        bench.project.add_task("t1");
        bench.agent(&["coder", "t1", "--cli", "c", "--once"]).wait();
        assert_eq!(bench.status("t1"), Status::ReadyForReview, "{}", bench.outputs());
        // Where nothing is confined, the session's own git has run it.
        let _ = fs::remove_file(&ran);
        bench.project.git_at(&bench.tree("t1"), &["status"]);
        assert!(!ran.exists(), "{config}: a git prompt starts nothing");
        let tree = bench.tree("t1");
        assert!(!tree.starts_with(&bench.project.root) && tree.is_dir(), "{}", tree.display());
        let mode = fs::metadata(tree.parent().unwrap()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let said = bench.outputs();
        assert!(said.contains(documented), "{config}: {said}");
        assert!(said.contains(&format!("LOOK at {}", tree.display())), "{said}");
        let is_copied = !said.contains(&format!("LOOK checked in {}", tree.display()));
        assert!(said.contains("LOOK checked in /") && is_copied, "{config}: {said}");
        let is_confined = !config.contains("off");
        let closed = ["LOOK no other worktree", "LOOK no file beside it"];
        assert!(!is_confined || closed.iter().all(|line| said.contains(line)), "{config}: {said}");
        // A person there is in the project, and reads the change.
        let shown = bench.project.liza(&["-C", tree.to_str().unwrap(), "diff", "t1"]).ok().to_owned();
        assert!(shown.contains("work on t1"), "{shown}");
        bench.agent(&["code-reviewer", "--cli", "r", "--once"]).wait();
        assert_eq!(bench.status("t1"), Status::Merged, "{}", bench.outputs());
        assert!(!tree.exists(), "it is gone after the merge");
        bench.check_valid();
        assert!(!bench.project.root.join(".worktrees").exists());
        bench.project.liza(&["remove", "--yes"]).ok();
        let is_left = bench.home().join(".local/state/liza").exists();
        assert_eq!(is_left, !is_confined, "only what a session without confinement left beside it");
    }
}

/// Covers: RO-03
#[test]
fn a_moved_project_goes_on_in_its_worktrees_outside() {
    let begin = "git commit --allow-empty -qm begun; exit 1";
    let mut bench = Bench::new("sandbox: auto", &[("b", begin), ("c", CODER), ("r", REVIEWER)]);
    bench.project.liza(&["config", "worktrees", "outside"]).ok();
    bench.project.add_task("t1");
    bench.agent(&["coder", "t1", "--cli", "b", "--once"]).wait();
    let tree = bench.tree("t1");
    let moved = bench.home().canonicalize().unwrap().join("elsewhere");
    fs::rename(&bench.project.root, &moved).unwrap();
    bench.project.root = moved;
    assert_eq!(bench.tree("t1"), tree);
    bench.agent(&["coder", "t1", "--cli", "c", "--once"]).wait();
    assert_eq!(bench.status("t1"), Status::ReadyForReview, "{}", bench.outputs());
    bench.agent(&["code-reviewer", "--cli", "r", "--once"]).wait();
    assert_eq!(bench.status("t1"), Status::Merged, "{}", bench.outputs());
    let subjects = bench.project.git(&["log", "--format=%s", "integration"]);
    assert!(subjects.contains("begun") && !tree.exists(), "{subjects}");
}

/// Covers: RO-03
#[test]
fn the_place_of_worktrees_changes_only_while_there_are_none() {
    let bench = Bench::new("sandbox: auto", &[]);
    let project = &bench.project;
    let outside = || !worktrees_folder(&project.root).starts_with(&project.root);
    project.add_task("t1");
    project.liza(&["register", "coder-1"]).ok();
    let claimed = project.liza(&["claim-task", "t1", "coder-1"]).ok().to_owned();
    assert!(claimed.contains("worktree .worktrees/t1"), "{claimed}");
    let error = project.liza(&["config", "worktrees", "outside", "--json"]).refused(1, "worktrees_in_use");
    assert!(error["message"].as_str().unwrap().contains("t1"), "{error}");
    assert!(!outside());
    // Written elsewhere, it waits: no worktree is lost sight of.
    project.set_config("worktrees", "outside");
    let doctor = project.liza(&["doctor"]).stdout;
    assert!(doctor.contains("still below the project"), "{doctor}");
    project.liza(&["release-claim", "t1", "--force", "--reason", "a test"]).ok();
    assert!(!bench.tree("t1").exists());
    project.liza(&["config", "worktrees", "outside"]).ok();
    assert!(outside());
    let claimed = project.liza(&["claim-task", "t1", "coder-1"]).ok().to_owned();
    assert!(claimed.contains(&bench.tree("t1").display().to_string()), "{claimed}");
    project.liza(&["config", "worktrees", "--unset", "--json"]).refused(1, "worktrees_in_use");
    assert!(outside());
}

/// Covers: RO-03
#[test]
fn init_keeps_worktrees_outside_where_a_tool_would_collect_agents_files() {
    let project = TestProject::bare();
    let package = r#"{"scripts": {"test": "node --test"}}"#;
    fs::write(project.root.join("package.json"), package).unwrap();
    let said = project.liza(&["init", "a goal"]).ok().to_owned();
    assert!(said.contains("node --test would collect the agents' files"), "{said}");
    assert!(!worktrees_folder(&project.root).starts_with(&project.root));
    let doctor = project.liza(&["doctor"]).stdout;
    assert!(!doctor.contains("place of worktrees") && !doctor.contains("checkouts of agents"), "{doctor}");
    project.liza(&["config", "worktrees", "inside"]).ok();
    let doctor = project.liza(&["doctor"]).stdout;
    assert!(doctor.contains("node --test collects files below .worktrees"), "{doctor}");
    assert!(doctor.contains("liza config worktrees outside"), "{doctor}");
}

//! `liza init`.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::support::TestProject;

/// Everything in the root except git and the specifications.
fn left(project: &TestProject) -> Vec<String> {
    let names = fs::read_dir(&project.root).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name != ".git" && name != "specs").collect()
}

fn excluded(project: &TestProject) -> String {
    fs::read_to_string(project.root.join(".git/info/exclude")).unwrap_or_default()
}

/// Covers: BB-15, BB-01, BB-02, BB-12, CM-03
#[test]
fn it_writes_the_whole_schema_the_log_the_branch_and_the_excludes() {
    let project = TestProject::bare();
    let run = project.liza(&["init", "Retry everything", "--json"]);
    let result = run.result();
    assert_eq!(run.json()["revision"], 1);
    assert_eq!((&result["goal"], &result["sprint"]), (&"goal-1".into(), &"sprint-1".into()));
    assert_eq!(result["warnings"], serde_json::json!([]));
    let state = project.state();
    let sections = [
        "version: 1",
        "goal:",
        "tasks:",
        "agents:",
        "discovered:",
        "handoff:",
        "human_notes:",
        "spec_changes:",
        "anomalies:",
        "sprint:",
        "circuit_breaker:",
        "config:",
    ];
    for section in sections {
        assert!(state.lines().any(|line| line.starts_with(section)), "{section}: {state}");
    }
    for fact in ["goal_ref: goal-1", "event: initialization"] {
        assert!(state.contains(fact), "{fact}: {state}");
    }
    assert_eq!(project.log().matches("action:").count(), 1);
    assert!(project.log().contains("action: goal_created"));
    assert_eq!(project.git(&["rev-parse", "integration"]), project.git(&["rev-parse", "HEAD"]));
    assert_eq!(project.git(&["status", "--short"]), "");
    assert!(excluded(&project).contains("/.liza/\n/.worktrees/\n"));
    assert_eq!(project.liza(&["validate"]).ok().trim(), "VALID");
}

/// Covers: BB-15, UI-11
#[test]
fn it_writes_only_the_settings_that_differ_from_the_default() {
    // The level depends on the machine.
    let settings = |project: &TestProject| {
        let state = project.state();
        let lines = state.split_once("\nconfig:").unwrap().1.lines().map(str::trim);
        lines.filter(|line| !["", "{}", "sandbox_min: isolated"].contains(line)).collect::<Vec<_>>().join(";")
    };
    let project = TestProject::bare();
    project.liza(&["init", "Retry"]).ok();
    assert_eq!(settings(&project), "main_branch: main");
    let get = |key: &str| project.liza(&["get", &format!(".config.{key}")]).ok().to_owned();
    assert_eq!(get("integration_branch"), "integration\n");
    assert_eq!(get("lease_duration"), "300\n");
    assert_eq!(get("sandbox"), "auto\n");

    let other = TestProject::bare();
    other.git(&["checkout", "-q", "--detach"]);
    other.liza(&["init", "Retry"]).ok();
    assert_eq!(settings(&other), "");
    other.liza(&["config", "lease_duration", "60"]).ok();
    assert_eq!(settings(&other), "lease_duration: 60");
    other.liza(&["config", "lease_duration", "--unset"]).ok();
    assert_eq!(settings(&other), "");
    assert_eq!(other.liza(&["validate"]).ok(), "VALID\n");
}

/// Covers: RO-08
#[test]
#[cfg(target_os = "linux")]
fn where_sessions_have_rooms_a_new_project_asks_for_them() {
    let project = TestProject::bare();
    project.liza(&["init", "Retry"]).ok();
    let minimum =
        |project: &TestProject| project.liza(&["get", ".config.sandbox_min"]).ok().trim().to_owned();
    let doctor = || {
        let said = project.liza(&["doctor"]).stdout;
        let mut lines = said.lines().skip_while(|line| !line.contains(" confinement "));
        format!("{}\n{}", lines.next().unwrap_or_default(), lines.next().unwrap_or_default())
    };
    let is_isolated = doctor().contains(" isolated; ");
    assert_eq!(minimum(&project), if is_isolated { "isolated" } else { "restricted" });
    assert!(is_isolated, "no room here: {}", doctor());
    // The same project where there are none.
    project.liza(&["config", "sandbox_max_abi", "100"]).ok();
    assert!(doctor().contains("its sessions had rooms"), "{}", doctor());
    project.liza(&["config", "sandbox", "require"]).ok();
    let said = doctor();
    assert!(said.starts_with("fail") && said.contains("liza config sandbox_min restricted"), "{said}");
    // A project that was made before there were rooms.
    project.liza(&["config", "sandbox_max_abi", "--unset"]).ok();
    project.liza(&["config", "sandbox_min", "--unset"]).ok();
    let said = doctor();
    assert!(said.starts_with("ok") && said.contains("liza config sandbox_min isolated"), "{said}");
}

/// Covers: BB-15
#[test]
fn it_prints_where_the_blackboard_is_and_what_to_do_next() {
    let run = TestProject::bare().liza(&["init", "Retry everything"]);
    let text = run.ok();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("blackboard") && lines[0].ends_with("/project/.liza"), "{text}");
    assert_eq!(
        lines[1..],
        [
            "integration branch  integration",
            "integration test    none; to test every merge, write scripts/integration-test.sh",
            "next                liza run; add a task of your own: liza add \"TEXT\"",
        ]
    );
    assert_eq!(run.stderr, "");
}

/// Covers: BB-15
#[test]
fn the_branch_and_the_spec_can_be_chosen() {
    let project = TestProject::bare();
    project.write("specs/retry.md", "# Retry\n");
    project.liza(&["init", "Retry", "--spec", "specs/retry.md#core", "--branch", "team/next"]).ok();
    assert!(project.state().contains("spec_ref: specs/retry.md#core"));
    assert!(project.state().contains("integration_branch: team/next"));
    project.git(&["rev-parse", "--verify", "team/next"]);

    let other = TestProject::bare();
    other.write("specs/retry.md", "# Retry\n");
    other.liza(&["init", "Retry", "specs/retry.md"]).ok();
    assert!(other.state().contains("spec_ref: specs/retry.md"));
}

/// Covers: BB-15
#[test]
fn an_existing_integration_branch_does_not_move() {
    let project = TestProject::bare();
    project.git(&["branch", "integration"]);
    let before = project.git(&["rev-parse", "integration"]);
    project.git(&["commit", "-q", "--allow-empty", "-m", "more"]);
    project.liza(&["init", "Retry", "--adopt"]).ok();
    assert_eq!(project.git(&["rev-parse", "integration"]), before);
}

/// Covers: BB-15
#[test]
fn a_named_spec_must_exist_and_a_missing_default_is_a_warning() {
    let project = TestProject::bare();
    project.liza(&["init", "Retry", "--spec", "specs/none.md", "--json"]).refused(1, "missing_spec");
    project.liza(&["init", "Retry", "--spec", "../x.md", "--json"]).refused(1, "bad_spec");
    assert_eq!(left(&project), [""; 0]);
    fs::remove_file(project.root.join("specs/vision.md")).unwrap();
    let run = project.liza(&["init", "Retry"]);
    run.ok();
    assert!(
        run.stderr.contains("specs/vision.md does not exist: the planner plans from the goal alone"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("liza init --template"), "{}", run.stderr);
    // The suggested command works.
    assert!(project.liza(&["init", "--template"]).ok().contains("created from the template"));
    assert!(project.read("specs/vision.md").starts_with("# Vision: Retry\n"));
    project.liza(&["init", "--template", "--json"]).refused(1, "exists");
}

/// Covers: BB-15
#[test]
fn a_template_never_replaces_a_vision() {
    let project = TestProject::bare();
    let before = project.read("specs/vision.md");
    project.liza(&["init", "Retry", "--template"]).ok();
    assert_eq!(project.read("specs/vision.md"), before);

    let other = TestProject::bare();
    other.liza(&["init", "Retry", "--spec", "docs/goal/why.md", "--template"]).ok();
    assert!(other.read("docs/goal/why.md").starts_with("# Vision"));
}

/// Covers: BB-15
#[test]
fn without_a_goal_init_warns_that_the_planner_waits() {
    let project = TestProject::bare();
    let run = project.liza(&["init"]);
    run.ok();
    assert!(run.stderr.contains("the planner waits because there is no goal"), "{}", run.stderr);
    let next = "next                liza goal new \"GOAL\", then liza run\n";
    assert!(run.stdout.ends_with(next), "{}", run.stdout);
    assert!(project.state().contains("description: \"\""), "{}", project.state());
    // The suggested command states the first goal, not a second one.
    let stated = project.liza(&["goal", "new", "Retry everything", "--json"]).result();
    assert_eq!(stated["goal"], "goal-1");
    assert!(project.state().contains("id: sprint-1"));
    assert_eq!(project.liza(&["validate"]).ok().trim(), "VALID");
}

/// Covers: BB-15
#[test]
fn an_existing_blackboard_is_refused_and_not_changed() {
    let project = TestProject::new();
    let before = project.state();
    let error = project.liza(&["init", "Another", "--json"]).refused(1, "exists");
    assert!(error["hint"].as_str().unwrap().contains("liza goal new"), "{error}");
    assert_eq!(project.state(), before);

    let odd = TestProject::bare();
    odd.write(".liza/notes.txt", "mine\n");
    odd.liza(&["init", "Another", "--json"]).refused(1, "exists");
    assert_eq!(left(&odd), [".liza"]);
}

/// Covers: BB-15, CM-05
#[test]
fn outside_a_repository_and_before_the_first_commit_the_error_has_a_fix() {
    let project = TestProject::bare();
    let outside = project.home().join("elsewhere");
    fs::create_dir(&outside).unwrap();
    let mut program = project.program();
    let run = project.run(program.args(["init", "x"]).current_dir(&outside));
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("elsewhere is not in a git repository\n  hint: "), "{}", run.stderr);
    assert!(run.stderr.contains("git init"), "{}", run.stderr);
    let status = project.run(project.program().arg("status").current_dir(&outside));
    assert!(status.stderr.contains("hint: this folder is not in a git repository"), "{}", status.stderr);
    project.git_at(&outside, &["init", "-q"]);
    let mut program = project.program();
    let run = project.run(program.args(["init", "x"]).current_dir(&outside));
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("has no commit yet\n  hint: "), "{}", run.stderr);
    // An empty first commit would give the agents nothing of what is there.
    assert!(run.stderr.contains("git add --all && git commit"), "{}", run.stderr);
    let status = project.run(project.program().arg("status").current_dir(&outside));
    assert!(status.stderr.contains("hint: this repository has no commit yet"), "{}", status.stderr);
    assert!(!outside.join(".liza").exists());
}

/// Covers: BB-15, UI-05
#[test]
fn uncommitted_changes_are_named_because_agents_do_not_see_them() {
    let project = TestProject::bare();
    project.write("specs/vision.md", "# Vision\n\nNot committed, but agents read it.\n");
    let run = project.liza(&["init", "Retry"]);
    run.ok();
    assert_eq!(run.stderr, "");

    let project = TestProject::bare();
    project.write("notes.txt", "mine\n");
    let run = project.liza(&["init", "Retry"]);
    run.ok();
    assert!(run.stderr.contains("1 file with uncommitted changes"), "{}", run.stderr);
    assert!(run.stderr.contains("commit them, then liza sync"), "{}", run.stderr);
}

/// Covers: BB-15
#[test]
fn a_failure_leaves_nothing_behind() {
    let project = TestProject::bare();
    // Git cannot have a branch `integration` beside `integration/x`.
    project.git(&["branch", "integration/x"]);
    fs::remove_dir_all(project.root.join("specs")).unwrap();
    let before = excluded(&project);
    let run = project.liza(&["init", "Retry", "--template"]);
    assert_eq!(run.code, 3, "{run:#?}");
    assert_eq!((left(&project), excluded(&project)), (Vec::new(), before));
    assert!(!project.root.join("specs").exists());

    // A later step fails: the branch is removed again.
    let project = TestProject::bare();
    fs::remove_dir_all(project.root.join(".git/info")).unwrap();
    fs::write(project.root.join(".git/info"), "in the way").unwrap();
    fs::remove_dir_all(project.root.join("specs")).unwrap();
    assert_ne!(project.liza(&["init", "Retry", "--template"]).code, 0);
    assert_eq!(left(&project), [""; 0]);
    assert!(!project.root.join("specs").exists());
    assert_eq!(project.git(&["branch", "--list", "integration"]), "");
}

/// Covers: BB-15
#[test]
fn the_next_init_removes_what_a_killed_one_left() {
    let project = TestProject::bare();
    project.write(".liza-init/.liza/state.yaml", "version: 1\n");
    project.liza(&["init", "Retry"]).ok();
    assert_eq!(left(&project), [".liza"]);
}

/// Covers: BB-15
#[test]
fn of_many_concurrent_inits_one_succeeds() {
    let project = TestProject::bare();
    let start = |_| project.program().args(["init", "Retry", "-q"]).stderr(Stdio::null()).spawn().unwrap();
    let children: Vec<Child> = (0..8).map(start).collect();
    let codes = children.into_iter().map(|mut child| child.wait().unwrap().code().unwrap());
    let won = codes.filter(|code| *code == 0).count();
    assert_eq!((won, left(&project)), (1, vec![".liza".to_owned()]));
    assert_eq!(project.liza(&["validate"]).ok().trim(), "VALID");
}

/// Covers: BB-15
#[test]
fn a_kill_at_any_time_leaves_a_complete_blackboard_or_none() {
    let project = TestProject::bare();
    for wait in 0..25 {
        let mut child =
            project.program().args(["init", "Retry", "-q"]).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(2 * wait));
        child.kill().unwrap();
        child.wait().unwrap();
        if project.root.join(".liza").exists() {
            assert_eq!(project.liza(&["validate"]).ok().trim(), "VALID");
            fs::remove_dir_all(project.root.join(".liza")).unwrap();
        }
    }
    project.liza(&["init", "Retry"]).ok();
    assert_eq!(left(&project), [".liza"]);
}

/// Covers: BB-15, CM-05
#[test]
fn a_read_only_folder_is_refused_and_not_changed() {
    let project = TestProject::bare();
    let owner = if rustix::process::geteuid().is_root() { Some(65_534) } else { None };
    let config = fs::read_to_string(project.home().join("gitconfig")).unwrap();
    fs::write(project.home().join("gitconfig"), config + "[safe]\ndirectory = *\n").unwrap();
    for folder in [project.home(), project.root.as_path()] {
        fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
    }
    let mut program = project.program();
    if let Some(owner) = owner {
        // Root may write everywhere; other users may not.
        program.uid(owner).gid(owner);
    }
    let run = project.run(program.args(["init", "Retry", "--json"]));
    for folder in [project.home(), project.root.as_path()] {
        fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let error = run.refused(1, "io");
    assert!(error["message"].as_str().unwrap().contains("Permission denied"), "{error}");
    assert_eq!(left(&project), [""; 0]);
    assert_eq!(project.git(&["branch", "--list", "integration"]), "");
}

/// Covers: BB-15, CM-06
#[test]
fn in_a_sub_folder_the_blackboard_goes_to_the_root_of_the_repository() {
    let project = TestProject::at("mit Leerzeichen & ü");
    fs::create_dir_all(project.root.join("src/deep")).unwrap();
    project.liza(&["-C", "src/deep", "init", "Retry"]).ok();
    assert!(project.root.join(".liza/state.yaml").exists());
    assert!(!project.root.join("src/deep/.liza").exists());
}

/// Covers: AG-12
#[test]
fn an_agent_may_not_init() {
    let project = TestProject::bare();
    project.liza_as("coder-1", &["init", "Retry", "--json"]).refused(1, "not_permitted");
    project.liza(&["init", "x", "--branch", "a..b", "--json"]).refused(1, "bad_branch");
    assert_eq!(left(&project), [""; 0]);
}

/// Covers: BB-15
#[test]
fn the_test_command_of_the_project_becomes_the_integration_test_on_request() {
    let project = TestProject::bare();
    project.write("go.mod", "module x\n");
    let run = project.liza(&["init", "Retry everything"]);
    assert!(run.ok().contains("none; to run go test ./... before every merge: liza init --test"), "{run:#?}");
    let run = project.liza(&["init", "--test"]);
    let written = "is written: it runs go test ./... before every merge; commit it";
    assert!(run.stdout.contains(written), "{run:#?}");
    assert!(project.read("scripts/integration-test.sh").ends_with("set -e\ngo test ./...\n"));
    project.run(project.command("test").args(["-x", "scripts/integration-test.sh"])).ok();
    // The second time it is only tried.
    let again = project.liza(&["init", "--test"]);
    let kept = "scripts/integration-test.sh is yours and stays as it is";
    assert!(again.stdout.starts_with(kept), "{again:#?}");
    let other = TestProject::bare();
    other.liza(&["init", "x", "--test", "--json"]).refused(1, "no_test_command");
    assert!(!other.root.join(".liza").exists());
    other.write("Makefile", "test:\n\ttrue\n");
    other.git(&["add", "."]);
    other.git(&["commit", "-qm", "tests"]);
    let run = other.liza(&["init", "x", "--test"]);
    assert!(
        run.ok().contains("is written: it runs make test before every merge; commit it, then: liza sync"),
        "{run:#?}"
    );
}

/// A project that is tested with pytest, whose environment is here but in no commit.
fn python(ignored: &str) -> TestProject {
    let project = TestProject::bare();
    project.write("pytest.ini", "");
    project.write(".gitignore", ignored);
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "python"]);
    project.write(".venv/bin/python", "#!/bin/sh\necho ran \"$@\"\n");
    project.run(project.command("chmod").args(["755", ".venv/bin/python"])).ok();
    project
}

/// Covers: AX-21
#[test]
fn the_proposed_test_is_tried_once_as_before_a_merge_with_the_proposed_settings() {
    let project = python(".venv\n");
    let run = project.liza(&["init", "Retry everything"]);
    let proposal = "dependencies        to have them in every new checkout: liza config copy '[.venv]'";
    assert!(run.ok().contains(proposal) && !run.stdout.contains("tried once"), "{run:#?}");
    let before = project.state();
    let run = project.liza(&["init", "--test"]);
    assert!(run.ok().contains("it runs .venv/bin/python -m pytest before every merge"), "{run:#?}");
    assert!(run.stdout.contains(proposal), "{run:#?}");
    let passed = "tried once          it passes in a new checkout with these settings";
    assert!(run.stdout.contains(passed), "{run:#?}");
    assert_eq!(project.read(".liza/integration-tests/trial-1.log"), "ran -m pytest\n");
    assert_eq!(project.state(), before, "a proposal is no setting");
    assert_eq!(project.git(&["status", "--porcelain"]).trim(), "?? scripts/");
    let left = fs::read_dir(project.root.join(".worktrees")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "no checkout is left");
    project.liza(&["config", "copy", "[.venv]"]).ok();
    let run = project.liza(&["init", "--test"]);
    assert!(run.ok().ends_with("tried once          it passes in a new checkout\n"), "{run:#?}");
}

/// Covers: AX-21
#[test]
fn tests_that_would_judge_the_persons_code_by_an_active_environment_are_named() {
    let project = python("env\n");
    let root = project.root.canonicalize().unwrap();
    project.write("env/bin/pytest", "");
    project.write("env/lib/python3.14/site-packages/cart.pth", &format!("{}\n", root.display()));
    project.write("scripts/integration-test.sh", "pytest\n");
    let said = |words: &[&str], active: bool| {
        let mut program = project.program();
        let active = active.then(|| ("VIRTUAL_ENV", root.join("env")));
        let run = project.run(program.args(words).envs(active));
        run.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let problem = "the tests call pytest, which your active environment";
    let remedy = "env/bin/python -m pytest, and bring it there: liza config copy '[env]'";
    for words in [&["init", "Retry everything"][..], &["doctor"]] {
        let active = said(words, true);
        assert!(active.contains(problem) && active.contains(remedy), "{words:?}: {active}");
    }
    assert!(!said(&["doctor"], false).contains(problem));
}

/// Covers: AX-21
#[test]
fn a_tried_test_that_fails_says_what_is_missing() {
    let advice =
        "A new checkout has only what is committed, what config.copy names and what config.setup installs";
    let project = python("");
    let run = project.liza(&["init", "Retry everything", "--test"]);
    let why = "it fails in a new checkout with these settings: config.copy: .venv: git does not ignore it";
    assert!(run.code == 1 && run.stdout.contains(why) && run.stdout.contains(advice), "{run:#?}");
    fs::remove_dir_all(project.root.join(".venv")).unwrap();
    let run = project.liza(&["init", "--test", "--json"]);
    let result = &run.json()["result"];
    let trial = &result["trial"];
    assert_eq!((&trial["passed"], &result["written"]), (&false.into(), &serde_json::Value::Null), "{trial}");
    assert_eq!(trial["failure"]["what"], "integration test failed with exit status 127");
    assert!(trial["failure"]["last_lines"][0].as_str().unwrap().contains("not found"), "{trial}");
    // The command of a set-up, with its own output. No checkout of the team has failed, so it is no alarm.
    project.liza(&["config", "setup", "echo no network; exit 3"]).ok();
    let run = project.liza(&["init", "--test"]);
    assert!(run.code == 1 && run.stdout.contains("exited 3"), "{run:#?}");
    assert!(run.stdout.contains("  | no network\n  all of its output"), "{run:#?}");
    project.liza(&["config", "setup", "seq 1 30; exit 3"]).ok();
    let run = project.liza(&["init", "--test"]);
    let shown: Vec<&str> = run.stdout.lines().filter_map(|line| line.strip_prefix("  | ")).collect();
    assert_eq!(shown.join(" "), "1 2 3 4 … 23 24 25 26 27 28 29 30", "{run:#?}");
    assert!(!project.liza(&["status"]).ok().contains("SETUP FAILED"));
}

/// Covers: AX-21
#[test]
fn no_command_that_fails_is_proposed_if_there_is_no_test_command() {
    let project = TestProject::bare();
    project.write("package.json", "{}");
    let texts = [project.liza(&["init", "x"]), project.liza(&["status"]), project.liza(&["doctor"])];
    for said in texts.map(|run| run.stdout) {
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("write scripts/integration-test.sh"), "{said}");
        assert!(!said.contains("liza init --test"), "{said}");
    }
    let error = project.liza(&["init", "--test", "--json"]).refused(1, "no_test_command");
    assert!(error["message"].as_str().unwrap().contains("no script \"test\" in package.json"), "{error}");
    project.write("scripts/integration-test.sh", "echo fine\n");
    assert!(project.liza(&["init", "--test"]).ok().contains("it passes in a new checkout"));
}

/// The target of a link in the root.
fn link(project: &TestProject, name: &str) -> Option<std::path::PathBuf> {
    fs::read_link(project.root.join(name)).ok()
}

const LINKS: [&str; 3] = ["CLAUDE.md", "AGENTS.md", "GEMINI.md"];

/// Covers: UI-10, BB-15
#[test]
fn init_and_setup_leave_the_files_of_agent_programs_alone() {
    let project = TestProject::bare();
    project.liza(&["setup"]).ok();
    project.liza(&["init", "Retry everything"]).ok();
    project.liza(&["setup"]).ok();
    assert!(LINKS.iter().all(|name| project.root.join(name).symlink_metadata().is_err()));
    assert!(LINKS.iter().all(|name| !excluded(&project).contains(name)));
}

/// Covers: UI-10, CM-07
#[test]
fn missing_contract_files_become_links_on_request_excluded_from_git() {
    let project = TestProject::bare();
    project.liza(&["init", "Retry everything"]).ok();
    let core = project.home().join(".liza/CORE.md");
    let result = project.liza(&["setup", "--link", "--json"]).result();
    assert_eq!(result["linked"]["made"], serde_json::json!(LINKS));
    assert_eq!(result["linked"]["to"], core.to_str().unwrap());
    for name in LINKS {
        assert_eq!(link(&project, name).as_ref(), Some(&core), "{name}");
        assert!(project.read(name).starts_with("# "), "{name} can be read");
    }
    assert_eq!(project.git(&["status", "--short"]), "");
    project.git(&["add", "--all"]);
    assert_eq!(project.git(&["diff", "--cached", "--name-only"]), "", "no commit catches them by surprise");
    // The worktree of a task does not have them either.
    project.add_task("t1");
    project.register("coder-1");
    project.liza_as("coder-1", &["claim-task", "t1", "coder-1"]).ok();
    assert!(project.root.join(".worktrees/t1/specs").exists());
    assert!(!project.root.join(".worktrees/t1/CLAUDE.md").exists());
    let result = project.liza(&["setup", "--unlink", "--json"]).result();
    assert_eq!(result["unlinked"], serde_json::json!(LINKS));
    assert!(LINKS.iter().all(|name| project.root.join(name).symlink_metadata().is_err()));
    assert!(LINKS.iter().all(|name| !excluded(&project).contains(name)));
}

/// Covers: CM-07, UI-10
#[test]
fn existing_files_of_the_project_are_never_touched() {
    let project = TestProject::bare();
    project.write("CLAUDE.md", "mine\n");
    // A dangling link is kept too.
    std::os::unix::fs::symlink("/nowhere", project.root.join("AGENTS.md")).unwrap();
    // Git tracks it, although the file is missing at the moment.
    project.write("GEMINI.md", "tracked\n");
    project.git(&["add", "GEMINI.md"]);
    project.git(&["commit", "-qm", "own"]);
    fs::remove_file(project.root.join("GEMINI.md")).unwrap();
    project.liza(&["init", "Retry everything"]).ok();
    let run = project.liza(&["setup", "--link"]);
    assert!(run.ok().contains("CLAUDE.md, AGENTS.md, GEMINI.md exist and are kept"), "{}", run.stdout);
    let run = project.liza(&["setup", "--unlink"]);
    assert!(run.ok().contains("no links to the contract"), "{}", run.stdout);
    assert_eq!(project.read("CLAUDE.md"), "mine\n");
    assert_eq!(link(&project, "AGENTS.md"), Some("/nowhere".into()));
    assert!(!project.root.join("GEMINI.md").exists());
    assert!(!excluded(&project).contains("CLAUDE.md"), "what is the project's is git's to see");
}

/// Covers: CM-07
#[test]
fn a_file_on_the_integration_branch_is_not_replaced_by_a_link() {
    let project = TestProject::bare();
    project.git(&["checkout", "-qb", "integration"]);
    project.write("AGENTS.md", "theirs\n");
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "own"]);
    project.git(&["checkout", "-q", "main"]);
    project.liza(&["init", "Retry everything", "--adopt"]).ok();
    let result = project.liza(&["setup", "--link", "--json"]).result();
    assert_eq!(result["linked"]["made"], serde_json::json!(["CLAUDE.md", "GEMINI.md"]));
    assert_eq!(result["linked"]["kept"], serde_json::json!(["AGENTS.md"]));
    project.git(&["checkout", "-q", "integration"]);
    assert_eq!(project.read("AGENTS.md"), "theirs\n");
}

/// Covers: CM-07
#[test]
fn links_point_to_the_projects_own_contract_if_there_is_one() {
    let project = TestProject::bare();
    project.write("contracts/CORE.md", "# Ours\n");
    project.liza(&["init", "Retry everything"]).ok();
    project.liza(&["setup", "--link"]).ok();
    assert_eq!(link(&project, "CLAUDE.md"), Some("contracts/CORE.md".into()));
    assert_eq!(project.read("CLAUDE.md"), "# Ours\n");
}

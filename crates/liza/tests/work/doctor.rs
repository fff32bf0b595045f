//! doctor: what it finds, the fix that it names, and what it fixes itself.

use std::fs;

use serde_json::Value;

use crate::fixture::*;
use crate::remote::{on_remote, remote_head, shared};
use crate::support::{Run, TestProject};

/// One check of `doctor --json`.
#[track_caller]
fn check(run: &Run, name: &str) -> Value {
    let checks = run.json()["result"]["checks"].clone();
    let found = checks.as_array().unwrap().iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {checks}")).clone()
}

/// Covers: CM-03, CM-05
#[test]
fn a_healthy_project_is_reported_as_healthy() {
    let project = team();
    claimed(&project, "one", "coder-1");
    let run = project.liza(&["doctor", "--json"]);
    assert_eq!(run.result()["healthy"], true);
    for name in
        ["git", "repository", "identity", "disk space", "blackboard", "integration branch", "worktrees"]
    {
        assert_eq!(check(&run, name)["health"], "ok", "{name}");
    }
    let text = project.liza(&["doctor"]).ok().to_owned();
    assert!(text.contains("ok    git "), "{text}");
}

/// Covers: CM-05
#[test]
fn problems_are_reported_with_their_fix_and_fixed_on_request() {
    let project = team();
    claimed(&project, "one", "coder-1");
    fs::remove_dir_all(project.tree("one")).unwrap();
    project.git(&["branch", "-qD", "integration"]);
    project.write(".git/info/exclude", "");
    fs::remove_file(project.root.join("specs/vision.md")).unwrap();
    let run = project.liza(&["doctor", "--json"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(run.json()["result"]["healthy"], false);
    for (name, health, fix) in [
        ("worktrees", "fail", "liza recover"),
        ("integration branch", "fail", "liza doctor --fix"),
        ("excluded files", "warn", "liza doctor --fix"),
        ("specifications", "warn", "write them"),
        ("blackboard", "fail", "liza validate"),
    ] {
        let check = check(&run, name);
        assert_eq!(check["health"], health, "{check}");
        assert!(check["fix"].as_str().unwrap().contains(fix), "{check}");
    }
    let fix = &check(&run, "blackboard")["fix"];
    assert_eq!(fix, "show all: liza validate; correct them: liza edit", "recover repairs no text");
    project.write("specs/vision.md", "# Vision\n");
    let run = project.liza(&["doctor", "--fix", "--json"]);
    assert_eq!(run.result()["healthy"], true, "{run:?}");
    assert_eq!(run.result()["recovered"]["repaired"][0]["kind"], "missing_worktree");
    assert_eq!(tip(&project, "integration"), tip(&project, "main"));
    assert_eq!(project.git(&["status", "--porcelain"]), "M specs/vision.md");
    check_consistent(&project);
}

/// Covers: CM-05, IS-08
#[test]
fn a_git_that_fails_where_it_is_confined_is_found_and_can_be_given_what_it_needs() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = team();
    let home = project.home().canonicalize().unwrap();
    fs::create_dir_all(home.join(".ssh")).unwrap();
    fs::write(home.join(".ssh/needed"), "").unwrap();
    let (folder, path) = (home.join("tools"), std::env::var_os("PATH").unwrap());
    fs::create_dir_all(&folder).unwrap();
    let reads = "case \"$*\" in *read-tree*) cat \"$HOME/.ssh/needed\" || exit 9;; esac";
    let rest = format!("PATH='{}' exec git \"$@\"", path.to_str().unwrap());
    fs::write(folder.join("git"), format!("#!/bin/sh\n{reads}\n{rest}\n")).unwrap();
    fs::set_permissions(folder.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut all = vec![folder];
    all.extend(std::env::split_paths(&path));
    let path = std::env::join_paths(all).unwrap();
    let doctor = || project.run(project.program().args(["doctor", "--json"]).env("PATH", &path));
    let found = check(&doctor(), "git, confined");
    assert!(found["found"].as_str().unwrap().contains("Permission denied"), "{found}");
    for setting in ["sandbox_readable ['~/.ssh/needed']", "sandbox_readable []", "sandbox off"] {
        let (key, value) = setting.split_once(' ').unwrap();
        project.liza(&["config", key, value]).ok();
        let names = doctor().json()["result"]["checks"].to_string();
        assert_eq!(names.contains("git, confined"), value == "[]", "{setting}: {names}");
    }
}

/// Covers: CM-06
#[test]
fn it_works_without_a_project() {
    let project = TestProject::bare();
    let run = project.liza(&["doctor", "--json"]);
    assert_eq!(run.code, 1);
    assert!(check(&run, "blackboard")["fix"].as_str().unwrap().contains("liza init"));
    project.liza(&["doctor", "--fix", "--json"]).refused(1, "no_project");
    let mut outside = project.program();
    let run = project.run(outside.args(["doctor", "--json"]).current_dir(project.home()));
    assert_eq!(check(&run, "repository")["health"], "fail");
}

/// Covers: AG-13, CM-05
#[test]
fn it_reports_what_git_lacks() {
    let project = team();
    fs::write(project.home().join("gitconfig"), "").unwrap();
    let run = project.liza(&["doctor", "--json"]);
    let identity = check(&run, "identity");
    assert_eq!(identity["health"], "fail", "{identity}");
    assert!(identity["fix"].as_str().unwrap().contains("user.email"), "{identity}");

    let path = git_wrapper(&project, "case \"$*\" in *version*) echo git version 2.30.1; exit;; esac");
    let mut program = project.program();
    let run = project.run(program.args(["doctor", "--json"]).env("PATH", path));
    assert!(check(&run, "git")["found"].as_str().unwrap().contains("2.30 is too old"));

    script(&project.home().join("agents/claude"), "exit 0");
    let mut path = std::ffi::OsString::from(project.home().join("agents"));
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let mut program = project.program();
    let run = project.run(program.args(["doctor", "--json"]).env("PATH", path));
    let programs = check(&run, "agent programs")["found"].clone();
    assert!(programs.as_str().unwrap().ends_with("; liza run uses claude"), "{programs}");
}

/// Covers: SE-09, AX-26, AX-28
#[test]
fn it_reports_the_version_the_login_and_the_rights_of_each_client() {
    let project = team();
    script(&project.home().join("agents/claude"), "touch \"$HOME/trace\"; echo '2.1.325 (Claude Code)'");
    script(&project.home().join("agents/codex"), "echo codex-cli 0.166.0");
    let path = format!("{}:/usr/bin:/bin", project.home().join("agents").display());
    let doctor = |variables: &[(&str, &str)]| {
        let mut program = project.program();
        program.args(["doctor", "--json"]).env("PATH", &path).envs(variables.iter().copied());
        project.run(&mut program)
    };
    let run = doctor(&[]);
    let claude = check(&run, "claude");
    assert_eq!((claude["health"].as_str(), claude["fix"].as_str()), (Some("warn"), Some("claude /login")));
    let found = claude["found"].as_str().unwrap();
    assert!(found.starts_with("2.1.325; no login found; runs any command"), "{found}");
    assert!(!project.home().join("trace").exists(), "it was asked with another home folder");
    assert_eq!(check(&run, "codex")["health"], "ok", "no role uses it");
    fs::create_dir_all(project.home().join(".codex")).unwrap();
    fs::write(project.home().join(".codex/auth.json"), "{}").unwrap();
    let found = check(&doctor(&[]), "codex")["found"].as_str().unwrap().to_owned();
    assert!(found.starts_with("0.166.0; login: ") && found.contains(".codex/auth.json"), "{found}");
    assert!(!found.contains("its end is not known"), "{found}");
    // What steers its sessions is named: AX-28.
    assert!(!found.contains("reach its sessions"), "{found}");
    fs::write(project.home().join(".codex/AGENTS.md"), "Be brief.").unwrap();
    let found = check(&doctor(&[]), "codex")["found"].as_str().unwrap().to_owned();
    assert!(
        found.contains("yours that reach its sessions: ") && found.ends_with(".codex/AGENTS.md"),
        "{found}"
    );
    // So is a login of which Liza cannot read the end: AX-26.
    script(&project.home().join("agents/opencode"), "echo 1.18.33");
    fs::create_dir_all(project.home().join(".local/share/opencode")).unwrap();
    fs::write(project.home().join(".local/share/opencode/auth.json"), "{}").unwrap();
    let found = check(&doctor(&[]), "opencode")["found"].as_str().unwrap().to_owned();
    assert!(found.contains("its end is not known to Liza"), "{found}");
    let found = check(&doctor(&[("ANTHROPIC_API_KEY", "x")]), "claude")["found"].as_str().unwrap().to_owned();
    assert!(found.contains("login: ANTHROPIC_API_KEY"), "{found}");
    project.liza(&["lock", "write", "--yaml", "config.roles", "{coder: goose}"]).ok();
    let roles = check(&doctor(&[]), "roles");
    assert!(roles["found"].as_str().unwrap().contains("needs the program goose"), "{roles}");
}

/// Covers: SE-06, SE-09
#[test]
fn a_program_of_ones_own_is_listed_with_what_is_known_of_it() {
    let project = team();
    script(&project.home().join("agents/my-agent"), "echo 1.2");
    let path = format!("{}:/usr/bin:/bin", project.home().join("agents").display());
    let doctor = || project.run(project.program().args(["doctor", "--json"]).env("PATH", &path));
    let found = |name: &str| check(&doctor(), name)["found"].as_str().unwrap().to_owned();
    assert_eq!(found("agent programs"), "none on PATH");
    let own = |entry: &str| {
        project.liza(&["lock", "write", "--yaml", "config.providers", entry]).ok();
    };
    own("{mine: {program: my-agent}}");
    project.liza(&["lock", "write", "--yaml", "config.roles", "{coder: mine}"]).ok();
    assert_eq!(found("agent programs"), "mine; liza run uses mine");
    assert_eq!(found("mine"), "1.2; what config.providers gives it");
    assert_eq!(check(&doctor(), "mine")["health"], "ok", "nothing says what its login is");
    own("{mine: {program: my-agent, login_signs: [MY_KEY, ~/.mine/auth.json]}}");
    let login = check(&doctor(), "mine");
    assert_eq!(login["fix"], "set MY_KEY or log in, which makes ~/.mine/auth.json", "{login}");
    // A limit that it cannot keep is named where it is set and here.
    let said = project.liza(&["config", "budget.day.tokens", "2M"]).stderr;
    let problem = "mine reports no tokens (events: none), so a limit of tokens ends none of its sessions";
    assert!(said.contains(problem), "{said}");
    let status = project.liza(&["status"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(status.contains(problem), "{status}");
    let budget = check(&doctor(), "budget");
    assert!(budget["found"] == problem && budget["health"] == "warn", "{budget}");
    assert!(budget["fix"].as_str().unwrap().contains("liza config providers.mine.events FORMAT"), "{budget}");
    project.liza(&["config", "providers.mine.events", "claude"]).ok();
    assert!(!doctor().stdout.contains("reports no tokens"));
}

/// Covers: UI-05
#[test]
fn a_test_that_is_not_on_the_integration_branch_is_named_with_the_command_that_brings_it() {
    let project = team();
    let found = |project: &TestProject| {
        let run = project.liza(&["doctor", "--json"]);
        let checks = run.json()["result"]["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "integration test")
    };
    let none = found(&project).unwrap();
    assert_eq!(
        (&none["health"], &none["found"]),
        (
            &"ok".into(),
            &"none: nothing but the code reviewer judges merges; to test them: write scripts/integration-test.sh, commit it, then: liza sync".into()
        )
    );
    project.write("scripts/integration-test.sh", "exit 0\n");
    let check = found(&project).unwrap();
    assert!(check["found"].as_str().unwrap().contains("not committed"), "{check}");
    project.git(&["add", "scripts"]);
    project.git(&["commit", "-qm", "test"]);
    let check = found(&project).unwrap();
    assert!(check["found"].as_str().unwrap().contains("not on the integration branch"), "{check}");
    assert_eq!(check["fix"], "liza sync");
    let gone = "{program: /nowhere/gone}";
    project.liza(&["lock", "write", "--yaml", "config.providers.gone", gone]).ok();
    let run = project.liza(&["run", "--plain", "--cli", "gone"]);
    assert!(run.stderr.contains("merges are not tested; to use it: liza sync"), "{run:?}");
    project.liza(&["sync"]).ok();
    let check = found(&project).unwrap();
    assert_eq!(check["found"], "scripts/integration-test.sh runs before every merge");
}

/// Covers: CM-05, AT-08, MM-07
#[test]
fn the_fix_of_a_branch_is_a_command_that_can_be_copied() {
    let project = shared();
    approved(&project, "one");
    merge(&project, "one").ok();
    let doctor = || project.liza(&["doctor", "--json"]);
    let follow = |fix: &Value| {
        let mut shell = project.command("sh");
        project.run(shell.args(["-c", fix.as_str().unwrap()]).current_dir(&project.root)).ok();
    };
    on_remote(&project, &["update-ref", "-d", "refs/heads/integration"]);
    let fix = check(&doctor(), "remote")["fix"].clone();
    assert_eq!(fix, "git push origin integration");
    follow(&fix);
    assert_eq!(check(&doctor(), "remote")["health"], "ok");
    assert_eq!(remote_head(&project), tip(&project, "integration"));
    project.git(&["branch", "-f", "integration", "integration~1"]);
    let fix = check(&doctor(), "merged work")["fix"].clone();
    assert_eq!(fix, "git switch integration && git merge refs/liza/merged/one");
    follow(&fix);
    let checks = doctor().json()["result"]["checks"].clone();
    assert!(checks.as_array().unwrap().iter().all(|check| check["name"] != "merged work"), "{checks}");
}

/// Covers: CM-05, UI-11
#[test]
fn a_shared_file_that_stops_or_does_not_reach_a_team_is_reported() {
    let project = team();
    let found = |project: &TestProject| {
        let run = project.liza(&["doctor", "--json"]);
        let checks = run.json()["result"]["checks"].as_array().unwrap().clone();
        (run.code, checks.into_iter().find(|check| check["name"] == "liza.yaml"))
    };
    assert_eq!(found(&project), (0, None));
    project.write("liza.yaml", "max_crashes: 2\n");
    let (code, check) = found(&project);
    let check = check.unwrap();
    assert_eq!((code, check["health"].as_str()), (0, Some("warn")), "{check}");
    assert!(check["fix"].as_str().unwrap().contains("liza config --trust"), "{check}");
    project.liza(&["config", "--trust"]).ok();
    assert_eq!(found(&project).1.unwrap()["health"], "ok");
    project.write("liza.yaml", "max_crashes: 2\nroles: {coder: {coun: 3}}\n");
    let (code, check) = found(&project);
    let check = check.unwrap();
    assert_eq!((code, check["health"].as_str()), (1, Some("fail")), "{check}");
    assert!(check["found"].as_str().unwrap().contains("roles.coder.coun"), "{check}");
    assert!(!check["fix"].as_str().unwrap().is_empty(), "{check}");
}

/// Covers: CM-05, UI-03
#[test]
fn a_missing_goal_is_reported_with_the_command_that_states_it() {
    let project = TestProject::bare();
    project.liza(&["init"]).ok();
    let goal = check(&project.liza(&["doctor", "--json"]), "goal");
    assert_eq!(
        (goal["health"].as_str(), goal["fix"].as_str()),
        (Some("warn"), Some("liza goal new \"GOAL\""))
    );
}

/// Covers: SE-09, CM-05
#[test]
fn the_key_of_the_provider_that_codex_is_set_to_use_is_looked_for() {
    let project = team();
    script(&project.home().join("agents/codex"), "echo codex-cli 0.166.0");
    fs::create_dir_all(project.home().join(".codex")).unwrap();
    let settings = "model_provider = \"mine\"\n\n[model_providers.mine]\nenv_key = \"MY_KEY\"\n";
    fs::write(project.home().join(".codex/config.toml"), settings).unwrap();
    let path = format!("{}:/usr/bin:/bin", project.home().join("agents").display());
    let codex = |variables: &[(&str, &str)]| {
        let mut program = project.program();
        program.args(["doctor", "--json"]).env("PATH", &path).envs(variables.iter().copied());
        check(&project.run(&mut program), "codex")
    };
    let found = codex(&[]);
    assert_eq!(found["health"], "warn", "{found}");
    assert!(found["fix"].as_str().unwrap().starts_with("set MY_KEY, "), "{found}");
    let found = codex(&[("MY_KEY", "x")]);
    assert_eq!(found["health"], "ok", "{found}");
}

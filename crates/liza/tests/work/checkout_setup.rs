//! `config.setup` and `config.copy`: every new checkout is prepared before it is used, and a failure blames no task.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use crate::fixture::*;
use crate::support::TestProject;

/// A team whose checkouts are prepared by this command, with `.env`, `built` and `cache` ignored.
fn prepared(setup: &str) -> TestProject {
    let project = TestProject::bare();
    project.write(".gitignore", ".env\nbuilt\ncache\n");
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "ignore"]);
    project.liza(&["init", "Retry everything"]).ok();
    if !setup.is_empty() {
        project.liza(&["lock", "write", "config.setup", setup]).ok();
    }
    join(project)
}

fn copy(project: &TestProject, paths: &str) {
    project.liza(&["lock", "write", "--yaml", "config.copy", paths]).ok();
}

fn alert(project: &TestProject) -> Option<Value> {
    let status = project.liza(&["status", "--json"]).result();
    status["alerts"].as_array().unwrap().iter().find(|alert| alert["kind"] == "SETUP FAILED").cloned()
}

/// What set-ups printed.
fn outputs(project: &TestProject) -> Vec<String> {
    let folder = project.root.join(".liza/setup");
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Covers: SE-08
#[test]
fn a_workspace_a_review_and_a_merge_test_are_set_up_once() {
    let project = prepared("mkdir built; echo times >> built/ready; echo set up");
    advance(&project, "scripts/integration-test.sh", "cat built/ready; test -f built/ready");
    let head = submitted(&project, "one");
    let ready = project.tree("one").join("built/ready");
    assert_eq!(fs::read_to_string(&ready).unwrap(), "times\n");
    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    let checked = project.root.join(".worktrees/.prepared-one");
    assert_eq!(fs::read_to_string(checked.join("built/ready")).unwrap(), "times\n");
    verdict(&project, "one", &["REJECTED", "a.rs:1 is wrong"]).ok();
    claim(&project, "one", "coder-1").ok();
    assert_eq!(fs::read_to_string(&ready).unwrap(), "times\n", "a kept worktree is not set up again");
    let fixed = commit(&project, &project.tree("one"), "fixed", "x");
    assert_ne!(fixed, head);
    submit(&project, "one", "coder-1", &fixed).ok();
    judge(&project, "one", &["APPROVED"]);
    merge(&project, "one").ok();
    assert_eq!(outputs(&project), vec!["set up\n"; 4], "workspace, two reviews, merge test");
    assert_eq!(alert(&project), None);
}

/// Covers: SE-08
#[test]
fn a_set_up_that_fails_is_shown_with_its_output_and_counts_against_no_task() {
    let project = prepared("echo no network; echo PASSWORD=hunter2-hunter2 >&2; exit 3");
    project.add_task("one");
    let error = claim(&project, "one", "coder-1").refused(1, "setup_failed");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("config.setup failed in .worktrees/one") && message.contains("exited 3"),
        "{message}"
    );
    let output = message.split("Output: ").nth(1).unwrap();
    let output = project.read(output);
    assert!(output.contains("no network") && !output.contains("hunter2"), "{output}");
    let record = project.record("one");
    assert_eq!((project.status("one"), record.reservation, record.crashes), ("UNCLAIMED", None, None));
    assert_eq!(history(&project, "one"), ["created"]);
    let alert_now = alert(&project).unwrap();
    let expected = (&"critical".into(), &"liza config setup \"...\"".into());
    assert_eq!((&alert_now["level"], &alert_now["command"]), expected);
    project.liza(&["config", "setup", "true"]).ok();
    claim(&project, "one", "coder-1").ok();
    assert_eq!(alert(&project), None);
    check_consistent(&project);
}

/// Covers: SE-08
#[test]
fn a_set_up_has_a_time_limit_and_leaves_nothing_running() {
    let sleep = crate::support::process::own_sleep(900);
    let project = prepared(&format!("{sleep} & exec {sleep}"));
    project.liza(&["lock", "write", "config.setup_limit", "1"]).ok();
    project.add_task("one");
    let error = claim(&project, "one", "coder-1").refused(1, "setup_failed");
    assert!(
        error["message"].as_str().unwrap().contains("took longer than config.setup_limit (1 s)"),
        "{error}"
    );
    let leaked = crate::support::process::is_running(&sleep);
    assert!(!leaked || cfg!(not(target_os = "linux")));
}

/// Covers: SE-08
#[test]
fn a_review_or_a_merge_that_cannot_be_set_up_is_given_back() {
    let project = prepared("true");
    advance(&project, "scripts/integration-test.sh", "exit 0");
    submitted(&project, "one");
    let used = || project.snapshot().board.sprint().unwrap().sessions.tasks.values().sum::<u32>();
    let before = used();
    project.liza(&["lock", "write", "config.setup", "exit 1"]).ok();
    project.liza(&["claim-review", "one", "code-reviewer-1", "--json"]).refused(1, "setup_failed");
    assert_eq!((project.status("one"), used()), ("READY_FOR_REVIEW", before), "no session was charged");
    project.liza(&["lock", "write", "config.setup", "true"]).ok();
    judge(&project, "one", &["APPROVED"]);
    project.liza(&["lock", "write", "config.setup", "exit 1"]).ok();
    merge(&project, "one").refused(1, "setup_failed");
    assert_eq!(project.status("one"), "APPROVED");
    project.liza(&["lock", "write", "config.setup", "true"]).ok();
    merge(&project, "one").ok();
}

/// Covers: SE-08
#[test]
fn ignored_files_come_from_the_humans_checkout_and_never_from_a_coders() {
    let project = prepared("test \"$(cat .env)\" = mine");
    project.write(".env", "mine\n");
    project.write("built/deep/file", "x");
    symlink("deep/file", project.root.join("built/link")).unwrap();
    let built = || fs::File::options().write(true).open(project.root.join("built/deep/file")).unwrap();
    built().set_modified(UNIX_EPOCH + Duration::from_secs(1_700_000_000)).unwrap();
    copy(&project, "[.env, built]");
    submitted(&project, "one");
    let tree = project.tree("one");
    assert_eq!(fs::read_to_string(tree.join(".env")).unwrap(), "mine\n");
    let time = |folder: &Path| fs::metadata(folder.join("built/deep/file")).unwrap().modified().unwrap();
    assert_eq!(time(&tree), time(&project.root), "it would hide that the sources are others");
    assert_eq!(fs::read_link(tree.join("built/link")).unwrap().to_str(), Some("deep/file"));
    // The coder changes its own; the review does not see that.
    fs::write(tree.join(".env"), "the coder's\n").unwrap();
    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    let checked = project.root.join(".worktrees/.prepared-one");
    assert_eq!(fs::read_to_string(checked.join(".env")).unwrap(), "mine\n");
    verdict(&project, "one", &["APPROVED"]).ok();
}

/// A team that copies a Python environment into which the project itself is installed, from this place.
fn installed_in_place(place: impl Fn(&TestProject) -> String) -> TestProject {
    let project = prepared("");
    advance(&project, ".gitignore", "env\n");
    advance(&project, "src/cart.sh", "echo total\n");
    advance(&project, "scripts/integration-test.sh", "env/bin/python\n");
    project.git(&["merge", "-q", "--ff-only", "integration"]);
    project
        .write("env/lib/python3.14/site-packages/__editable__.cart.pth", &format!("{}\n", place(&project)));
    let runs = "link=$(dirname \"$0\")/../lib/python3.14/site-packages/__editable__.cart.pth";
    script(&project.root.join("env/bin/python"), &format!("{runs}\n. \"$(cat \"$link\")/cart.sh\""));
    copy(&project, "[env]");
    project
}

/// Covers: SE-08
#[test]
fn a_copied_environment_imports_the_code_of_its_checkout_and_not_that_of_the_person() {
    let root = |project: &TestProject| project.root.canonicalize().unwrap().display().to_string();
    let project = installed_in_place(|project| format!("{}/src", root(project)));
    let (here, bin) = (root(&project), project.root.join("env/bin"));
    project.write("env/bin/cart", &format!("#!{here}/env/bin/python\nprint('{here}-2/src')\n"));
    project.write("env/data", &format!("{here}/src\0{here}/src\n"));
    symlink(format!("{here}/src"), bin.join("link")).unwrap();
    submitted_with(&project, "one", "src/cart.sh", "exit 3\n");
    let tree = project.tree("one");
    let read = |name: &str| fs::read_to_string(tree.join("env").join(name)).unwrap();
    let there = tree.display();
    assert_eq!(read("lib/python3.14/site-packages/__editable__.cart.pth"), format!("{there}/src\n"));
    assert_eq!(read("bin/cart"), format!("#!{there}/env/bin/python\nprint('{here}-2/src')\n"));
    assert_eq!(read("data"), format!("{here}/src\0{here}/src\n"), "a binary file is copied as it is");
    assert_eq!(fs::read_link(tree.join("env/bin/link")).unwrap(), tree.join("src"));
    judge(&project, "one", &["APPROVED"]);
    let error = merge(&project, "one").refused(3, "integration_test");
    assert!(error["message"].as_str().unwrap().contains("exit status 3"), "{error}");
    assert_eq!(project.git(&["status", "--porcelain"]), "");
}

/// Covers: SE-08, JU-01
#[test]
fn a_program_that_a_commit_puts_in_the_place_of_a_copied_one_needs_the_humans_word() {
    let project =
        installed_in_place(|project| format!("{}/src", project.root.canonicalize().unwrap().display()));
    claimed(&project, "one", "coder-1");
    let tree = project.tree("one");
    fs::write(tree.join("src/cart.sh"), "exit 3\n").unwrap();
    script(&tree.join("env/bin/python"), "exit 0");
    project.git_at(&tree, &["add", "-f", "src/cart.sh", "env/bin/python"]);
    project.git_at(&tree, &["commit", "-qm", "a test that passes"]);
    let head = project.git_at(&tree, &["rev-parse", "HEAD"]);
    submit(&project, "one", "coder-1", &head).ok();
    judge(&project, "one", &["APPROVED"]);
    merge(&project, "one").refused(1, "gate_changed");
    project.liza(&["accept-gate", "one", "--json"]).refused(1, "old_gate_fails");
}

/// Covers: SE-08
#[test]
fn the_doctor_finds_copied_links_that_lead_to_the_persons_code_and_the_next_session_copies_again() {
    let root = |project: &TestProject| project.root.canonicalize().unwrap().display().to_string();
    let project = installed_in_place(|project| format!("{}/src", root(project)));
    submitted(&project, "one");
    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    verdict(&project, "one", &["REJECTED", "a.rs:1 is wrong"]).ok();
    let (here, tree) = (root(&project), project.tree("one"));
    let link = tree.join("env/lib/python3.14/site-packages/__editable__.cart.pth");
    assert!(!project.liza(&["doctor"]).stdout.contains("copied files"));
    fs::write(&link, format!("{here}/src\n")).unwrap();
    let said = project.liza(&["doctor"]).stdout;
    assert!(said.contains("copied files") && said.contains("rm -r "), "{said}");
    fs::remove_dir_all(tree.join("env")).unwrap();
    claim(&project, "one", "coder-1").ok();
    assert_eq!(fs::read_to_string(&link).unwrap(), format!("{}/src\n", tree.display()));
}

/// Covers: SE-08
#[test]
fn a_failed_set_up_has_one_record_and_one_alarm() {
    let project = prepared("case $PWD in */.prepared-one) exit 3;; esac");
    submitted(&project, "one");
    project.liza(&["claim-review", "one", "code-reviewer-1", "--json"]).refused(1, "setup_failed");
    assert!(!project.root.join(".liza/setup/failure").exists(), "the record of the review has it");
    let status = project.liza(&["status", "--json"]).result();
    let alerts = status["alerts"].as_array().unwrap().iter();
    let about: Vec<_> =
        alerts.filter(|alert| alert["kind"] == "SETUP FAILED").map(|alert| &alert["task"]).collect();
    assert_eq!(about, ["one"]);
}

/// Covers: SE-08
#[test]
fn an_environment_that_leads_to_the_persons_code_by_another_path_is_refused() {
    let project = installed_in_place(|project| {
        let other = project.home().join("other");
        symlink(&project.root, &other).unwrap();
        format!("{}/src", other.display())
    });
    project.add_task("one");
    let error = claim(&project, "one", "coder-1").refused(1, "setup_failed");
    let message = error["message"].as_str().unwrap();
    for words in ["config.copy: env: __editable__.cart.pth in it leads to ", "/other/src", "Use config.setup"]
    {
        assert!(message.contains(words), "{words}: {message}");
    }
}

/// Covers: SE-08
#[test]
fn what_git_does_not_ignore_is_not_copied() {
    let project = prepared("");
    project.add_task("one");
    project.write("notes.txt", "mine");
    let refused = |paths: &str| {
        copy(&project, paths);
        claim(&project, "one", "coder-1").refused(1, "setup_failed")["message"].as_str().unwrap().to_owned()
    };
    assert!(refused("[notes.txt]").contains("git does not ignore it"));
    assert!(refused("[.env]").contains("it does not exist in your checkout"));
    for outside in ["[../x]", "[/etc/passwd]", "[.git/config]", "[.liza/state.yaml]"] {
        assert!(refused(outside).contains("not a path inside of the project"), "{outside}");
    }
    copy(&project, "[]");
    claim(&project, "one", "coder-1").ok();
}

/// Covers: SE-08
#[test]
fn a_link_that_a_coder_planted_is_not_followed_when_its_worktree_is_set_up_again() {
    let project = prepared("");
    submitted(&project, "one");
    let (tree, home) = (project.tree("one"), project.home());
    let victim = home.join("victim");
    fs::write(&victim, "untouched").unwrap();
    symlink(&victim, tree.join(".env")).unwrap();
    symlink(home, tree.join("built")).unwrap();
    judge(&project, "one", &["REJECTED", "a.rs:1 is wrong"]);
    for file in [".env", "built/victim", "built/new", "cache/file"] {
        project.write(file, "mine");
    }
    copy(&project, "[.env, built, cache]");
    claim(&project, "one", "coder-1").ok();
    assert_eq!(fs::read_to_string(tree.join("cache/file")).unwrap(), "mine", "it was set up again");
    let links = [".env", "built"].map(|name| fs::read_link(tree.join(name)).unwrap());
    assert_eq!(links, [victim.clone(), home.to_owned()], "the links are still in the way");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    assert!(!home.join("new").exists());
}

/// Covers: AX-05, SE-08, RV-10
#[test]
fn a_set_up_that_fails_for_one_review_only_sends_that_task_back() {
    let project = prepared("case $PWD in */.prepared-one) exit 3;; esac");
    for task in ["one", "two"] {
        submitted(&project, task);
    }
    let review = |task: &str| project.liza(&["claim-review", task, "code-reviewer-1", "--json"]);
    let message = || alert(&project).map(|alert| alert["text"].as_str().unwrap_or_default().to_owned());
    review("one").refused(1, "setup_failed");
    assert!(message().unwrap().contains("one cannot be reviewed: config.setup failed in"), "{:?}", message());
    review("two").ok();
    verdict(&project, "two", &["REJECTED", "a.rs:1 is wrong"]).ok();
    assert!(message().unwrap().contains("(failed 1 time)"), "others do not settle it: {:?}", message());
    assert_eq!(alert(&project).unwrap()["command"], "liza show one");
    review("one").refused(1, "setup_failed");
    assert_eq!(project.status("one"), "READY_FOR_REVIEW");
    let error = review("one").refused(1, "submission_unusable");
    assert!(error["message"].as_str().unwrap().contains("exited 3"), "{error}");
    let reason = project.record("one").rejection_reason.unwrap();
    assert!(reason.contains("setup_failed: a checkout of") && reason.contains("exited 3"), "{reason}");
    assert_eq!((project.status("one"), message()), ("REJECTED", None));
    assert_eq!(project.record("one").review_cycles_total.unwrap_or(0), 0, "nothing was reviewed");
    check_consistent(&project);
}

/// Covers: SE-08
#[test]
fn a_set_up_that_fails_without_the_task_too_counts_against_no_task() {
    let project = prepared("true");
    submitted(&project, "one");
    project.liza(&["lock", "write", "config.setup", "exit 3"]).ok();
    for _ in 0..4 {
        project.liza(&["claim-review", "one", "code-reviewer-1", "--json"]).refused(1, "setup_failed");
    }
    assert_eq!(
        (project.status("one"), history(&project, "one").last().unwrap().as_str()),
        ("READY_FOR_REVIEW", "ready_for_review")
    );
    assert!(alert(&project).is_some());
    project.liza(&["lock", "write", "config.setup", "true"]).ok();
    judge(&project, "one", &["APPROVED"]);
    assert_eq!(alert(&project), None);
}

/// Covers: IS-13, IS-15, JU-08
#[test]
fn code_under_review_that_a_set_up_runs_changes_nothing_that_the_reviewer_reads() {
    let project = prepared("if test -f setup.sh; then sh ./setup.sh; fi");
    project.liza(&["lock", "write", "config.client_settings", "allow"]).ok();
    project.write(".env", "from=you");
    copy(&project, "[.env]");
    let hostile = "git config core.fsmonitor ./evil; mkdir .claude; echo {} > .claude/settings.json\n\
        echo evil > .env; echo evil > setup.sh; git init -q lib; mkdir built; echo set up\n";
    submitted_with(&project, "one", "setup.sh", hostile);
    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    let [review, checked] =
        [".review-one", ".prepared-one"].map(|name| project.root.join(".worktrees").join(name));
    assert!(outputs(&project).contains(&"set up\n".to_owned()));
    for made in ["built", ".claude", ".env", "lib"] {
        assert_eq!((review.join(made).exists(), checked.join(made).exists()), (false, true), "{made}");
    }
    assert_eq!(fs::read_to_string(review.join("setup.sh")).unwrap(), hostile);
    assert!(!fs::read_to_string(review.join(".git/config")).unwrap().contains("evil"));
    verdict(&project, "one", &["REJECTED", "a.rs:1 is wrong"]).ok();
    project.liza(&["recover"]).ok();
    assert!(!review.exists() && !checked.exists(), "both end with the review");
}

/// Covers: IS-13, SE-08
#[cfg(target_os = "linux")]
#[test]
fn a_set_up_leaves_no_process_however_it_hides() {
    let mark = format!("tail -f /dev/null --pid={}", std::process::id());
    let project = prepared(&format!("(setsid env -i {mark} </dev/null >/dev/null 2>&1 &); echo started"));
    project.add_task("one");
    claim(&project, "one", "coder-1").ok();
    assert_eq!(outputs(&project), ["started\n"]);
    assert!(!crate::support::process::is_running(&mark), "{mark}");
}

/// Covers: IS-03, IS-14
#[cfg(target_os = "linux")]
#[test]
fn a_link_in_the_place_of_a_cache_grants_nothing_to_a_set_up() {
    let project = prepared("if test -f setup.sh; then sh ./setup.sh; fi");
    let (home, caches) = (project.root.parent().unwrap().join("yours"), project.root.join(".liza/caches"));
    fs::create_dir_all(&home).unwrap();
    submitted_with(
        &project,
        "one",
        "setup.sh",
        &format!("echo x 2>/dev/null > '{}/planted'\necho tried\n", home.display()),
    );
    let cache = caches.join("checks/one/code_reviewer");
    fs::create_dir_all(cache.parent().unwrap()).unwrap();
    symlink(&home, &cache).unwrap();
    let refused = project.liza(&["claim-review", "one", "code-reviewer-1"]).stderr;
    assert!(refused.contains("code_reviewer is a symbolic link"), "{refused}");
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
    assert!(cache.is_symlink());
}

/// Covers: IS-15
#[test]
fn a_set_up_leaves_no_settings_for_the_agent_program_of_a_coder() {
    let project = prepared(
        "mkdir -p .claude built/.claude; for at in . built; do echo {} > $at/.claude/settings.json; done\n\
         echo evil > .env; echo x > built/kept; echo set up",
    );
    project.write(".env", "from=you");
    copy(&project, "[.env]");
    project.add_task("one");
    claim(&project, "one", "coder-1").ok();
    let tree = project.tree("one");
    assert_eq!(outputs(&project), ["set up\n"]);
    assert!(tree.join("built/kept").exists() && !tree.join(".claude/settings.json").exists());
    assert!(!tree.join("built/.claude/settings.json").exists(), "also where git looks at nothing");
    assert_eq!(fs::read_to_string(tree.join(".env")).unwrap(), "from=you");
}

/// Covers: IS-15, IS-13
#[test]
fn a_set_up_may_make_an_env_file_for_a_coder_and_none_in_a_review() {
    let project = prepared("echo made > .env");
    submitted_with(&project, "one", "file", "x");
    assert_eq!(fs::read_to_string(project.tree("one").join(".env")).unwrap(), "made\n");
    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    assert!(!project.root.join(".worktrees/.review-one/.env").exists());
}

/// Covers: IS-15
#[test]
fn a_set_up_that_changes_settings_of_the_project_fails_for_a_coder() {
    let project = prepared("echo evil > .claude/settings.json");
    project.write(".claude/settings.json", "{}\n");
    project.git(&["add", ".claude"]);
    project.git(&["commit", "-qm", "settings"]);
    project.git(&["branch", "-f", "integration", "HEAD"]);
    project.add_task("one");
    for _ in 0..2 {
        let error = claim(&project, "one", "coder-1").refused(1, "setup_failed");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("config.setup changed .worktrees/one/.claude/settings.json"), "{message}");
    }
}

/// Covers: IS-13, RV-10, JU-08
#[test]
fn code_of_one_task_cannot_spoil_the_caches_for_the_review_of_another() {
    let project = prepared("if test -f setup.sh; then sh ./setup.sh; fi; mkdir -p \"$XDG_CACHE_HOME/tool\"");
    let hostile =
        "rm -rf \"$XDG_CACHE_HOME/tool\"; mkdir -p \"$XDG_CACHE_HOME\"; echo x > \"$XDG_CACHE_HOME/tool\"\n";
    submitted_with(&project, "one", "setup.sh", hostile);
    submitted(&project, "two");
    let review = |task: &str| project.liza(&["claim-review", task, "code-reviewer-1", "--json"]);
    review("one").refused(1, "setup_failed");
    review("two").ok();
    let caches = project.root.join(".liza/caches/checks");
    assert!(caches.join("two").exists() || cfg!(not(target_os = "linux")));
    verdict(&project, "two", &["APPROVED"]).ok();
    merge(&project, "two").ok();
    assert!(!caches.join("two").exists(), "they go with the task");
    review("one").refused(1, "setup_failed");
    let error = review("one").refused(1, "submission_unusable");
    assert!(
        error["message"].as_str().unwrap().contains("exited 1"),
        "its own caches do not hide it: {error}"
    );
}

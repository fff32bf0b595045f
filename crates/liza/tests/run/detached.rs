//! `liza run --detach`, `attach`, `stop`, and rehearsals in a copy.

use std::fs;
use std::path::PathBuf;

use crate::support::process::{Running, is_running, own_sleep, wait_for};
use crate::support::{Run, TestProject};

fn project() -> TestProject {
    let project = TestProject::bare();
    project.liza(&["init", "Say hello, say goodbye"]).ok();
    project
}

/// Covers: UI-06, AX-31
#[test]
fn a_detached_team_finishes_the_goal_and_attach_shows_it() {
    let project = project();
    let words = ["run", "--detach", "--in-place", "--cli", "rehearsal", "--coders", "1", "--json"];
    let result = project.liza(&words).result();
    assert!(result["process"].as_u64().is_some(), "{result}");
    // It ends with the team.
    let shown = project.liza(&["attach"]).ok().to_owned();
    assert!(shown.contains("1 × Coder (rehearsal)"), "{shown}");
    assert!(shown.contains("goal COMPLETED · 2 tasks: 2 merged"), "{shown}");
    assert_eq!(project.snapshot().board.goal.ready().unwrap().status.to_string(), "COMPLETED");
    let next = project.liza(&["goal", "new", "Say more"]).ok().to_owned();
    assert!(next.contains("Start the team: liza run --cli rehearsal --in-place"), "{next}");
}

/// Covers: UI-06
#[test]
fn stop_ends_a_detached_team_and_its_sessions() {
    let project = project();
    let script = project.home().join("sleeper.sh");
    fs::write(&script, format!("#!/bin/sh\ncat > /dev/null\nexec {}\n", own_sleep(6543))).unwrap();
    project.run(project.command("chmod").arg("755").arg(&script)).ok();
    project.set_config("providers", &format!("{{sleeper: {{program: {}}}}}", script.display()));
    project.liza(&["run", "--detach", "--cli", "sleeper"]).ok();
    project.liza(&["run", "--detach", "--cli", "sleeper", "--json"]).refused(1, "already_running");
    project.liza(&["remove", "--yes", "--json"]).refused(1, "already_running");
    wait_for("a session", || is_running(&own_sleep(6543)).then_some(()));
    project.liza_as("coder-1", &["stop", "--json"]).refused(1, "not_permitted");
    let result = project.liza(&["stop", "--json"]).result();
    assert_eq!(result["stopped"], true);
    assert!(!is_running(&own_sleep(6543)));
    assert_eq!(project.liza(&["stop", "--json"]).result()["stopped"], false);
    let shown = project.liza(&["attach"]).ok().to_owned();
    assert!(shown.contains("team: "), "the last one is still shown: {shown}");
}

/// Covers: UI-06, AG-16
#[test]
fn a_second_stop_waits_too_and_only_now_kills() {
    let project = project();
    let script = project.home().join("stubborn.sh");
    let sleep = own_sleep(1);
    let stubborn = format!("#!/bin/sh\ntrap '' TERM\ncat > /dev/null\nwhile :; do {sleep}; done\n");
    fs::write(&script, stubborn).unwrap();
    project.run(project.command("chmod").arg("755").arg(&script)).ok();
    project.set_config("providers", &format!("{{stubborn: {{program: {}}}}}", script.display()));
    let mut run = Running::liza(&project, &["run", "--cli", "stubborn", "--plain"]);
    wait_for("a session", || is_running(&sleep).then_some(()));
    let mut first = Running::liza(&project, &["stop"]);
    first.wait_for_output("stopping: sessions may take a moment to end; at once: liza stop --now");
    run.wait_for_output("stopping; press Ctrl-C again");
    let mut second = Running::liza(&project, &["stop"]);
    let already = "the team is stopping already: sessions may take a moment to end; at once: liza stop --now";
    second.wait_for_output(already);
    assert_eq!((run.exit_code(), first.exit_code()), (None, None), "{}", run.output());
    assert!(!run.output().contains("killing"), "{}", run.output());
    project.liza(&["stop", "--now"]).ok();
    assert!(run.output().contains("killing sessions"), "{}", run.output());
    assert_eq!((first.wait(), second.wait(), run.wait()), (0, 0, 0));
}

/// Covers: UI-03, SE-04
#[test]
fn a_hold_is_not_repeated_by_every_agent_that_waits() {
    let project = project();
    let script = project.home().join("limited.sh");
    let limited = r#"#!/bin/sh
cat > /dev/null
echo '{"type":"turn.failed","error":{"message":"Rate limit reached. Try again in 600s."}}'
exit 1
"#;
    fs::write(&script, limited).unwrap();
    project.run(project.command("chmod").arg("755").arg(&script)).ok();
    project.set_config("providers", &format!("{{codex: {{program: {}}}}}", script.display()));
    project.add_task("t1");
    let mut run = Running::liza(&project, &["run", "--cli", "codex", "--plain"]);
    run.wait_for_output("codex is held for the team: usage limit reached; tried again in ");
    let alerts = project.root.join(".liza/alerts.log");
    let is_raised = |text: String| text.contains("CLIENT HELD").then_some(());
    wait_for("the alarm", || fs::read_to_string(&alerts).ok().and_then(is_raised));
    run.signal("INT");
    assert_eq!(run.wait(), 0, "{}", run.output());
    let output = run.output();
    let log = output.split("the team has stopped").next().unwrap_or_default();
    assert_eq!(log.matches("Rate limit reached").count(), 1, "{output}");
    // What the screen said is gone: the end says it too.
    let held = output.lines().find(|line| line.starts_with("codex is held until ")).unwrap_or_default();
    assert!(held.ends_with("; to try it at once: liza resume, then liza run --cli codex"), "{output}");
    assert!(output.contains("needs you: LOGIN: no login of codex was found"), "{output}");
}

/// Covers: UI-06
#[test]
fn a_team_that_cannot_start_in_the_background_says_why() {
    let project = project();
    project.liza(&["attach", "--json"]).refused(1, "no_team");
    project.set_config("providers", "{gone: {program: /nowhere/x}}");
    let error = project.liza(&["run", "--detach", "--cli", "gone", "--json"]).refused(1, "not_started");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("/nowhere/x") && !message.contains("liza: "), "{error}");
    let error = project.liza(&["run", "--cli", "clade", "--json"]).refused(1, "unknown_provider");
    assert!(error["message"].as_str().unwrap().contains("did you mean claude?"), "{error}");
}

/// Covers: UI-08
#[test]
fn a_rehearsal_plays_in_a_copy_and_leaves_no_trace() {
    let project = project();
    project.write("specs/new.md", "not committed\n");
    // What a rehearsal must not use.
    let remote = project.home().join("remote.git");
    project.git(&["init", "-q", "--bare", remote.to_str().unwrap()]);
    project.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
    project.git(&["push", "-q", "origin", "integration"]);
    project.liza(&["config", "remote", "origin"]).ok();
    project.liza(&["config", "escalation_webhook", "http://127.0.0.1:9/"]).ok();
    let (before, head) = (project.state(), project.git(&["show-ref"]));
    let temporary = project.home().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let words = ["run", "--cli", "rehearsal", "--plain"];
    let run = project.run(project.program().env("TMPDIR", &temporary).args(words));
    assert!(run.ok().contains("goal COMPLETED · 2 tasks: 2 merged"), "{run:#?}");
    let copy = temporary.join("liza-rehearsal-1").canonicalize().unwrap();
    assert!(run.stderr.contains(&format!("rehearsal in a copy, {}", copy.display())), "{run:#?}");
    assert!(run.stderr.contains(&format!("liza -C {} status", copy.display())), "{run:#?}");
    assert_eq!(project.state(), before);
    assert_eq!(project.git(&["show-ref"]), head);
    assert!(!project.root.join(".worktrees").exists());
    assert_eq!(fs::read_to_string(copy.join("specs/new.md")).unwrap(), "not committed\n");
    let merged = project.git_at(&copy, &["log", "--oneline", "integration"]);
    assert!(merged.lines().count() > 2, "{merged}");
    assert_eq!(project.git_at(&copy, &["remote"]), "");
    let board = fs::read_to_string(copy.join(".liza/state.yaml")).unwrap();
    assert!(!board.contains("escalation_webhook") && !board.contains("remote:"), "{board}");
    let verified = project.run(project.program().arg("-C").arg(&copy).args(["verify", "--json"]));
    assert_eq!(verified.result()["contradictions"], serde_json::json!([]), "{verified:#?}");
    // A demo is a copy itself.
    let again = project.run(project.program().arg("-C").arg(&copy).args(words));
    assert!(again.ok().contains("goal-1 is COMPLETED"), "{again:#?}");
}

/// A rehearsal of this project, with its copy in the home folder of the test.
fn rehearse(project: &TestProject, words: &[&str]) -> Run {
    let temporary = project.home().join("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let all = [&["run", "--cli", "rehearsal", "--plain"], words].concat();
    project.run(project.program().env("TMPDIR", &temporary).args(all))
}

/// Covers: AX-21
#[test]
fn a_rehearsal_has_what_the_settings_copy_and_ends_if_the_test_cannot_run() {
    let project = project();
    project.write("scripts/integration-test.sh", "cat deps/ready\n");
    project.git(&["add", "scripts"]);
    project.git(&["commit", "-qm", "a test"]);
    project.liza(&["sync"]).ok();
    // Only this repository ignores it, not its clones.
    fs::write(project.root.join(".git/info/exclude"), "/.liza/\n/.worktrees/\ndeps\n").unwrap();
    project.write("deps/ready", "yes\n");
    let error = rehearse(&project, &["--json"]).refused(1, "own_test_fails");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("failed with exit status 1\n") && message.contains("deps/ready"), "{message}");
    project.liza(&["config", "copy", "[deps]"]).ok();
    let run = rehearse(&project, &[]);
    assert!(run.ok().contains("goal COMPLETED · 2 tasks: 2 merged"), "{run:#?}");
    let said = ["first, in a new checkout: the test (at most 30m); Ctrl-C ends it", "that passed, in "];
    assert!(said.iter().all(|words| run.stderr.contains(words)), "{run:#?}");
    assert!(
        run.stderr.contains("Each task is set up three times: for its coder, its review and"),
        "{run:#?}"
    );
    project.liza(&["config", "copy", "[gone]"]).ok();
    let error = rehearse(&project, &["--json"]).refused(1, "setup_failed");
    assert!(error["message"].as_str().unwrap().contains("gone: it does not exist"), "{error}");
}

/// Covers: UI-08
#[test]
fn a_rehearsal_continues_claimed_work_in_its_copy() {
    let project = project();
    project.add_task("t1");
    project.register("coder-1");
    project.liza(&["claim-task", "t1", "coder-1"]).ok();
    let tree: PathBuf = project.tree("t1");
    fs::write(tree.join("half.txt"), "half\n").unwrap();
    project.git_at(&tree, &["add", "half.txt"]);
    project.git_at(&tree, &["commit", "-qm", "half"]);
    let before = project.git_at(&tree, &["rev-parse", "HEAD"]);
    let temporary = project.home().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let words = ["run", "--cli", "rehearsal", "--plain"];
    let run = project.run(project.program().env("TMPDIR", &temporary).args(words));
    assert!(run.ok().contains("goal COMPLETED"), "{run:#?}");
    // Nothing is damaged: the copy has the worktree before anyone looks.
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(["error in", "fixed:", "repaired"].iter().all(|word| !said.contains(word)), "{said}");
    assert_eq!(project.status("t1"), "CLAIMED");
    assert_eq!(project.git_at(&tree, &["rev-parse", "HEAD"]), before);
}

/// Covers: UI-08
#[test]
fn a_mix_of_rehearsal_and_real_programs_needs_to_be_asked_for() {
    let project = project();
    let words = ["run", "--cli", "rehearsal", "--planner-cli", "claude", "--json"];
    let error = project.liza(&words).refused(1, "mixed_rehearsal");
    assert!(error["hint"].as_str().unwrap().contains("--in-place"), "{error}");
    let error =
        project.liza(&["run", "--detach", "--cli", "rehearsal", "--json"]).refused(1, "rehearsal_copy");
    assert!(error["hint"].as_str().unwrap().contains("--in-place"), "{error}");
}

/// Covers: UI-08
#[test]
fn a_rehearsal_without_anything_to_plan_from_says_what_is_missing() {
    let project = TestProject::bare();
    project.liza(&["init"]).ok();
    let rehearse = || project.liza(&["run", "--cli", "rehearsal", "--plain", "--json"]);
    let error = rehearse().refused(1, "nothing_to_rehearse");
    assert!(error["hint"].as_str().unwrap().starts_with("liza goal new"), "{error}");
    fs::remove_file(project.root.join("specs/vision.md")).unwrap();
    project.liza(&["goal", "new", "Say hello"]).ok();
    project.liza(&["run", "--cli", "rehearsal", "--in-place", "--json"]).refused(1, "nothing_to_rehearse");
    let error = rehearse().refused(1, "nothing_to_rehearse");
    assert!(error["message"].as_str().unwrap().contains("specs/vision.md"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("liza init --template"), "{error}");
}

/// Covers: UI-12
#[test]
fn a_team_that_starts_repeats_a_plan_that_waits() {
    let project = project();
    project.liza(&["config", "plan_approval", "true"]).ok();
    project.liza(&["config", "providers.gone", "{program: /nowhere/x}"]).ok();
    let add = ["add-task", "--id", "hello", "--desc", "x", "--done", "x", "--scope", "x"];
    project.liza_as("planner-1", &[&add[..], &["--spec", "specs/vision.md"]].concat()).ok();
    let run = project.liza(&["run", "--plain", "--cli", "gone"]);
    assert!(run.stderr.contains("a plan waits for your approval: 1 task, hello"), "{run:#?}");
}

/// An agent program whose sessions sleep that long.
fn with_sleeper(seconds: u32) -> TestProject {
    let project = project();
    let script = project.home().join("sleeper.sh");
    fs::write(&script, format!("#!/bin/sh\ncat > /dev/null\nexec {}\n", own_sleep(seconds))).unwrap();
    project.run(project.command("chmod").arg("755").arg(&script)).ok();
    project.liza(&["config", "providers.sleeper", &format!("{{program: {}}}", script.display())]).ok();
    project
}

/// Covers: UI-06
#[test]
fn stop_names_the_agents_that_were_started_alone_and_ends_them_if_asked() {
    let project = with_sleeper(6545);
    project.liza(&["agent", "planner", "--cli", "sleeper", "--detach"]).ok();
    wait_for("a session", || is_running(&own_sleep(6545)).then_some(()));
    let text = project.liza(&["stop"]).ok().to_owned();
    assert!(text.contains("no team is running here") && text.contains("running: planner-1 ("), "{text}");
    assert!(text.contains("liza deregister planner-1") && text.contains("liza stop --all"), "{text}");
    let result = project.liza(&["stop", "--json"]).result();
    assert_eq!(
        (&result["stopped"], &result["running"]),
        (&false.into(), &serde_json::json!(["planner-1"])),
        "{result}"
    );
    assert!(is_running(&own_sleep(6545)), "nothing was ended");
    let result = project.liza(&["stop", "--all", "--json"]).result();
    assert_eq!((&result["stopped"], &result["ended"][0]), (&true.into(), &"planner-1".into()), "{result}");
    assert!(!is_running(&own_sleep(6545)));
    assert_eq!(project.liza(&["stop", "--all"]).ok(), "no team is running here\n");
}

/// Covers: UI-06
#[test]
fn an_agent_in_the_background_ends_with_its_project() {
    let project = with_sleeper(6543);
    project.liza(&["agent", "planner", "--cli", "sleeper", "--detach"]).ok();
    wait_for("a session", || is_running(&own_sleep(6543)).then_some(()));
    let root = project.root.display();
    let liza = env!("CARGO_BIN_EXE_liza");
    let supervisor = format!("{liza} -C {root} agent planner --cli=sleeper --in-background");
    assert!(is_running(&supervisor));
    fs::remove_dir_all(&project.root).unwrap();
    wait_for("the end of the agent", || {
        (!is_running(&supervisor) && !is_running(&own_sleep(6543))).then_some(())
    });
}

/// Covers: UI-01, UI-06
#[test]
fn an_agent_runs_in_the_background_until_it_is_deregistered() {
    let project = with_sleeper(6544);
    let words = ["agent", "planner", "--cli", "sleeper", "--detach", "--json"];
    let result = project.liza(&words).result();
    assert_eq!(result["agent"], "planner-1", "{result}");
    wait_for("a session", || is_running(&own_sleep(6544)).then_some(()));
    project.liza(&["deregister", "planner-1"]).ok();
    wait_for("the end of the session", || (!is_running(&own_sleep(6544))).then_some(()));
    project
        .liza(&["agent", "coder", "--cli", "nothing", "--detach", "--json"])
        .refused(1, "unknown_provider");
}

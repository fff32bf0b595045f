//! `liza run`: a whole team in one process.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use crate::support::TestProject;
use crate::support::process::{Running, wait_for, wait_up_to};

/// A project whose planner adds three tasks.
fn project() -> TestProject {
    let project = TestProject::bare();
    project.liza(&["init", "Say hello, say goodbye, say good night"]).ok();
    project
}

/// A provider in the config whose sessions never end by themselves.
fn with_sleepers(project: &TestProject) {
    let script = project.home().join("sleeper.sh");
    fs::write(&script, "#!/bin/sh\ncat > /dev/null\nexec sleep 600\n").unwrap();
    project.run(project.command("chmod").arg("755").arg(&script)).ok();
    project.set_config("providers", &format!("{{sleeper: {{program: {}}}}}", script.display()));
}

/// Covers: AG-16, AG-05
#[test]
fn one_command_completes_a_goal() {
    let project = project();
    let run = project.liza(&["run", "--in-place", "--cli", "rehearsal", "--plain"]);
    let said = run.ok().to_owned();
    assert!(
        said.starts_with("team: 1 × Planner (rehearsal), 2 × Coder (rehearsal), 1 × Code Reviewer"),
        "{said}"
    );
    assert!(said.contains("goal COMPLETED · 3 tasks: 3 merged"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said}");
    let status = project.liza(&["status", "--json"]).result();
    assert_eq!(status["agents"].as_array().unwrap().len(), 0);
    // A goal that has ended needs no team.
    let again = project.liza(&["run", "--in-place", "--cli", "rehearsal"]);
    assert!(again.ok().contains("goal-1 is COMPLETED"), "{again:?}");
}

/// Covers: IS-11, AC-13
#[test]
fn a_head_of_the_integration_branch_that_was_not_recorded_is_adopted_and_reported() {
    let project = project();
    let is_other = |line: &&str| !line.trim_start().starts_with("integration_head:");
    let state: Vec<String> = project.state().lines().filter(is_other).map(str::to_owned).collect();
    project.write(".liza/state.yaml", &format!("{}\n", state.join("\n")));
    assert_eq!(project.snapshot().board.goal.ready().unwrap().integration_head, None);
    let head = project.git(&["rev-parse", "--short=8", "integration"]);
    let run = project.liza(&["run", "--in-place", "--cli", "rehearsal", "--plain"]);
    let expected = format!("work starts from the current commit of the integration branch, {head}");
    assert!(run.ok().starts_with(&expected), "{run:#?}");
    assert!(run.stdout.contains("goal COMPLETED · 3 tasks: 3 merged"), "{run:#?}");
    let recorded = project.snapshot().board.goal.ready().unwrap().integration_head.clone();
    assert_eq!(recorded.unwrap().as_str(), project.git(&["rev-parse", "integration"]));
}

/// Covers: AG-16, CM-03
#[test]
fn the_config_defines_the_team() {
    let project = project();
    let agents = |count: u32| format!("{{provider: rehearsal, count: {count}}}");
    let roles = format!("{{coder: {}, code_reviewer: {}, planner: rehearsal}}", agents(3), agents(2));
    project.set_config("roles", &roles);
    let result = project.liza(&["run", "--json"]).result();
    let mut names: Vec<String> = result["ended"]
        .as_array()
        .unwrap()
        .iter()
        .map(|end| end["agent"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["code-reviewer-1", "code-reviewer-2", "coder-1", "coder-2", "coder-3", "planner-1"]);
    assert!(result["ended"].as_array().unwrap().iter().all(|end| end["end"] == "complete"), "{result}");
    assert_eq!(result["progress"]["merged"], 3);
}

/// Covers: AG-16, AX-37
#[test]
fn a_second_team_is_refused() {
    let project = project();
    with_sleepers(&project);
    let mut first = Running::liza(&project, &["run", "--cli", "sleeper", "--plain"]);
    first.wait_for_output("planning");
    let error = project.liza(&["run", "--cli", "sleeper", "--json"]).refused(1, "already_running");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(&format!("process {}, started 20", first.id())), "{message}");
    let before = project.liza(&["status", "--json"]).result()["agents"].as_array().unwrap().len();
    assert_eq!(before, 4);
    first.signal("TERM");
    assert_eq!(first.wait(), 0, "{}", first.output());
    // The leftovers of a killed team do not prevent a new one.
    let mut second = Running::liza(&project, &["run", "--cli", "sleeper", "--plain"]);
    second.wait_for_output("planning");
    second.signal("KILL");
    second.wait();
    let mut third = Running::liza(&project, &["run", "--cli", "sleeper", "--plain"]);
    third.wait_for_output("planning");
    third.signal("TERM");
    third.wait();
}

/// As on a second machine of the same project, and as beside a planner in another terminal.
///
/// Covers: AG-16, MM-08
#[test]
fn a_team_leaves_planning_to_the_planner_that_is_there() {
    let project = project();
    let mut planner = Running::liza(&project, &["agent", "planner", "--cli", "rehearsal"]);
    wait_for("the planner", || project.state().contains("planner-1:").then_some(()));
    let run = project.liza(&["run", "--in-place", "--cli", "rehearsal", "--plain"]);
    assert!(run.ok().starts_with("team: 2 × Coder (rehearsal), 1 × Code Reviewer"), "{run:#?}");
    assert!(run.stderr.contains("planner-1") && run.stderr.contains("plans already"), "{run:#?}");
    assert!(run.stdout.contains("goal COMPLETED · 3 tasks: 3 merged"), "{run:#?}");
    assert_eq!(planner.wait(), 0, "{}", planner.output());
}

/// Covers: AG-09, AG-16
#[test]
fn one_ctrl_c_exits_cleanly_and_a_second_one_at_once() {
    let project = project();
    with_sleepers(&project);
    project.add_task("t1");
    let mut run = Running::liza(&project, &["run", "--cli", "sleeper", "--plain"]);
    run.wait_for_output("working on t1");
    run.signal("INT");
    assert_eq!(run.wait(), 0, "{}", run.output());
    assert!(run.output().contains("stopping; press Ctrl-C again to kill the sessions"), "{}", run.output());
    assert!(run.output().contains("1 task: 1 stopped"), "{}", run.output());
    let status = project.liza(&["status", "--json"]).result();
    assert_eq!(status["agents"].as_array().unwrap().len(), 0, "{status}");
    assert_eq!(status["tasks"][0]["status"], "CLAIMED", "the claim is kept: {status}");

    // A session that ignores SIGTERM is killed by the second signal.
    let stubborn = "#!/bin/sh\ntrap '' TERM\ncat > /dev/null\nwhile :; do sleep 1; done\n";
    fs::write(project.home().join("sleeper.sh"), stubborn).unwrap();
    let mut run = Running::liza(&project, &["run", "--cli", "sleeper", "--plain"]);
    run.wait_for_output("working on t1");
    run.signal("INT");
    run.wait_for_output("stopping");
    run.signal("INT");
    assert_eq!(run.wait(), 0, "{}", run.output());
    assert!(run.output().contains("killing sessions"), "{}", run.output());
    let script = project.home().join("sleeper.sh").display().to_string();
    let left = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
        lines.filter(|line| line.contains(&script)).collect::<Vec<_>>()
    };
    wait_for("nothing runs", || left().is_empty().then_some(()));
}

/// As in `liza run | head -1`.
///
/// Covers: AG-09, AG-16
#[test]
fn a_team_whose_output_is_closed_ends_as_after_ctrl_c() {
    let project = project();
    with_sleepers(&project);
    project.add_task("t1");
    let mut program = project.program();
    program.args(["run", "--cli", "sleeper", "--plain"]);
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut team = program.spawn().unwrap();
    let mut lines = BufReader::new(team.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("working on t1")));
    drop(lines);
    let ended = wait_up_to(Duration::from_secs(30), || team.try_wait().unwrap());
    if ended.is_none() {
        team.kill().unwrap();
    }
    let said = std::io::read_to_string(team.stderr.take().unwrap()).unwrap();
    assert_eq!(ended.map(|ended| ended.code()), Some(Some(0)), "{said}");
    assert!(said.contains("the output is closed; stopping"), "{said}");
    let status = project.liza(&["status", "--json"]).result();
    assert_eq!(status["tasks"][0]["status"], "CLAIMED", "the claim is kept: {status}");
}

/// As with a service manager, or a program that talks to its children by sockets.
///
/// Covers: AG-09
#[test]
fn a_team_whose_output_is_a_socket_goes_on_when_it_is_closed() {
    let project = project();
    with_sleepers(&project);
    project.add_task("t1");
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut program = project.program();
    program.args(["run", "--cli", "sleeper", "--plain"]);
    program.stdin(Stdio::null()).stdout(std::os::fd::OwnedFd::from(theirs)).stderr(Stdio::piped());
    let mut team = program.spawn().unwrap();
    drop(program);
    let mut lines = BufReader::new(ours).lines();
    assert!(lines.any(|line| line.unwrap().contains("working on t1")));
    drop(lines);
    // Longer than it takes to notice a closed pipe.
    let ended = wait_up_to(Duration::from_secs(4), || team.try_wait().unwrap());
    let pid = rustix::process::Pid::from_child(&team);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let said = std::io::read_to_string(team.stderr.take().unwrap()).unwrap();
    assert_eq!((ended, team.wait().unwrap().code()), (None, Some(0)), "{said}");
    assert!(!said.contains("the output is closed"), "{said}");
}

/// An agent program in the config.
fn with_script(project: &TestProject, name: &str, body: &str) {
    let script = project.home().join(format!("{name}.sh"));
    fs::write(&script, format!("#!/bin/sh\ncat > /dev/null\n{body}\n")).unwrap();
    project.run(project.command("chmod").arg("755").arg(&script)).ok();
    let provider = format!("{{program: {}, args: [\"{{task}}\"]}}", script.display());
    project.liza(&["config", &format!("providers.{name}"), &provider]).ok();
}

/// Covers: AG-09, AG-16
#[test]
fn a_merge_interrupted_by_the_end_of_the_team_is_no_failure() {
    let project = project();
    let liza = env!("CARGO_BIN_EXE_liza");
    let code = format!(
        "mkdir scripts; printf '#!/bin/sh\\ntouch \"$HOME/marks/testing\"; sleep 600\\n' > scripts/integration-test.sh
chmod +x scripts/integration-test.sh; git add . && git commit -qm work
{liza} pre-check \"$1\" --intent x --validation x && {liza} submit-for-review \"$1\" \"$(git rev-parse HEAD)\""
    );
    fs::create_dir(project.home().join("marks")).unwrap();
    project.set_config("sandbox_writable", "[~/marks]");
    with_script(&project, "code", &code);
    with_script(&project, "approve", &format!("{liza} submit-verdict \"$1\" APPROVED 'read it'"));
    let tasks: Vec<String> = (1..=8).map(|number| format!("t{number}")).collect();
    tasks.iter().for_each(|task| project.add_task(task));
    let words = ["run", "--cli", "code", "--reviewer-cli", "approve", "--coders", "8", "--reviewers", "8"];
    let mut run = Running::liza(&project, &[&words[..], &["--plain"]].concat());
    // One task is in its integration test; the others wait for it.
    let is_approved = |task: &String| project.status(task) == "APPROVED";
    let testing = || project.home().join("marks/testing").exists() && tasks.iter().all(is_approved);
    wait_for("the test runs", || testing().then_some(()));
    run.signal("INT");
    run.wait_for_output("press Ctrl-C again to kill the sessions");
    let stopped = project.liza(&["stop", "--now"]).ok().to_owned();
    assert!(stopped.contains(": its merge was stopped; the next liza run merges it"), "{stopped}");
    assert_eq!(run.wait(), 0, "{}", run.output());
    let status = project.liza(&["status", "--json"]).result();
    for task in status["tasks"].as_array().unwrap() {
        assert_eq!(task["status"], "APPROVED", "{task}\n{}", run.output());
    }
    assert_eq!(status["agents"].as_array().unwrap().len(), 0, "{status}");
    let said = run.output();
    assert_eq!(said.matches(": its merge was stopped; the next liza run merges it").count(), 1, "{said}");
    assert!(said.contains("\n8 tasks are approved; the next liza run merges them\n"), "{said}");
    let names =
        fs::read_dir(project.root.join(".worktrees")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> =
        names.filter(|name| name.to_string_lossy().starts_with(".integration-test-")).collect();
    assert!(left.is_empty(), "{left:?}\n{said}");
}

/// Covers: AG-04, AG-16
#[test]
fn a_pause_is_reported_once_for_the_whole_team() {
    let project = project();
    project.add_task("t1");
    project.liza(&["pause"]).ok();
    let mut run = Running::liza(&project, &["run", "--in-place", "--cli", "rehearsal", "--plain"]);
    run.wait_for_output(".liza/PAUSE is present; no new work starts");
    project.liza(&["resume"]).ok();
    assert_eq!(run.wait(), 0, "{}", run.output());
    let said = run.output();
    assert_eq!(said.matches("no new work starts").count(), 1, "{said}");
    assert!(said.contains("resuming work"), "{said}");
}

/// Covers: AG-04, AG-16
#[test]
fn a_pause_is_reported_once_despite_lease_renewals() {
    let project = project();
    project.set_config("heartbeat_interval", "1");
    project.liza(&["pause"]).ok();
    let run = Running::liza(&project, &["run", "--in-place", "--cli", "rehearsal", "--plain"]);
    run.wait_for_output(".liza/PAUSE is present; no new work starts");
    let beat = || project.liza(&["get", ".agents.planner-1.heartbeat"]).ok().to_owned();
    for _ in 0..3 {
        let last = beat();
        wait_for("a heartbeat", || (beat() != last).then_some(()));
    }
    assert_eq!(run.output().matches("no new work starts").count(), 1, "{}", run.output());
}

/// Covers: AG-05, AG-16
#[test]
fn a_team_with_a_failed_planner_finishes_its_tasks_then_reports_it_and_ends() {
    let project = project();
    let script = project.home().join("crash.sh");
    fs::write(&script, "#!/bin/sh\ncat > /dev/null\nexit 7\n").unwrap();
    project.run(project.command("chmod").arg("755").arg(&script)).ok();
    project.set_config("max_crashes", "1");
    project.set_config("providers", &format!("{{crash: {{program: {}}}}}", script.display()));
    project.add_task("t1");
    // It wakes the planner, and the task is still done.
    project.liza(&["discover", "--desc", "look here", "--severity", "high", "--urgency", "immediate"]).ok();
    let mut run = Running::liza(
        &project,
        &["run", "--in-place", "--cli", "rehearsal", "--planner-cli", "crash", "--plain"],
    );
    assert_eq!(run.wait(), 1, "{}", run.output());
    let said = run.output();
    assert!(said.contains("1 planning session in a row ended without a result"), "{said}");
    assert!(said.contains("t1 is MERGED"), "{said}");
    assert!(said.contains("goal IN_PROGRESS · 1 task: 1 merged"), "{said}");
    assert!(said.contains("needs you: PLANNER STOPPED: 1 planning session"), "{said}");
    assert!(said.contains("the planner has ended and no agent has work; stopping"), "{said}");
}

/// Covers: AG-16
#[test]
fn needs_script_text_in_the_file_cannot_control_the_terminal() {
    let project = project();
    project.add_task("t1");
    let bad = "status: \"X\\e]0;stolen\\a\\e[8mhidden\"";
    let state = project.state().replacen("status: UNCLAIMED", bad, 1);
    fs::write(project.root.join(".liza/state.yaml"), state).unwrap();
    for words in
        [&["run", "--in-place", "--cli", "rehearsal", "--coders", "0"][..], &["validate"], &["show", "t1"]]
    {
        let shown = Running::liza_in_terminal(&project, words);
        shown.wait_for_output("hidden");
        let said = shown.output();
        assert!(!said.contains("\u{1b}]0;") && !said.contains("\u{1b}[8m"), "{words:?}: {said:?}");
    }
}

/// Covers: AG-16
#[test]
fn needs_script_a_terminal_without_a_screen_has_a_progress_line_that_is_cleared_at_the_end() {
    let project = project();
    let mut program = project.command("script");
    let line = format!("{} run --in-place --cli rehearsal", env!("CARGO_BIN_EXE_liza"));
    program.env("TERM", "dumb").env("COLUMNS", "100").args(["-qefc", &line, "/dev/null"]);
    let mut run = Running::start(&project, program);
    assert_eq!(run.wait(), 0, "{}", run.output());
    let said = run.output();
    assert!(said.contains("of 3 merged"), "{said}");
    // A terminal shows of the last line only what follows the last clearing.
    let summary = said.lines().find(|line| line.contains("goal COMPLETED ·")).unwrap();
    assert_eq!(summary.rsplit("\u{1b}[2K").next().unwrap(), "goal COMPLETED · 3 tasks: 3 merged");
    let last: Vec<&str> = said.lines().rev().take(3).collect();
    assert_eq!(last, ["next goal  liza goal new \"GOAL\"", "take it    liza finish", "review it  liza diff"]);
    let shown = said.lines().find(|line| line.contains("planning")).unwrap();
    assert!(shown.rsplit("\u{1b}[2K").next().unwrap().contains("planner-1"), "{shown:?}");
}

/// Covers: AG-13, AG-16
#[test]
fn a_missing_program_is_reported_before_any_agent_starts() {
    let project = project();
    let error = project.liza(&["run", "--in-place", "--cli", "rehearsal", "--coder-cli", "nobody", "--json"]);
    error.refused(1, "unknown_provider");
    project.set_config("providers", "{gone: {program: /nowhere/agent, install: get it}}");
    let error = project.liza(&["run", "--in-place", "--cli", "rehearsal", "--coder-cli", "gone", "--json"]);
    assert_eq!(error.refused(5, "program_missing")["hint"], "get it");
    assert!(!project.log().contains("registered"), "{}", project.log());
}

/// Covers: UI-03
#[test]
fn a_team_without_any_agent_program_is_refused_with_what_works_without_one() {
    let project = project();
    // Git, and nothing else.
    let tools = project.home().join("tools");
    fs::create_dir(&tools).unwrap();
    let git = project.run(project.command("sh").args(["-c", "command -v git"])).ok().trim().to_owned();
    std::os::unix::fs::symlink(git, tools.join("git")).unwrap();
    let run = |words: &[&str]| project.run(project.program().args(words).env("PATH", &tools));
    let error = run(&["run", "--json"]).refused(5, "program_missing");
    assert_eq!(error["message"], "no agent program is installed");
    assert!(error["hint"].as_str().unwrap().contains("liza run --cli rehearsal"), "{error}");
    let error = run(&["run", "--cli", "codex", "--json"]).refused(5, "program_missing");
    assert!(error["message"].as_str().unwrap().contains("codex"), "{error}");
}

/// Covers: UI-05
#[test]
fn commits_that_the_agents_do_not_have_are_named_when_a_team_starts() {
    let project = project();
    project.write("new.txt", "new\n");
    project.git(&["add", "new.txt"]);
    project.git(&["commit", "-qm", "new"]);
    let words = ["run", "--in-place", "--cli", "rehearsal", "--plain"];
    let run = project.liza(&words);
    assert!(run.stderr.contains("main has 1 commit that the agents do not have"), "{run:#?}");
    assert!(run.stderr.contains("liza sync"), "{run:#?}");
    let other = self::project();
    assert_eq!(other.liza(&words).stderr, "");
}

/// Covers: AG-16, SP-05
#[test]
fn the_watcher_runs_while_the_team_works() {
    let project = project();
    with_sleepers(&project);
    project.add_task("t1");
    project.liza(&["mark-blocked", "t1"]).ok();
    let mut run = Running::liza(&project, &["run", "--cli", "sleeper", "--plain"]);
    run.wait_for_output("⚠️ BLOCKED: t1");
    assert!(project.read(".liza/alerts.log").contains("BLOCKED: t1"));
    let error = project.liza(&["watch", "--json"]).refused(1, "watching");
    assert!(error["hint"].as_str().unwrap().contains("liza watch --once"), "{error}");
    run.signal("TERM");
    assert_eq!(run.wait(), 0, "{}", run.output());

    // A separate watcher does not prevent running a team.
    let mut watch = Running::liza(&project, &["watch"]);
    watch.wait_for_output("watching");
    let mut run = Running::liza(&project, &["run", "--cli", "sleeper", "--plain"]);
    run.wait_for_output("a watcher is already running in this project");
    run.wait_for_output("planning");
    run.signal("TERM");
    assert_eq!(run.wait(), 0, "{}", run.output());
    watch.signal("TERM");
    assert_eq!(watch.wait(), 0, "{}", watch.output());
}

/// Covers: SP-01, SP-03, SP-07
#[test]
fn stop_files_created_manually_act_like_the_commands() {
    let project = project();
    with_sleepers(&project);
    let mut run = Running::liza(&project, &["run", "--cli", "sleeper", "--plain"]);
    run.wait_for_output("planning");
    let sprint = || project.liza(&["sprint", "--json"]).result()["sprint"].clone();
    let checkpoint = project.root.join(".liza/CHECKPOINT");
    fs::write(&checkpoint, "").unwrap();
    run.wait_for_output("CHECKPOINT was created: the sprint waits for liza resume");
    assert_eq!(sprint()["status"], "CHECKPOINT");
    assert!(project.read(".liza/sprint_summary.md").contains("## Decide"));
    fs::remove_file(&checkpoint).unwrap();
    run.wait_for_output("CHECKPOINT was removed: the sprint continues");
    assert_eq!(sprint()["status"], "IN_PROGRESS");
    fs::write(project.root.join(".liza/ABORT"), "").unwrap();
    assert_eq!(run.wait(), 0, "{}", run.output());
    assert!(project.log().contains("action: aborted"), "{}\n{}", project.log(), run.output());
    assert_eq!(project.liza(&["goal", "--json"]).result()["goal"]["status"], "ABORTED");
}

/// Covers: CL-01, AG-16
#[test]
fn no_two_agents_of_a_team_try_the_same_task() {
    let project = project();
    for number in 1..=6 {
        project.add_task(&format!("t{number}"));
    }
    let run = project.liza(&["run", "--in-place", "--cli", "rehearsal", "--plain", "--coders", "6"]);
    run.ok();
    assert!(!project.log().contains("claim_failed"), "{}", project.log());
    let status = project.liza(&["status", "--json", "--all"]).result();
    let merged = status["tasks"].as_array().unwrap().iter().filter(|task| task["status"] == "MERGED").count();
    assert_eq!(merged, 9, "the planner has added one for each part of the goal: {status}");
}

/// Covers: AG-16, CM-05
#[test]
fn a_missing_git_identity_is_reported_before_any_agent_starts() {
    let project = project();
    let nameless = |args: &[&str]| {
        let names =
            ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"];
        let mut command = project.command(env!("CARGO_BIN_EXE_liza"));
        names.iter().for_each(|name| {
            command.env_remove(name);
        });
        project.run(command.env("GIT_CONFIG_GLOBAL", "/dev/null").args(args))
    };
    for args in [
        ["run", "--in-place", "--cli", "rehearsal", "--json"].as_slice(),
        &["agent", "coder", "--cli", "rehearsal", "--json"],
    ] {
        let error = nameless(args).refused(3, "git");
        let message = error["message"].as_str().unwrap();
        assert!(error["hint"].as_str().unwrap().contains("git config --global user.name"), "{error}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    assert!(!project.log().contains("registered"), "{}", project.log());
}

/// Covers: AG-16, CM-05
#[test]
fn a_vision_that_is_still_the_template_is_reported() {
    let project = TestProject::bare();
    fs::remove_file(project.root.join("specs/vision.md")).unwrap();
    project.liza(&["init", "Say hello", "--template"]).ok();
    let run = project.liza(&["run", "--in-place", "--cli", "rehearsal", "--plain"]);
    assert!(run.ok().contains("the plan has 1 task, 1 open"), "{run:#?}");
    assert!(run.stdout.contains("goal COMPLETED · 1 task: 1 merged"), "{run:#?}");
    // The planner's session has a result even if a coder claims the only task at once.
    assert!(!run.stdout.contains("no result"), "{run:#?}");
    assert!(run.stderr.contains("specs/vision.md is still the template"), "{run:#?}");
}

/// Covers: SE-09
#[test]
fn an_installed_program_is_chosen_and_the_first_run_says_what_it_may_do() {
    let project = project();
    let bin = project.home().join("agents");
    fs::create_dir_all(&bin).unwrap();
    for name in ["codex", "goose"] {
        let path = bin.join(name);
        fs::write(&path, "#!/bin/sh\ncat > /dev/null\nexit 0\n").unwrap();
        project.run(project.command("chmod").arg("755").arg(&path)).ok();
    }
    let start = |variables: &[(&str, &str)]| {
        let mut program = project.program();
        program.args(["run", "--plain", "--coders", "0", "--reviewers", "0"]);
        program.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).envs(variables.iter().copied());
        Running::start(&project, program)
    };
    let mut team = start(&[]);
    team.wait_for_output("team: 1 × Planner (codex)");
    let said = team.output();
    assert!(said.contains("no agent program is named; codex is installed and is used"), "{said}");
    assert!(said.contains("First run in this project") && said.contains("codex: runs any command"), "{said}");
    assert!(said.contains("confined: "), "{said}");
    assert!(said.contains("liza config budget.day.tokens 2000000") && !said.contains("dollars"), "{said}");
    team.signal("TERM");
    team.wait();
    // One with a login is preferred, and the notice is shown once.
    let mut team = start(&[("GOOSE_PROVIDER", "openai")]);
    team.wait_for_output("team: 1 × Planner (goose)");
    assert!(!team.output().contains("First run"), "{}", team.output());
    assert!(!team.output().contains("no agent program is named"), "{}", team.output());
    team.signal("TERM");
    team.wait();
}

/// Covers: AX-10
#[test]
fn a_team_that_ends_with_its_planner_leaves_the_alarm_in_the_log_of_alerts() {
    let project = project();
    let script = project.home().join("crash.sh");
    fs::write(&script, "#!/bin/sh\ncat > /dev/null\nexit 7\n").unwrap();
    project.run(project.command("chmod").arg("755").arg(&script)).ok();
    project.set_config("max_crashes", "1");
    project.set_config("providers", &format!("{{crash: {{program: {}}}}}", script.display()));
    let mut run = Running::liza(&project, &["run", "--in-place", "--cli", "crash", "--plain"]);
    assert_eq!(run.wait(), 1, "{}", run.output());
    let alerts = project.read(".liza/alerts.log");
    assert!(alerts.contains("PLANNER STOPPED"), "{alerts}");
}

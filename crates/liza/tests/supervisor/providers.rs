//! Agent programs: which one runs, how it is called, and the error when it is missing.

use std::path::Path;

use liza_core::model::Status;

use crate::fixture::{Bench, CODER};

/// Covers: AG-13
#[test]
fn explain_shows_the_command_line_and_a_missing_program_is_exit_5_with_a_hint() {
    let bench = Bench::new("roles: {coder: {provider: mine, model: big}}", &[]);
    let mine = "{mine: {program: sh, args: [-s, '{role}'], model_args: [--model, '{model}']}}";
    bench.project.set_config("providers", mine);
    bench.project.liza(&["agent", "coder", "t1", "--explain", "--json"]).refused(1, "unknown_task");
    bench.project.add_task("t1");
    let mine = bench.project.liza(&["agent", "coder", "t1", "--explain", "--json"]).result();
    assert_eq!(mine["arguments"], serde_json::json!(["-s", "coder", "--model", "big"]));
    assert_eq!(mine["prompt_on_stdin"], true);

    let mut empty = bench.project.program();
    empty.args(["agent", "coder", "--cli", "codex", "--json"]).env("PATH", "/nonexistent");
    let missing = bench.project.run(&mut empty).refused(5, "program_missing");
    assert!(missing["hint"].as_str().unwrap().contains("npm install"), "{missing}");
    bench.project.liza(&["agent", "coder", "--cli", "unknown", "--json"]).refused(1, "unknown_provider");
    for name in ["claude", "codex", "gemini", "mistral", "opencode", "goose", "rehearsal"] {
        let shown = bench.project.liza(&["agent", "coder", "t1", "--cli", name, "--explain"]).stdout;
        let known = if name == "mistral" { "vibe" } else { name };
        assert!(shown.contains(&format!("provider   {known}")), "{name}: {shown}");
    }
    let planner = bench.project.liza(&["agent", "planner", "--cli", "claude", "--explain"]).stdout;
    assert!(planner.contains("Bash,Read,Glob,Grep\"") && !planner.contains("project/.git\""), "{planner}");
    // Without write access to the worktree's index, an agent in a sandbox cannot commit.
    let codex = bench.project.liza(&["agent", "coder", "t1", "--cli", "codex", "--explain"]).stdout;
    assert!(codex.contains(".worktrees/t1/.git\"") && !codex.contains("project/.git\""), "{codex}");
    assert!(bench.state().board.agents().unwrap().is_empty(), "--explain registers no agent");
}

/// Covers: AX-33
#[test]
fn the_effort_of_a_role_is_an_argument_of_its_program() {
    let bench = Bench::new("roles: {coder: {model: m, effort: high}}", &[]);
    bench.project.add_task("t1");
    let explain =
        |client: &str| bench.project.liza(&["agent", "coder", "t1", "--cli", client, "--explain", "--json"]);
    for (client, words) in [
        ("claude", r#""--model","m","--effort","high""#),
        ("codex", r#""-m","m","-c","model_reasoning_effort=high""#),
    ] {
        let shown = explain(client).stdout;
        assert!(shown.contains(words), "{shown}");
    }
    let refused = explain("goose");
    assert!(refused.code != 0 && refused.stdout.contains("goose has no argument for effort"), "{refused:#?}");
    bench.project.liza(&["config", "roles.coder.efort", "low", "--json"]).refused(1, "unknown_setting");
}

/// Covers: AG-13
#[test]
fn a_program_that_wants_its_prompt_in_a_file_has_it_there_and_nothing_on_its_input() {
    let bench = Bench::new("", &[]);
    let script = r#"test -z "$(cat)" && grep -c "BOOTSTRAP CONTEXT" "$1""#;
    let provider = format!("{{f: {{program: sh, args: [-c, '{script}', f, '{{prompt}}'], prompt: file}}}}");
    bench.project.set_config("providers", &provider);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "f", "--once"]);
    coder.wait();
    assert_eq!(bench.outputs().lines().nth(1), Some("1"), "{}", coder.output());
}

/// Covers: AG-13
#[test]
fn a_prompt_of_any_size_reaches_the_program() {
    let bench = Bench::new("", &[("c", &format!("wc -c < \"$HOME/last-prompt\"\n{CODER}"))]);
    bench.project.add_task("t1");
    for _ in 0..3 {
        bench.project.liza(&["note", &"many words ".repeat(10_000)]).ok();
    }
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0);
    let outputs = bench.outputs();
    let size: usize = outputs.lines().nth(1).unwrap().trim().parse().unwrap();
    assert!(size > 300_000, "{size}");
}

/// Covers: AG-13
#[test]
fn a_program_that_reads_pwd_works_in_the_worktree_too() {
    let bench = Bench::new("providers: {own: {program: env, args: ['GIT_FOLDER={worktree_git}']}}", &[]);
    bench.project.add_task("t1");
    let root = &bench.project.root;
    let mut coder = bench.project.program();
    coder.args(["agent", "coder", "--cli", "own", "--once"]).env("PWD", root).env("OLDPWD", root);
    bench.project.run(&mut coder).ok();
    let outputs = bench.outputs();
    let value = |name: &str| outputs.lines().find_map(|line| line.strip_prefix(name)).map(Path::new);
    assert_eq!(value("PWD="), Some(bench.tree("t1").as_path()), "{outputs}");
    assert_eq!(value("OLDPWD="), None, "{outputs}");
    assert_eq!(value("GIT_FOLDER="), Some(root.join(".worktrees/t1/.git").as_path()), "{outputs}");
}

/// Covers: AG-13, IS-10
#[test]
fn a_program_that_hides_the_git_configuration_commits_for_the_user() {
    commits_as("", "coder-1 for ");
    commits_as("agent_commits: person", "");
}

/// The author of a session's commit is the user's identity after that prefix; the committer is the user.
#[track_caller]
fn commits_as(settings: &str, prefix: &str) {
    let hides = "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1";
    let bench = Bench::new(settings, &[("c", &format!("{hides}\n{CODER}"))]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c", "--once"]);
    assert_eq!(coder.wait(), 0, "{}", bench.outputs());
    let who = |format: &str| bench.project.git(&["log", "-1", &format!("--format={format}"), "task/t1"]);
    let user = format!(
        "{} <{}>",
        bench.project.git(&["config", "user.name"]).trim(),
        bench.project.git(&["config", "user.email"]).trim()
    );
    assert_eq!(bench.status("t1"), Status::ReadyForReview, "{}", bench.outputs());
    assert_eq!((who("%an <%ae>").trim(), who("%cn <%ce>").trim()), (&*format!("{prefix}{user}"), &*user));
}

/// Covers: SE-14
#[test]
fn the_command_lines_know_the_quirks_of_their_programs() {
    let roles = "roles: {coder: {provider: vibe, model: big}, planner: {provider: gemini, model: g}, code_reviewer: {provider: claude, model: c}}";
    let bench = Bench::new(roles, &[]);
    bench.project.add_task("t1");
    let explain = |words: &[&str]| {
        let run = bench.project.liza(&[&["agent"], words, &["--explain", "--json"]].concat());
        run.json()["result"].clone()
    };
    let has = |shown: &serde_json::Value, words: &[&str]| {
        let arguments: Vec<&str> =
            shown["arguments"].as_array().unwrap().iter().filter_map(|word| word.as_str()).collect();
        arguments.windows(words.len()).any(|window| window == words)
    };
    let specs = bench.project.root.join("specs").display().to_string();
    let gemini = explain(&["planner"]);
    assert!(has(&gemini, &["--include-directories", &specs]) && has(&gemini, &["-m", "g"]), "{gemini}");
    let vibe = explain(&["coder"]);
    assert!(vibe["environment"].to_string().contains("VIBE_ACTIVE_MODEL=big"), "{vibe}");
    let codex = explain(&["coder", "--cli", "codex"]);
    assert!(has(&codex, &["-c", "sandbox_workspace_write.network_access=true"]), "{codex}");
    // After a compaction the prompt is put back.
    let claude = explain(&["code-reviewer"]);
    let mut settings = claude["arguments"].as_array().unwrap().iter().filter_map(|word| word.as_str());
    let settings: serde_json::Value =
        serde_json::from_str(settings.rfind(|word| word.starts_with('{')).unwrap()).unwrap();
    let hook = &settings["hooks"]["SessionStart"][0];
    assert_eq!(hook["matcher"], "compact");
    assert!(hook["hooks"][0]["command"].as_str().unwrap().starts_with("cat '"), "{hook}");
    // A person's session has the model and the permissions of its role.
    let interactive = explain(&["code-reviewer", "--interactive"]);
    assert!(has(&interactive, &["--model", "c"]), "{interactive}");
    assert!(has(&interactive, &["--tools", "Bash,Read,Glob,Grep"]), "{interactive}");
}

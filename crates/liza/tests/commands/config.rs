//! `liza config` and the shared file `liza.yaml`.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::TestProject;

fn value(project: &TestProject, key: &str) -> (String, String) {
    let result = project.liza(&["config", key, "--json"]).result();
    let setting = &result["settings"][key];
    (setting["value"].to_string(), setting["source"].as_str().unwrap().to_owned())
}

fn is(project: &TestProject, key: &str, expected: &str, source: &str) {
    assert_eq!(value(project, key), (expected.to_owned(), source.to_owned()), "{key}");
}

/// An agent that starts and finds that its task does not exist.
fn start(project: &TestProject) -> crate::support::Run {
    let run = project.liza(&["agent", "coder", "nothing"]);
    assert_eq!(run.code, 1, "{run:#?}");
    run
}

/// Covers: UI-11
#[test]
fn a_shared_file_applies_after_it_was_accepted_and_the_blackboard_overrides_it() {
    let project = TestProject::new();
    is(&project, "max_crashes", "5", "default");
    project.write("liza.yaml", "max_crashes: 2\nlease_duration: 600\n");
    let run = project.liza(&["config"]);
    assert!(run.ok().contains("max_crashes") && run.stdout.contains("(default)"), "{run:#?}");
    assert!(run.stderr.contains("not accepted this version of liza.yaml"), "{run:#?}");
    let text = project.liza(&["config", "--trust"]).ok().to_owned();
    let changes = "  max_crashes: none → 2\n  lease_duration: none → 600\n";
    assert_eq!(text, format!("liza.yaml is accepted: max_crashes, lease_duration\n{changes}"));
    is(&project, "max_crashes", "2", "liza.yaml");
    is(&project, "lease_duration", "600", "liza.yaml");
    let accepted = std::fs::read_to_string(project.home().join(".config/liza/accepted")).unwrap();
    assert!(accepted.contains(project.root.to_str().unwrap()), "{accepted}");
    project.liza(&["lock", "write", ".config.lease_duration", "900"]).ok();
    is(&project, "lease_duration", "900", "state.yaml");
    // The rules work with it.
    let config = project.snapshot().board.config.ready().unwrap().clone();
    assert_eq!((config.max_crashes, config.lease_duration.0), (2, 900));
    assert_eq!(project.liza(&["validate"]).ok().trim(), "VALID");
    assert_eq!(project.liza(&["config"]).stderr, "");
}

/// Covers: UI-11
#[test]
fn a_changed_file_waits_for_the_human_and_a_known_one_applies_when_an_agent_starts() {
    let project = TestProject::new();
    project.write("liza.yaml", "max_crashes: 2\n");
    project.liza(&["config", "--trust"]).ok();
    project.write("liza.yaml", "max_crashes: 9\n");
    let run = start(&project);
    assert!(run.stderr.contains("not accepted this version of liza.yaml"), "{run:#?}");
    is(&project, "max_crashes", "2", "liza.yaml");
    project.liza(&["config", "--trust"]).ok();
    is(&project, "max_crashes", "9", "liza.yaml");
    // What was accepted once needs no second question.
    project.write("liza.yaml", "max_crashes: 2\n");
    start(&project);
    is(&project, "max_crashes", "2", "liza.yaml");
    std::fs::remove_file(project.root.join("liza.yaml")).unwrap();
    start(&project);
    is(&project, "max_crashes", "5", "default");
}

/// Covers: UI-11
#[test]
fn mistakes_and_what_cannot_be_shared_are_refused() {
    let project = TestProject::new();
    project.liza(&["config", "--trust", "--json"]).refused(1, "no_team_file");
    for text in [
        "sandbox: off",
        "exec_wrapper: [sh]",
        "max_crashse: 1",
        "max_crashes: 0",
        "- a",
        "a: [",
        "coun: 3",
        "roles: {coder: {coun: 3}}",
        "roles: {codr: {count: 3}}",
        "roles: {coder: {count: many}}",
        "budget: {dya: {tokens: 5}}",
        "budget: {day: {token: 5}}",
        "providers: {mine: {argv: [x]}}",
        "prices: {gpt: {in: 1, output: 2}}",
    ] {
        project.write("liza.yaml", text);
        project.liza(&["config", "--trust", "--json"]).refused(1, "bad_team_file");
        assert!(project.liza(&["config"]).stderr.contains("liza.yaml: "), "{text}");
    }
    project.write("liza.yaml", "max_crashes: 3\n");
    project.liza_as("coder-1", &["config", "--trust", "--json"]).refused(1, "not_permitted");
    project.liza(&["config", "nothing", "--json"]).refused(1, "unknown_setting");
    is(&project, "max_crashes", "5", "default");
}

/// A project with an accepted file that the integration branch has too.
fn with_accepted_file() -> TestProject {
    let project = TestProject::new();
    project.write("liza.yaml", "max_crashes: 2\n");
    project.git(&["add", "liza.yaml"]);
    project.git(&["commit", "-qm", "settings"]);
    project.liza(&["sync"]).ok();
    project.liza(&["config", "--trust"]).ok();
    project
}

/// Covers: UI-11
#[test]
fn a_merge_that_changes_the_file_is_an_alarm() {
    let project = with_accepted_file();
    assert!(!project.liza(&["status"]).ok().contains("TEAM FILE CHANGED"));
    project.git(&["checkout", "-qb", "other"]);
    project.write("liza.yaml", "max_crashes: 3\nsetup: rm -rf /\n");
    project.git(&["commit", "-qam", "more"]);
    project.git(&["checkout", "-q", "main"]);
    project.liza(&["sync", "other"]).ok();
    let status = project.liza(&["status", "--json"]).result();
    assert!(status["needs_you"].to_string().contains("liza config --trust"), "{status}");
    is(&project, "max_crashes", "2", "liza.yaml");
}

/// Covers: UI-11
#[test]
fn a_setting_is_set_and_unset_on_the_blackboard() {
    let project = TestProject::new();
    let setting = |key: &str| project.liza(&["config", key, "--json"]).result()["settings"][key].clone();
    project.liza(&["config", "lease_duration", "600"]).ok();
    assert_eq!(setting("lease_duration"), serde_json::json!({"value": 600, "source": "state.yaml"}));
    project.liza(&["config", "roles.coder.count", "4"]).ok();
    assert_eq!(setting("roles")["value"]["coder"]["count"], 4);
    project.liza(&["config", "copy", "[.env, key]"]).ok();
    assert_eq!(setting("copy")["value"], serde_json::json!([".env", "key"]));
    assert!(project.log().contains("detail: lease_duration 600"), "{}", project.log());

    project.liza(&["config", "lease_duration", "--unset"]).ok();
    assert_eq!(setting("lease_duration"), serde_json::json!({"value": 300, "source": "default"}));
    project.liza(&["config", "roles.coder.count", "--unset"]).ok();
    project.liza(&["config", "lease_duration", "--unset", "--json"]).refused(1, "unknown_setting");
    project.liza(&["validate"]).ok();
}

/// Covers: UI-11, AG-16
#[test]
fn a_part_of_a_role_is_set_where_the_role_is_only_a_name() {
    let project = TestProject::new();
    project.liza(&["config", "roles", "{coder: claude}"]).ok();
    project.liza(&["config", "roles.coder.provider", "codex"]).ok();
    assert_eq!(value(&project, "roles.coder").0, r#"{"provider":"codex"}"#);
    project.liza(&["config", "roles", "{coder: claude}"]).ok();
    project.liza(&["config", "roles.coder.model", "sonnet[1m]"]).ok();
    assert_eq!(value(&project, "roles.coder").0, r#"{"provider":"claude","model":"sonnet[1m]"}"#);
    project.liza(&["config", "roles", "{coder: claude}"]).ok();
    project.liza(&["config", "roles.coder.provider", "[claude, codex]"]).ok();
    assert_eq!(value(&project, "roles.coder").0, r#"{"provider":["claude","codex"]}"#);
}

/// Covers: UI-11, AC-11
#[test]
fn a_setting_is_checked_before_it_is_set() {
    let project = TestProject::new();
    let before = project.state();
    let error = project.liza(&["config", "lease_duration", "5", "--json"]).refused(1, "invalid");
    assert!(error["message"].as_str().unwrap().contains("allowed: 10 to 86400 s"), "{error}");
    let error = project.liza(&["config", "lease_durration", "60", "--json"]).refused(1, "unknown_setting");
    assert!(error["hint"].as_str().unwrap().contains("did you mean lease_duration?"), "{error}");
    project.liza(&["config", "team_file", "x", "--json"]).refused(1, "unknown_setting");
    for count in ["zwei", "-1", "\"2\""] {
        let set = ["config", "--json", "roles.coder.count", "--", count];
        let error = project.liza(&set).refused(1, "invalid");
        assert!(error["message"].as_str().unwrap().contains("a number of agents"), "{count}: {error}");
    }
    project.liza(&["config", "lease_duration", "60", "--trust", "--json"]).refused(1, "usage");
    project.liza_as("coder-1", &["config", "lease_duration", "60", "--json"]).refused(1, "not_permitted");
    assert_eq!(project.state(), before);
}

/// Covers: UI-11
#[test]
fn a_value_that_is_the_default_does_not_override_the_file() {
    let project = TestProject::new();
    // Earlier versions wrote every setting.
    project.set_config("max_crashes", "5");
    project.write("liza.yaml", "max_crashes: 2\nlease_duration: 600\n");
    project.liza(&["config", "--trust"]).ok();
    is(&project, "max_crashes", "2", "liza.yaml");
    let get = |key: &str| project.liza(&["get", &format!(".config.{key}")]).ok().to_owned();
    assert_eq!((get("max_crashes"), get("lease_duration")), ("2\n".to_owned(), "600\n".to_owned()));
    let set = project.liza(&["config", "max_crashes", "5"]);
    set.ok();
    assert!(set.stderr.contains("the default, which does not override liza.yaml"), "{set:#?}");
    let set = project.liza(&["config", "max_crashes", "6"]);
    assert_eq!((set.ok(), set.stderr.as_str()), ("max_crashes is set on the blackboard: 6\n", ""));
    is(&project, "max_crashes", "6", "state.yaml");
    assert_eq!(get("max_crashes"), "6\n");
}

/// Covers: UI-11
#[test]
fn every_setting_is_shown_with_its_value_and_its_source() {
    let project = TestProject::new();
    let shown = project.liza(&["config"]).ok().to_owned();
    let line = |key: &str| {
        let mut lines = shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.find(|line| line.starts_with(&format!("{key} "))).unwrap_or_default()
    };
    assert_eq!(line("main_branch"), "main_branch main (blackboard)");
    assert_eq!(line("sandbox"), "sandbox auto (default)");
    assert_eq!(line("setup"), "setup none (default)");
    assert_eq!(line("budget"), "budget none (default)");
    assert_eq!((line("team_file"), line("sandbox_read")), (String::new(), String::new()));
    project.liza(&["config", "roles.coder.count", "4"]).ok();
    let count = project.liza(&["config", "roles.coder.count"]).ok().to_owned();
    assert_eq!(count, "roles.coder.count  4  (blackboard)\n");
    project.liza(&["config", "roles.coder.model", "--json"]).refused(1, "unknown_setting");
}

/// Covers: UI-11, UI-03
#[test]
fn needs_script_a_person_sees_what_changes_before_a_shared_file_is_accepted() {
    let project = TestProject::new();
    project.write("liza.yaml", "max_crashes: 2\nlease_duration: 600\n");
    project.liza(&["config", "--trust"]).ok();
    project.write("liza.yaml", "max_crashes: 2\nsetup: rm -rf /\n");
    let said = project.liza_at_terminal("config --trust", "n\n");
    assert!(said.contains("setup: none → rm -rf /") && said.contains("lease_duration: 600 → none"), "{said}");
    assert!(!said.contains("max_crashes:") && said.contains("nothing was accepted"), "{said}");
    is(&project, "lease_duration", "600", "liza.yaml");
    let said = project.liza_at_terminal("config --trust", "y\n");
    assert!(said.contains("liza.yaml is accepted: max_crashes, setup"), "{said}");
    project.write("liza.yaml", "max_crashes: 3\n");
    let said = project.liza_at_terminal("config --trust --yes", "");
    assert!(said.contains("liza.yaml is accepted: max_crashes") && !said.contains("[y/N]"), "{said}");
}

/// Covers: UI-11, UI-03
#[test]
fn a_changed_shared_file_that_is_not_checked_out_is_read_first() {
    let project = with_accepted_file();
    project.git(&["checkout", "-qb", "other"]);
    project.write("liza.yaml", "max_crashes: 3\n");
    project.git(&["commit", "-qam", "more"]);
    project.git(&["checkout", "-q", "main"]);
    project.liza(&["sync", "other"]).ok();
    let command = || project.liza(&["status", "--json"]).result()["needs_you"][0]["command"].clone();
    assert_eq!(command(), "git diff HEAD integration -- liza.yaml");
    project.git(&["merge", "-q", "integration"]);
    assert_eq!(command(), "liza config --trust");
}

/// Covers: SE-06
#[test]
fn a_budget_in_dollars_that_cannot_be_kept_is_reported_when_it_is_set() {
    let project = TestProject::new();
    let kept = project.liza(&["config", "budget.day.dollars", "20"]);
    assert_eq!((kept.code, kept.stderr.as_str()), (0, ""), "{kept:#?}");
    project.liza(&["config", "roles.coder", "codex"]).ok();
    let run = project.liza(&["config", "budget.day.dollars", "10"]);
    run.ok();
    assert!(run.stderr.contains("codex does not report what its sessions cost"), "{run:#?}");
    assert!(run.stderr.contains("liza config budget.day.tokens 2000000"), "{run:#?}");
    assert!(run.stderr.contains("without the dollars: liza config budget.day.dollars null"), "{run:#?}");
    assert_eq!(project.liza(&["config", "budget.day.tokens", "5"]).code, 0);
}

/// Covers: UI-11
#[test]
fn a_shared_file_that_is_gone_is_reported_and_dropped_on_request() {
    let project = TestProject::new();
    project.write("liza.yaml", "max_crashes: 2\n");
    project.liza(&["config", "--trust"]).ok();
    std::fs::remove_file(project.root.join("liza.yaml")).unwrap();
    let shown = project.liza(&["config"]);
    assert!(shown.stderr.contains("liza.yaml is gone; its settings still apply"), "{shown:#?}");
    assert!(shown.stderr.contains("liza config --trust"), "{shown:#?}");
    let dropped = project.liza(&["config", "--trust"]);
    assert_eq!(dropped.ok(), "liza.yaml is gone; its settings no longer apply:\n  max_crashes: 2 → none\n");
    is(&project, "max_crashes", "5", "default");
    assert_eq!(project.liza(&["config"]).stderr, "");
    project.liza(&["config", "--trust", "--json"]).refused(1, "no_team_file");
}

/// Covers: SE-06
#[test]
fn a_budget_in_dollars_is_reported_if_the_program_that_would_run_reports_no_cost() {
    let project = TestProject::new();
    let run = with_codex_only(&project, &["config", "budget.day.dollars", "20"]);
    run.ok();
    assert!(run.stderr.contains("codex does not report what its sessions cost"), "{run:#?}");
    assert!(run.stderr.contains("liza config budget.day.tokens 2000000"), "{run:#?}");
}

/// Covers: UI-11
#[test]
fn a_word_for_a_list_is_refused_with_the_form_of_a_list() {
    let project = TestProject::new();
    let error = project.liza(&["config", "copy", ".venv", "--json"]).refused(1, "bad_config");
    assert_eq!(error["hint"], "write it in brackets: liza config copy '[.venv]'");
    project.liza(&["config", "copy", "[.venv]"]).ok();
    assert!(project.liza(&["config", "copy"]).ok().contains(".venv"));
}

/// Runs a command where codex is the only agent program that is installed.
fn with_codex_only(project: &TestProject, args: &[&str]) -> crate::support::Run {
    let codex = project.home().join("agents/codex");
    std::fs::create_dir_all(codex.parent().unwrap()).unwrap();
    std::fs::write(&codex, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&codex, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", codex.parent().unwrap().display());
    project.run(project.program().args(args).env("PATH", path))
}

/// Covers: UI-11
#[test]
fn a_role_without_a_program_is_checked_with_the_one_that_a_run_would_use() {
    let project = TestProject::new();
    project.liza(&["config", "roles.coder.count", "4"]).ok();
    let said = with_codex_only(&project, &["doctor"]).stdout;
    assert!(said.contains("liza run uses codex") && !said.contains("needs the program claude"), "{said}");
}

/// Covers: UI-11
#[test]
fn a_role_with_a_wrong_count_is_refused_before_a_run_is() {
    let project = TestProject::new();
    for (key, wrong) in [
        ("roles.coder", "{count: zwei}"),
        ("roles", "{coder: {count: zwei}}"),
        ("roles.coder", "[4]"),
        ("roles.coder.network", "never"),
    ] {
        let error = project.liza(&["config", key, wrong, "--json"]).refused(1, "invalid");
        assert!(error["message"].as_str().unwrap().contains("roles.coder"), "{error}");
    }
    project.liza(&["config", "roles.coder", "{count: 4}"]).ok();
    project.liza(&["config", "roles.coder.provider", "codex"]).ok();
    is(&project, "roles.coder.count", "4", "state.yaml");
}

/// Covers: UI-11
#[test]
fn a_budget_is_set_as_a_person_writes_it() {
    let project = TestProject::new();
    let error = project.liza(&["config", "budget.day.tokens", "viel", "--json"]).refused(1, "invalid");
    assert_eq!(
        error["message"],
        "budget.day.tokens must be a number of tokens, such as 5000000, 5M, 5 million or 500k, not \"viel\""
    );
    for (written, tokens) in [("5 million", "5000000"), ("5.5M", "5500000"), ("500k", "500000")] {
        let said = project.liza(&["config", "budget.day.tokens", written]);
        assert!(said.ok().contains(&format!("budget.day.tokens is set on the blackboard: {tokens}")));
    }
    project.liza(&["config", "budget.day", "{tokens: 2M}"]).ok();
    project.liza(&["config", "budget.sprint.dollars", "$12.50"]).ok();
    let shown = project.liza(&["config", "budget", "--json"]).result();
    let budget = &shown["settings"]["budget"]["value"];
    assert_eq!((&budget["day"]["tokens"], &budget["sprint"]["dollars"]), (&2_000_000.into(), &12.5.into()));
    let error = project.liza(&["config", "budget.day", "{tokens: many}", "--json"]).refused(1, "invalid");
    assert!(error["message"].as_str().unwrap().contains("expected a number of tokens, such as"), "{error}");
}

/// Covers: UI-11
#[test]
fn a_budget_of_none_is_taken_away_with_unset() {
    let project = TestProject::new();
    let error = project.liza(&["config", "budget.day.dollars", "none", "--json"]).refused(1, "invalid");
    assert!(error["hint"].as_str().unwrap().contains("liza config budget.day.dollars --unset"), "{error}");
    assert!(error["message"].as_str().unwrap().ends_with("such as 20 or 12.50, not \"none\""), "{error}");
}

//! `liza show`.

use crate::boards::{BUSY, project};
use crate::support::TestProject;

/// The history has dates; everything else is relative.
fn masked(page: &str) -> String {
    let (top, history) = page.split_once("HISTORY").unwrap();
    let lines = history.lines().map(|line| match line.get(..19) {
        Some(start) if !start.starts_with(' ') => format!("2026-01-01 00:00:00{}", &line[19..]),
        Some(_) | None => line.to_owned(),
    });
    format!("{top}HISTORY{}", lines.collect::<Vec<_>>().join("\n"))
}

/// Covers: NT-04
#[test]
fn a_task_with_its_notes_and_history() {
    let project = project(BUSY);
    let run = project.run(project.program().args(["show", "retry-users"]).env("COLUMNS", "80"));
    insta::assert_snapshot!(masked(run.ok()));
}

/// Covers: CM-03
#[test]
fn programs_get_the_record_and_what_belongs_to_it() {
    let result = project(BUSY).liza(&["show", "retry-users", "--json"]).result();
    assert_eq!(result["task"]["command"], "liza submit-for-review retry-users COMMIT");
    assert_eq!(result["record"]["status"], "CLAIMED");
    assert_eq!(result["needed_by"][0], "retry-report");
    assert_eq!(result["handoff"]["next_action"], "Test the timeout");
    assert_eq!(result["notes"].as_array().unwrap().len(), 2);
    assert_eq!(result["anomalies"][0]["type"], "trade_off");
}

/// Covers: CM-05
#[test]
fn an_unknown_task_is_refused_with_a_hint() {
    let project = TestProject::new();
    let error = project.liza(&["show", "nobody", "--json"]).refused(1, "unknown_task");
    assert!(error["hint"].as_str().unwrap().contains("liza status"));
    assert_eq!(project.liza(&["show", "../x", "--json"]).code, 1);
}

/// Covers: UI-01
#[test]
fn the_output_of_a_task_is_that_of_its_own_last_session() {
    let project = TestProject::new();
    for id in ["one", "two"] {
        project.add_task(id);
    }
    for (name, text) in [
        ("coder-1-20260117T140000Z-1-one", "first"),
        ("coder-2-20260117T140100Z-1-one", "second"),
        ("coder-1-20260117T140200Z-1-two", "other"),
    ] {
        project.write(&format!(".liza/agent-outputs/{name}.log"), &format!("{text}\n"));
    }
    assert_eq!(project.liza(&["tail", "one", "--no-follow"]).ok(), "second\n");
    assert_eq!(project.liza(&["tail", "coder-1", "--no-follow"]).ok(), "other\n");
    assert_eq!(project.liza(&["tail", "one", "--json"]).result()["agent"], "coder-2");
    let error = project.liza(&["tail", "three", "--json"]).refused(1, "no_output");
    assert!(error["message"].as_str().unwrap().contains("no session on three"), "{error}");
}

/// Covers: UI-01, IS-09
#[test]
fn what_a_session_prints_for_a_terminal_is_shown_as_text() {
    let project = TestProject::new();
    project.add_task("one");
    let log = ".liza/agent-outputs/coder-1-20260117T140000Z-1-one.log";
    project.write(log, "begin \u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e} end\n");
    for color in ["always", "never"] {
        let shown = project.liza(&["tail", "one", "--no-follow", "--color", color]).ok().to_owned();
        let bad = ["\u{1b}]", "\u{1b}[2J", "\u{7}", "\u{9b}", "\u{202e}"];
        assert!(shown.contains("begin ") && bad.iter().all(|bad| !shown.contains(bad)), "{shown:?}");
    }
}

/// Covers: UI-01, SE-07
#[test]
fn an_output_of_an_agent_that_was_started_again_is_readable() {
    let project = TestProject::new();
    let printed =
        "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"All done.\"}}\n";
    project.write(".liza/agent-outputs/coder-1-20260117T140000Z-1-one.log", printed);
    let said = || project.liza(&["tail", "coder-1", "--no-follow"]).ok().to_owned();
    assert_eq!(said(), "All done.\n", "no team");
    project.register("coder-1");
    assert_eq!(said(), "All done.\n", "it has had no session in this run");
}

/// Covers: AX-19
#[test]
fn the_answers_of_tools_are_folded_and_a_refusal_is_red() {
    let project = TestProject::new();
    let command = |id: u32, command: &str, said: &str, code: u32| {
        let item = serde_json::json!({"id": id.to_string(), "type": "command_execution", "command": command,
            "aggregated_output": said, "exit_code": code});
        ["item.started", "item.completed"]
            .map(|kind| format!("{}\n", serde_json::json!({"type": kind, "item": item})))
            .concat()
    };
    let evil = "1\n2\n3\n4\n5\n\u{1b}[31mred\u{1b}]0;t\u{7}\u{202e}!\n";
    let refusal = project.liza(&["submit-verdict", "t1", "APPROVED"]);
    assert_ne!(refusal.code, 0);
    let printed = [
        command(1, "cargo test", evil, 0),
        command(2, "liza submit-verdict t1 APPROVED", &refusal.stderr, 1),
    ];
    project.write(".liza/agent-outputs/coder-1-20260117T140000Z-1-one.log", &printed.concat());
    let page = project.liza(&["tail", "coder-1", "--no-follow"]).ok().to_owned();
    assert!(
        page.contains("▸ shell: cargo test\n  ↳ exit 0, 2 lines more\n    3\n    4\n    5\n    red!\n"),
        "{page}"
    );
    let reason = refusal.stderr.lines().next().unwrap();
    assert!(page.contains(&format!("APPROVED\n  ↳ exit 1, refused by Liza\n    {reason}\n")), "{page}");
    let colored = project.liza(&["tail", "coder-1", "--no-follow", "--color", "always"]).ok().to_owned();
    let red = |text: &str| colored.contains(&format!("\u{1b}[31m{text}"));
    assert!(red("  ↳ exit 1, refused by Liza") && !red("  ↳ exit 0"), "{colored:?}");
    let json = project.liza(&["tail", "coder-1", "--no-follow", "--json"]).result();
    assert_eq!(json["lines"][1], "  ↳ exit 0, 2 lines more\n    3\n    4\n    5\n    red!", "{json}");
}

/// Covers: UI-01
#[test]
fn of_two_sessions_in_one_second_the_later_output_is_shown() {
    let project = TestProject::new();
    let write = |name: &str, text: &str, age: u64| {
        let path = format!(".liza/agent-outputs/coder-1-20260117T140000Z-1-{name}.log");
        project.write(&path, &format!("{text}\n"));
        let file = std::fs::File::options().append(true).open(project.root.join(path)).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
    };
    for (old, new) in [("a", "b"), ("b", "a")] {
        write(old, "old", 60);
        write(new, "new", 10);
        assert_eq!(project.liza(&["tail", "coder-1", "--no-follow"]).ok(), "new\n", "{new}");
    }
}

/// Covers: UI-03
#[test]
fn a_coder_that_only_asked_has_not_failed() {
    let project = TestProject::new();
    project.add_task("one");
    project.liza_as("coder-1", &["register", "coder-1"]).ok();
    project.liza_as("coder-1", &["claim-task", "one", "coder-1"]).ok();
    let words = ["mark-blocked", "one", "--reason", "unclear", "--question", "How often?"];
    project.liza_as("coder-1", &words).ok();
    let page = project.liza(&["show", "one"]).ok().to_owned();
    assert!(page.contains("How often?") && !page.contains("Failed by"), "{page}");
}

/// Covers: UI-12
#[test]
fn a_proposed_task_waits_for_the_person() {
    let project = TestProject::new();
    project.set_config("plan_approval", "true");
    project.liza_as("planner-1", &["register", "planner-1"]).ok();
    let words = ["add-task", "--id", "one", "--desc", "d", "--spec", "specs/vision.md", "--done", "d"];
    project.liza_as("planner-1", &[&words[..], &["--scope", "s", "--draft"]].concat()).ok();
    project.liza_as("planner-1", &["finalize", "one"]).ok();
    let page = project.liza(&["show", "one"]).ok().to_owned();
    assert!(page.contains("you approve it") && !page.contains("the planner finalizes it"), "{page}");
}

/// Covers: CM-03, CM-05
#[test]
fn the_beginning_of_an_id_is_enough_for_what_people_type() {
    let project = TestProject::new();
    for id in ["retry", "retry-orders", "retry-users", "cache-prices"] {
        project.add_task(id);
    }
    project.write(".liza/agent-outputs/coder-1-20260117T140000Z-1-cache-prices.log", "cached\n");
    assert!(project.liza(&["show", "cache"]).ok().starts_with("cache-prices "));
    assert!(project.liza(&["show", "retry"]).ok().starts_with("retry "), "an exact ID is always meant");
    assert_eq!(project.liza(&["tail", "cache", "--no-follow"]).ok(), "cached\n");
    assert!(project.liza(&["log", "--task", "cache"]).ok().contains("cache-prices"));
    assert_eq!(project.liza(&["log", "cache"]).ok(), project.liza(&["log", "--task", "cache"]).ok());
    assert!(project.liza(&["note", "Use it", "--for", "cache"]).ok().contains("cache-prices"));
    assert!(project.liza(&["answer", "cache", "Yes"]).ok().contains("cache-prices"));
    let error = project.liza(&["diff", "cache", "--json"]).refused(1, "no_commits");
    assert!(error["message"].as_str().unwrap().contains("cache-prices"), "{error}");
    for verb in [&["show", "retry-"][..], &["show", "re"], &["answer", "re", "x"], &["log", "--task", "re"]] {
        let run = project.liza(&[verb, &["--json"]].concat());
        let code = if verb[1] == "retry-" { "usage" } else { "ambiguous_task" };
        let error = run.refused(1, code);
        if code == "ambiguous_task" {
            let message = error["message"].as_str().unwrap();
            assert!(message.ends_with("3 tasks: retry, retry-orders, retry-users"), "{message}");
        }
    }
    for verb in [&["show", "no"][..], &["log", "--task", "no"], &["submit-for-review", "no", "HEAD"]] {
        project.liza(&[verb, &["--json"]].concat()).refused(1, "unknown_task");
    }
    // What agents call takes whole IDs only.
    project.liza(&["abandon-task", "cache", "--reason", "x", "--json"]).refused(1, "unknown_task");
}

/// Covers: CM-05
#[test]
fn a_misspelled_task_and_an_unknown_agent_are_named() {
    let project = TestProject::new();
    project.add_task("discount-codes");
    for verb in [&["show", "dicsount"][..], &["tail", "discuont-codes"], &["answer", "dicsount-codes", "x"]] {
        let error = project.liza(&[verb, &["--json"]].concat()).refused(1, "unknown_task");
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.starts_with("did you mean discount-codes?"), "{verb:?}: {hint}");
    }
    let error = project.liza(&["show", "prices", "--json"]).refused(1, "unknown_task");
    assert!(!error["hint"].as_str().unwrap().contains("did you mean"), "{error}");
    let error = project.liza(&["tail", "coder-9", "--json"]).refused(1, "no_output");
    let message = error["message"].as_str().unwrap();
    assert_eq!(message, "there is no agent coder-9, and none of that name has printed anything");
    project.liza_as("coder-1", &["register", "coder-1"]).ok();
    let error = project.liza(&["tail", "coder-1", "--json"]).refused(1, "no_output");
    assert_eq!(error["message"], "no session of coder-1 has printed anything yet");
}

/// Covers: UI-01, UI-03
#[test]
fn the_page_of_a_task_has_the_words_of_the_board() {
    let project = TestProject::new();
    project.add_task("one");
    let first =
        |project: &TestProject| project.liza(&["show", "one"]).ok().lines().next().unwrap().to_owned();
    assert!(first(&project).starts_with("one  READY "), "{}", first(&project));
    project.liza_as("coder-1", &["register", "coder-1"]).ok();
    project.liza_as("coder-1", &["claim-task", "one", "coder-1"]).ok();
    assert!(first(&project).starts_with("one  IN PROGRESS "), "{}", first(&project));
    let words = ["pre-check", "one", "--intent", "build it", "--validation", "cargo test", "--file", "a.rs"];
    project.liza_as("coder-1", &words).ok();
    let words = ["anomaly", "spec_ambiguity", "--task", "one", "--detail", "spec_ref=a.md"];
    project.liza_as("coder-1", &words).ok();
    let page = project.liza(&["show", "one"]).ok().to_owned();
    assert!(page.contains("pre-check") && page.contains("attempt: 1"), "{page}");
    assert!(page.contains("coder-1 reports an unclear specification: specification: a.md"), "{page}");
    assert!(!page.contains("pre_execution_checkpoint") && !page.contains("iteration:"), "{page}");
    project.liza_as("coder-1", &["deregister", "coder-1"]).ok();
    assert!(first(&project).starts_with("one  STOPPED "), "{}", first(&project));
    let status = project.liza(&["status"]).ok().to_owned();
    assert!(
        status.contains("STOPPED 1") && !status.contains("READY") && !status.contains("in progress"),
        "{status}"
    );
    let log = project.liza(&["log"]).ok().to_owned();
    assert!(log.contains("one is stopped") && !log.contains("stays claimed"), "{log}");
    // Agents know the names of the states.
    project.liza_as("coder-2", &["register", "coder-2"]).ok();
    let page = project.liza_as("coder-2", &["show", "one"]).ok().to_owned();
    assert!(page.starts_with("one  CLAIMED "), "{page}");
}

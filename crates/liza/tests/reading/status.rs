//! `liza status`: the page at several widths, its JSON, its refusals.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use liza_core::model::Timestamp;
use liza_core::text::one_line;
use serde_json::json;

use crate::boards::{BUSY, FIRE, in_one_second, project};
use crate::support::TestProject;

fn page(project: &TestProject, columns: &str, arguments: &[&str]) -> String {
    let page = project.run(project.program().args(arguments).env("COLUMNS", columns)).ok().to_owned();
    for line in page.lines() {
        let width = unicode_width::UnicodeWidthStr::width(line);
        assert!(width <= columns.parse().unwrap(), "{width}: {line}");
    }
    page
}

/// Covers: BB-15
#[test]
fn an_empty_board_suggests_what_to_do_next() {
    let project = TestProject::new();
    insta::assert_snapshot!(page(&project, "80", &["status"]));
}

/// Covers: BB-15, UI-03
#[test]
fn a_vision_that_is_not_written_needs_the_human() {
    let project = TestProject::new();
    fs::remove_file(project.root.join("specs/vision.md")).unwrap();
    let said = page(&project, "80", &["status"]);
    assert!(said.contains("NEEDS YOU\n   ! VISION\n     specs/vision.md does not exist"), "{said}");
    assert!(said.contains("→ liza init --template"), "{said}");
    project.liza(&["init", "--template"]).ok();
    let said = page(&project, "80", &["status"]);
    assert!(said.contains("     specs/vision.md is still the template"), "{said}");
    assert!(said.contains("→ ${EDITOR:-vi} specs/vision.md"), "{said}");
    let said = project.liza(&["doctor"]).stdout;
    let test = "ok    integration test    none: nothing but the code reviewer judges merges; to test them: write scripts/integration-test.sh, commit it, then: liza sync";
    assert!(said.contains(test), "{said}");
    assert!(said.contains("warn  specifications      specs/vision.md is still the template"), "{said}");
    // The heading alone does not say what is wanted.
    let template = project.read("specs/vision.md");
    project.write("specs/vision.md", &template.replace("# Vision: Retry everything", "# Everything retries"));
    assert!(page(&project, "80", &["status"]).contains("VISION"));
    project.write("specs/vision.md", "# Everything retries\n\nEach call is tried three times.\n");
    assert!(!page(&project, "80", &["status"]).contains("NEEDS YOU"));
}

/// Covers: BB-15
#[test]
fn without_a_running_agent_the_team_is_suggested() {
    let project = TestProject::new();
    project.add_task("t1");
    let said = page(&project, "80", &["status"]);
    assert!(said.contains("No team is running. Start it:\n  → liza run"), "{said}");
    let ended = TestProject::new();
    ended.add_task("t1");
    ended.liza(&["abandon-task", "t1", "--reason", "not needed"]).ok();
    let said = page(&ended, "120", &["status"]);
    assert!(said.contains("the planner has not judged the goal yet"), "{said}");
    // With a part of it, what is missing.
    project.register("code-reviewer-1");
    let said = page(&project, "80", &["status"]);
    assert!(said.contains("no coder is running:\n  → liza agent coder"), "{said}");
}

#[test]
fn a_busy_team_at_80_columns() {
    insta::assert_snapshot!(in_one_second(|| page(&project(BUSY), "80", &["status"])));
}

#[test]
fn a_busy_team_at_40_columns() {
    insta::assert_snapshot!(in_one_second(|| page(&project(BUSY), "40", &["status"])));
}

/// Covers: UI-03, AX-20
#[test]
fn a_long_failure_of_an_agent_shows_its_cause() {
    let result =
        format!("rehearsal exited 1: liza: /{}pb.yaml:4:170: unknown step", "a-long-folder/".repeat(9));
    let last = format!(
        "    last_session: {{client: rehearsal, started: \"@-60\", ended: \"@-50\", failed: true, result: {result:?}}}\n"
    );
    let board = BUSY.replace("    role: planner\n", &format!("    role: planner\n{last}"));
    let said = page(&project(&board), "80", &["status"]);
    assert!(said.contains("rehearsal exited 1: ") && said.contains(": unknown step\n"), "{said}");
}

/// The page without its one absolute time.
fn undated(page: &str) -> String {
    let masked = page.lines().map(|line| match line.split_once("was due at ") {
        Some((before, _)) => format!("{before}was due at TIME"),
        None => line.to_owned(),
    });
    masked.collect::<Vec<_>>().join("\n")
}

/// Covers: CM-05, UI-03
#[test]
fn everything_on_fire_at_80_columns() {
    let (short, all) = in_one_second(|| {
        let project = project(FIRE);
        project.write(".liza/PAUSE", &crate::boards::dated("@-7830\n"));
        (page(&project, "80", &["status"]), page(&project, "80", &["status", "--all"]))
    });
    insta::assert_snapshot!(undated(&short));
    insta::assert_snapshot!("on_fire_all", undated(&all));
}

/// Covers: CM-03
#[test]
fn programs_get_the_same_as_data() {
    let result = project(BUSY).liza(&["status", "--json"]).result();
    for part in ["goal", "sprint", "tasks", "agents", "alerts", "claimable", "reviewable", "planner_triggers"]
    {
        assert!(!result[part].is_null(), "{part} in {result:#}");
    }
    assert_eq!(result["claimable"], json!(["retry-mail"]));
    assert_eq!(result["reviewable"], json!([]));
    assert_eq!(result["sprint"]["progress"]["merged"], 1);
    let task = |id: &str| {
        let tasks = result["tasks"].as_array().unwrap();
        tasks.iter().find(|task| task["id"] == id).unwrap().clone()
    };
    assert_eq!(task("retry-report")["waits_for"][0], json!({"task": "retry-users", "status": "CLAIMED"}));
    assert_eq!(task("retry-users")["owner"], "coder-1");
    let liveness: Vec<&str> = result["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["liveness"].as_str().unwrap())
        .collect();
    assert_eq!(liveness, ["live", "live", "grace", "live"]);
    assert!(result["now"].as_str().unwrap().parse::<Timestamp>().is_ok());
}

/// Covers: CM-06
#[test]
fn outside_a_project_it_is_refused_with_a_hint() {
    let project = TestProject::bare();
    let error = project.liza(&["status", "--json"]).refused(1, "no_project");
    assert!(error["hint"].as_str().unwrap().contains("liza init"));
    let run = project.liza(&["status"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
}

/// Covers: CM-06
#[test]
fn it_works_in_sub_folders_and_with_c() {
    let project = project(BUSY);
    let below = project.root.join(".worktrees/retry-users");
    let run = project.run(project.program().arg("status").current_dir(&below));
    assert!(run.ok().contains("retry-mail"));
    let run = project.run(project.program().args(["-C", below.to_str().unwrap(), "status"]).current_dir("/"));
    assert!(run.ok().contains("retry-mail"));
}

/// Covers: CM-05
#[test]
fn colour_only_on_request() {
    let project = project(BUSY);
    let escapes = |run: crate::support::Run| run.ok().contains('\u{1b}');
    assert!(!escapes(project.liza(&["status"])), "a pipe gets none");
    assert!(escapes(project.liza(&["status", "--color", "always"])));
    assert!(!escapes(project.liza(&["status", "--color", "never"])));
    let forced = project.run(project.program().arg("status").env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1"));
    assert!(!escapes(forced));
}

/// Covers: CM-05
#[test]
fn a_closed_pipe_is_not_an_error() {
    let project = project(BUSY);
    for verb in [&["status"][..], &["log"], &["lock", "read"], &["completions", "bash"], &["get", "."]] {
        let mut child =
            project.program().args(verb).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{verb:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{verb:?}: {output:?}");
    }
}

/// Covers: BB-07
#[test]
fn a_broken_file_is_reported_with_its_line() {
    let project = TestProject::new();
    project.write(".liza/state.yaml", "version: 1\ntasks: [\n");
    let error = project.liza(&["status", "--json"]).refused(4, "broken_state");
    assert!(error["message"].as_str().unwrap().contains("state.yaml:"), "{error}");
}

/// Covers: UI-03
#[test]
fn a_question_is_shown_whole() {
    let project = TestProject::new();
    project.add_task("one");
    let question = format!("{} and which database?", "Should it retry, and how often, ".repeat(12));
    project.liza(&["mark-blocked", "one", "--reason", "unclear", "--question", &question]).ok();
    let status = project.liza(&["status"]).ok().to_owned();
    let text = status.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&question.split_whitespace().collect::<Vec<_>>().join(" ")), "{status}");
}

/// Covers: UI-03
#[test]
fn while_a_team_works_status_says_that_there_is_nothing_to_do() {
    let project = TestProject::new();
    project.add_task("one");
    assert!(!project.liza(&["status"]).ok().contains("the team is working"));
    for agent in ["planner-1", "coder-1", "code-reviewer-1"] {
        project.liza_as(agent, &["register", agent]).ok();
    }
    let status = project.liza(&["status"]).ok().to_owned();
    assert!(status.contains("NEXT\n  Nothing: the team is working. Watch it:\n  → liza tui"), "{status}");
}

/// Covers: UI-03
#[test]
fn names_that_begin_alike_are_not_cut() {
    let project = TestProject::new();
    for end in ["one", "two"] {
        project.add_task(&format!("a-very-long-name-of-a-task-that-ends-in-{end}"));
    }
    let status = project.liza(&["status"]).ok().to_owned();
    assert!(status.contains("ends-in-one  ") && status.contains("ends-in-two  "), "{status}");
}

/// Covers: CM-05, UI-03
#[test]
fn long_names_fit_a_narrow_terminal_and_stay_whole() {
    let project = TestProject::new();
    for end in ["a", "b"] {
        project.add_task(&format!("{}-{end}", "retry-orders".repeat(5)));
    }
    let names = |page: String| page.split_whitespace().collect::<String>();
    for arguments in [&["status"][..], &["status", "--all"]] {
        let said = names(page(&project, "40", arguments));
        assert!(
            ["a", "b"].iter().all(|end| said.contains(&format!("{}-{end}", "retry-orders".repeat(5)))),
            "{said}"
        );
    }
}

/// Covers: CL-07, UI-01
#[test]
fn after_a_team_has_stopped_no_agent_is_shown_at_work() {
    let project = TestProject::new();
    project.add_task("t1");
    project.liza(&["register", "coder-1"]).ok();
    project.liza(&["claim-task", "t1", "coder-1"]).ok();
    assert!(page(&project, "80", &["status"]).contains("IN PROGRESS 1"));
    project.liza(&["deregister", "coder-1"]).ok();
    let said = page(&project, "80", &["status"]);
    assert!(said.contains("stopped; coder-1 continues") && !said.contains("lease"), "{said}");
    assert!(!said.contains("IN PROGRESS") && said.contains("0 of 1 merged · 1 stopped\n"), "{said}");
    let said = page(&project, "80", &["show", "t1"]);
    assert!(said.contains("stopped; coder-1 continues") && said.contains("→ liza run"), "{said}");
    assert!(!said.contains("lease"), "{said}");
}

/// Covers: UI-03
#[test]
fn while_the_planner_decides_about_a_block_its_question_can_be_answered() {
    let project = TestProject::new();
    project.liza_as("planner-1", &["register", "planner-1"]).ok();
    project.add_task("one");
    project.liza(&["mark-blocked", "one", "--reason", "unclear", "--question", "How often?"]).ok();
    let status = project.liza(&["status"]).ok().to_owned();
    let need = status.split("NEEDS YOU").nth(1).and_then(|rest| rest.split("NEXT").next());
    let need = need.unwrap_or_else(|| panic!("{status}"));
    assert!(need.contains("? How often?") && need.contains("→ liza answer one \"...\""), "{status}");
    assert!(need.contains("the planner looks at it now"), "{status}");
    assert!(!status.contains("unblock-task") && !status.contains("ALERTS"), "{status}");
}

/// Covers: CM-05
#[test]
fn doctor_fits_a_narrow_terminal_and_an_empty_task_is_explained() {
    let project = TestProject::new();
    let run = project.run(project.program().arg("doctor").env("COLUMNS", "40"));
    let long = run.stdout.lines().find(|line| line.chars().count() > 40);
    assert_eq!(long, None, "{}", run.stdout);
    let error = project.liza(&["add", "", "--json"]).refused(1, "missing");
    assert!(!error.to_string().contains("--desc"), "{error}");
}

/// Covers: RO-06
#[test]
fn a_board_with_nine_discoveries_without_end_is_read_and_shown_on_some_pages() {
    let project = TestProject::new();
    project.add_task("t1");
    let words = "word \\\"quoted\\\" ñ ".repeat(45_000);
    let entry = |number: u32| {
        format!(
            "- {{id: disc-{number}, by: coder-1, during: t1, severity: high, urgency: immediate,\n  description: \"{words}\"}}\n"
        )
    };
    let path = project.root.join(".liza/state.yaml");
    let board = fs::read_to_string(&path).unwrap();
    let found: String = (1..10).map(entry).collect();
    fs::write(&path, board.replace("discovered: []\n", &format!("discovered:\n{found}"))).unwrap();
    for (verb, lines) in [("status", 200), ("show", 700)] {
        let mut command = project.program();
        command.arg(verb).args((verb == "show").then_some("t1")).env("COLUMNS", "80");
        let run = project.run(&mut command);
        let shown = run.ok();
        assert!(
            shown.contains("disc-1") && shown.lines().count() < lines,
            "{verb}: {} lines",
            shown.lines().count()
        );
    }
    project.liza(&["dismiss", "disc-1"]).ok();
}

/// Covers: RO-06
#[test]
fn of_a_long_text_no_more_is_looked_at_than_is_shown() {
    let (text, began) = ("word ".repeat(1 << 20), Instant::now());
    for _ in 0..2_000 {
        assert_eq!(one_line(&text, 9), "word word…");
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

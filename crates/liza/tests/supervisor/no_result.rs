//! Sessions that end without a result, for whatever reason: the team does not stop in silence, and `liza status` shows the
//! human what to do.

use liza_core::model::Status;

use crate::fixture::{Bench, CODER};
use crate::support::process::wait_for;

/// `liza status` as a person reads it.
fn status(bench: &Bench) -> String {
    bench.project.liza(&["status"]).ok().to_owned()
}

fn needs_you(bench: &Bench) -> Vec<String> {
    let result = bench.project.liza(&["status", "--json"]).result();
    let entries = result["needs_you"].as_array().unwrap().clone();
    entries.iter().map(|entry| format!("{}: {}", entry["kind"], entry["text"]).replace('"', "")).collect()
}

/// Covers: AC-01
#[test]
fn a_planner_that_ends_with_a_question_is_started_again_and_then_needs_the_human() {
    let script = "echo x >> \"$HOME/sessions\"; echo 'Which database should I use?'; exit 0";
    let bench = Bench::new("max_crashes: 1", &[("p", script)]);
    let mut planner = bench.agent(&["planner", "--cli", "p"]);
    assert_ne!(planner.wait(), 0, "{}", planner.output());
    let said = planner.output();
    let end = said.lines().rev().take(3).collect::<Vec<_>>().join("\n");
    assert!(end.contains("planner-1 stopped: 1 planning session in a row ended without a result"), "{said}");
    assert!(end.contains("Which database should I use?"), "{said}");
    assert!(said.contains("p exited 0 and left no plan: Which database should I use?"), "{said}");
    assert!(end.contains("liza tail planner-1") && end.contains("liza run"), "{said}");
    let page = status(&bench).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        page.contains("PLANNER STOPPED") && page.contains("Which database should I use? If it asks"),
        "{page}"
    );
    assert!(page.contains("liza note") && page.contains("→ liza run"), "{page}");
    assert!(needs_you(&bench).iter().any(|entry| entry.starts_with("PLANNER STOPPED")), "{page}");
    // A new planner gets the same trigger.
    let mut again = bench.agent(&["planner", "--cli", "p"]);
    assert_ne!(again.wait(), 0);
    assert_eq!(bench.until_file("sessions").lines().count(), 2);
}

/// Covers: AC-03
#[test]
fn a_recorded_question_is_shown_and_its_answer_wakes_the_planner() {
    let script = r#"echo x >> "$HOME/sessions"
grep -q QUESTION_ANSWERED "$HOME/last-prompt" && { "$LIZA" goal complete; "$LIZA" add-task --id done --desc d --spec specs/vision.md --done d --scope s; exit 42; }
"$LIZA" anomaly spec_gap --detail spec_ref=specs/vision.md --detail question="Which database?""#;
    let bench = Bench::new("", &[("p", script)]);
    let mut planner = bench.agent(&["planner", "--cli", "p"]);
    wait_for("the question is shown", || status(&bench).contains("Which database?").then_some(()));
    let asked = needs_you(&bench);
    assert!(
        asked.iter().any(|entry| entry.contains("planner-1 asks about the goal: Which database?")),
        "{asked:?}"
    );
    bench.project.liza(&["note", "SQLite"]).ok();
    wait_for("the answer is used", || bench.project.liza(&["show", "done"]).code.eq(&0).then_some(()));
    assert!(!status(&bench).contains("Which database?"));
    planner.stop();
}

/// Covers: AC-02
#[test]
fn a_session_that_obeys_pause_counts_against_no_one() {
    let script = format!(
        "echo x >> \"$HOME/sessions\"\n[ $(wc -l < \"$HOME/sessions\") -gt 4 ] && {{ {CODER} }}\ntouch ../../.liza/PAUSE; exit 0"
    );
    let bench = Bench::new("max_idle_exits: 2", &[("c", &script)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    for number in 1..=4 {
        wait_for("the session obeyed PAUSE", || {
            let sessions = bench.until_file("sessions").lines().count();
            (sessions == number && bench.project.root.join(".liza/PAUSE").exists()).then_some(())
        });
        wait_for("it was judged", || {
            (coder.output().matches("no new work starts").count() >= number).then_some(())
        });
        bench.project.liza(&["resume"]).ok();
    }
    bench.until_status("t1", Status::ReadyForReview);
    assert_eq!(bench.task("t1").idle_exits, None);
    coder.stop();
}

/// Covers: AC-09
#[test]
fn commits_without_a_submission_are_no_idle_exit_but_use_the_budget() {
    let script = "date +%N >> work.txt; git add . && git commit -qm 'more work'; exit 0";
    let bench = Bench::new("max_idle_exits: 2\nmax_sessions: 4", &[("c", script)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_status("t1", Status::Blocked);
    let reason = bench.task("t1").blocked_reason.unwrap();
    assert!(reason.contains("4 sessions"), "{reason}");
    let page = status(&bench);
    assert!(
        page.contains("BLOCKED") && page.contains("4 sessions") && page.contains("liza answer t1"),
        "{page}"
    );
    coder.stop();
}

/// Covers: AC-05
#[test]
fn handoffs_for_ever_end_at_the_budget() {
    let script = "\"$LIZA\" handoff \"$1\" --summary 'half' --next-action 'the rest'";
    let bench = Bench::new("max_sessions: 4", &[("c", script)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_status("t1", Status::Blocked);
    assert!(bench.task("t1").blocked_reason.unwrap().contains("4 sessions"));
    coder.stop();
}

/// Covers: AC-08
#[test]
fn a_review_that_no_one_takes_any_more_needs_the_human() {
    let bench = Bench::new("max_idle_exits: 1", &[("c", CODER), ("r", "echo 'I cannot build this'; exit 0")]);
    bench.project.add_task("t1");
    assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0);
    let mut reviewer = bench.agent(&["code-reviewer", "--cli", "r"]);
    wait_for("the review is dropped", || status(&bench).contains("REVIEW DROPPED").then_some(()));
    let page = status(&bench);
    assert!(page.contains("liza answer t1"), "{page}");
    bench.project.liza(&["answer", "t1", "use make build"]).ok();
    assert_eq!(bench.task("t1").review_dropped_by, None);
    reviewer.stop();
}

/// Covers: AX-20
#[test]
fn a_refused_result_is_quoted_as_the_cause_and_holds_no_other_agent() {
    let submits = "\"$LIZA\" show nothing; \"$LIZA\" submit-for-review \"$1\" HEAD; exit 1";
    let approves = "\"$LIZA\" submit-verdict \"$1\" REJECTED; echo 'I am done.'; exit 0";
    let bench = Bench::new("max_idle_exits: 1", &[("c", submits), ("good", CODER), ("r", approves)]);
    for task in ["t1", "t2", "t3"] {
        bench.project.add_task(task);
    }
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    ["t1", "t2", "t3"].iter().for_each(|task| bench.until_status(task, Status::Blocked));
    coder.stop();
    let asked = needs_you(&bench).join("\n");
    let cause = "coder-1 ended without a result 1 time in a row: Liza refused submit-for-review: ";
    assert_eq!(asked.matches(cause).count(), 3, "{asked}");
    assert!(!asked.contains("HELD") && !asked.contains("Liza refused show"), "{asked}");
    let log = bench.project.log();
    assert!(log.contains("c exited 1: Liza refused submit-for-review: "), "{log}");
    assert!(bench.state().board.sprint.ready().unwrap().clients.is_empty());

    bench.project.add_task("t4");
    assert_eq!(bench.agent(&["coder", "--cli", "good", "--once"]).wait(), 0);
    let mut reviewer = bench.agent(&["code-reviewer", "--cli", "r"]);
    wait_for("the review is dropped", || status(&bench).contains("REVIEW DROPPED").then_some(()));
    let asked = needs_you(&bench).join("\n");
    assert!(asked.contains("without a verdict: Liza refused submit-verdict: "), "{asked}");
    reviewer.stop();
}

/// Covers: AC-33
#[test]
fn a_reviewer_that_runs_once_merges_what_it_approved() {
    let bench = Bench::new("", &[("c", CODER), ("r", crate::fixture::REVIEWER)]);
    bench.project.add_task("t1");
    assert_eq!(bench.agent(&["coder", "--cli", "c", "--once"]).wait(), 0);
    assert_eq!(bench.agent(&["code-reviewer", "--cli", "r", "--once"]).wait(), 0);
    assert_eq!(bench.status("t1"), Status::Merged);
}

/// Covers: AC-33
#[test]
fn a_coder_takes_its_named_task_first_and_then_goes_on() {
    let bench = Bench::new("", &[("c", &format!("echo $1 >> \"$HOME/order\"\n{CODER}"))]);
    bench.project.add_task("t1");
    bench.project.add_task("t2");
    let mut coder = bench.agent(&["coder", "t2", "--cli", "c"]);
    bench.until_status("t1", Status::ReadyForReview);
    bench.until_status("t2", Status::ReadyForReview);
    assert_eq!(bench.until_file("order"), "t2\nt1\n");
    coder.stop();
}

/// Covers: SE-13
#[test]
fn a_session_that_committed_without_submitting_finds_in_its_next_prompt_what_is_missing() {
    let script = format!(
        "echo x >> \"$HOME/sessions\"\n[ $(wc -l < \"$HOME/sessions\") -gt 1 ] && {{ {CODER} }}\n\
         echo half > half.txt; git add . && git commit -qm half; exit 0"
    );
    let bench = Bench::new("", &[("c", &script)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "c"]);
    bench.until_status("t1", Status::ReadyForReview);
    let prompts = bench.prompts();
    assert!(!prompts[0].contains("NOT SUBMITTED"), "{}", prompts[0]);
    let half = bench.project.git(&["rev-parse", "task/t1~1"]);
    let expected = format!("NOT SUBMITTED: a session of coder-1 committed {}", half.trim());
    assert!(prompts[1].contains(&expected) && prompts[1].contains("What is missing"), "{}", prompts[1]);
    coder.stop();
}

/// A claude that counts its sessions, notes its arguments, and ends its turn with words.
const TALKS: &str = r#"echo "$@" >> "$HOME/arguments"
echo '{"type":"system","subtype":"init","session_id":"talk-1","model":"m"}'
echo '{"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"I would rather not."}],"usage":{"input_tokens":9}}}'
echo '{"type":"result","is_error":false,"result":"no","usage":{"input_tokens":9,"output_tokens":3},"total_cost_usd":0.1}'"#;

/// Covers: AX-30
#[test]
fn a_model_that_calls_no_tool_is_asked_once_in_its_conversation_and_then_the_task_is_blocked() {
    let bench = Bench::new("", &[("claude", TALKS)]);
    for task in ["t1", "t2"] {
        bench.project.add_task(task);
    }
    let mut coder = bench.agent(&["coder", "--cli", "claude"]);
    ["t1", "t2"].iter().for_each(|task| bench.until_status(task, Status::Blocked));
    coder.stop();
    let reason = "coder-1 ended without a result 2 times in a row: the model called no tool";
    assert_eq!(bench.task("t1").blocked_reason.as_deref(), Some(reason));
    let arguments = bench.until_file("arguments");
    let resumed: Vec<bool> = arguments.lines().map(|line| line.contains("--resume talk-1")).collect();
    assert_eq!(resumed, [false, true, false, true], "{arguments}");
    let prompts = bench.prompts();
    let missing = "NO RESULT: your last session ended at";
    assert!(!prompts[0].contains(missing) && prompts[1].contains(missing), "{}", prompts[1]);
    assert!(prompts[1].contains("the model called no tool."), "{}", prompts[1]);
    assert!(bench.state().board.sprint.ready().unwrap().clients.is_empty(), "the model holds no client");
}

/// Covers: AX-30
#[test]
fn a_context_that_is_full_gets_one_fresh_session() {
    let full = r#"echo "$@" >> "$HOME/arguments"
echo '{"type":"system","subtype":"init","session_id":"talk-1","model":"m"}'
echo '{"type":"result","is_error":true,"terminal_reason":"prompt_too_long","result":"Prompt is too long"}'
exit 1"#;
    let bench = Bench::new("", &[("claude", full)]);
    bench.project.add_task("t1");
    let mut coder = bench.agent(&["coder", "--cli", "claude"]);
    bench.until_status("t1", Status::Blocked);
    coder.stop();
    let reason = "coder-1 ended without a result 2 times in a row: its context was full";
    assert_eq!(bench.task("t1").blocked_reason.as_deref(), Some(reason));
    let arguments = bench.until_file("arguments");
    assert!(arguments.lines().count() == 2 && !arguments.contains("--resume"), "{arguments}");
}

//! The summary that a person reads at a checkpoint.

use liza_core::model::{EventName, State, Status, Validation, ValidationResult};
use liza_host::secrets::Masker;
use liza_report::summary::{digest, render};
use liza_store::LogRecord;
use liza_testkit::boards;

use crate::boards::{add, empty, event, full, large, log, now};

fn page(state: &State, log: &[LogRecord]) -> String {
    render(state, log, None, &Masker::default(), now())
}

/// The lines between a heading and the next.
fn part<'p>(page: &'p str, heading: &str) -> Vec<&'p str> {
    let lines = page.lines().skip_while(|line| *line != format!("## {heading}")).skip(1);
    lines.take_while(|line| !line.starts_with("## ")).collect()
}

/// Covers: SP-03
#[test]
fn the_summary_of_an_empty_sprint_reports_no_plan() {
    insta::assert_snapshot!(page(&empty(), &[]));
    assert_eq!(digest(&empty()), ["no tasks are planned yet"]);
}

/// Covers: SP-02, SP-03
#[test]
fn the_summary_of_a_full_sprint_is_one_page() {
    insta::assert_snapshot!(page(&full(), &log()));
    insta::assert_snapshot!("digest", digest(&full()).join("\n"));
}

/// Covers: SP-03
#[test]
fn every_status_has_its_row_and_tasks_that_wait_for_a_person_come_first() {
    let text = page(&full(), &[]);
    let rows: Vec<&str> =
        part(&text, "Tasks").into_iter().filter(|line| line.starts_with("| retry")).collect();
    for status in Status::ALL {
        let named = |row: &&&str| row.split('|').any(|cell| cell.trim() == status.name());
        assert!(rows.iter().any(|row| named(&row)), "{status}");
    }
    assert!(rows[0].contains("BLOCKED") && rows[1].contains("INTEGRATION_FAILED"), "{rows:#?}");
}

/// Covers: SP-03
#[test]
fn text_by_agents_is_escaped_and_secrets_are_masked() {
    let text = page(&full(), &log());
    assert!(!text.contains("<script>") && !text.contains("![x]") && !text.contains("\n# Heading"), "{text}");
    assert!(!text.contains("a1B2") && text.contains("masked"), "{text}");
    // Every row of a table has as many cells as its heading.
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let mut head = None;
    for line in text.lines() {
        match (line.starts_with('|'), head) {
            (true, None) => head = Some(cells(line)),
            (true, Some(expected)) => assert_eq!(cells(line), expected, "{line}"),
            (false, _) => head = None,
        }
    }
}

/// Covers: SP-03
#[test]
fn two_hundred_tasks_stay_readable() {
    let text = page(&large(), &[]);
    assert!(text.lines().count() < 260, "{} lines", text.lines().count());
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest < 320, "{widest} columns");
    let rows = part(&text, "Tasks").iter().filter(|line| line.starts_with("| task-")).count();
    assert_eq!(rows, 80, "50 open tasks and the 30 that were done last");
    assert!(text.contains("120 more finished tasks: `liza status --all`"), "{text}");
    insta::assert_snapshot!("large_burn_up", part(&text, "Burn-up").join("\n"));
}

/// Covers: SP-02, SP-03
#[test]
fn possible_rubber_stamps_are_reported() {
    let mut state = empty();
    for number in 0..4 {
        let life = vec![event(50, EventName::Approved, "code-reviewer-1")];
        add(&mut state, &format!("t-{number}"), Status::Approved, 100, life, |_| {});
    }
    let warns = |state: &State| page(state, &[]).contains("check that the reviews are thorough");
    assert!(!warns(&state), "four verdicts are too few");
    let life = vec![event(50, EventName::Approved, "code-reviewer-1")];
    add(&mut state, "t-4", Status::Approved, 100, life, |_| {});
    assert!(warns(&state));
    assert!(digest(&state).last().unwrap().starts_with("5 of 5 verdicts"), "{:?}", digest(&state));
    let life = vec![event(50, EventName::Rejected, "code-reviewer-1")];
    add(&mut state, "t-5", Status::Rejected, 100, life, |_| {});
    assert!(!warns(&state), "one of six was rejected");
}

/// A validation of a task, as its last result.
fn validated(result: ValidationResult, flaky: &[&str]) -> Option<Validation> {
    Some(Validation {
        commit: boards::sha('a'),
        result,
        commands: vec!["make test".to_owned()],
        gate: "9f".to_owned(),
        tree: None,
        time: now(),
        command: None,
        failure: None,
        flaky: flaky.iter().map(|line| (*line).to_owned()).collect(),
        head: None,
        settings: Vec::new(),
        receipt: None,
    })
}

/// Covers: JU-01, JU-03
#[test]
fn the_summary_says_who_judges_and_how_the_validations_ended() {
    let mut state = empty();
    let judging = |state: &State, is_tested: Option<bool>| {
        part(&render(state, &[], is_tested, &Masker::default(), now()), "Judging").join("\n")
    };
    let nothing = "- **Nothing but the code reviewer judges.** To run commands before every review and at every merge: ";
    assert!(judging(&state, Some(false)).contains(nothing), "{}", judging(&state, Some(false)));
    assert_eq!(judging(&state, None), "", "what is not known is not said");
    let tested = "- Besides the code reviewers: the integration test at every merge.";
    assert!(judging(&state, Some(true)).contains(tested));
    boards::part(&mut state.board.config).validation = vec!["make test".to_owned()];
    boards::part(&mut state.board.config).holdout = Some("/home/dev/acceptance".to_owned());
    let red = |minutes| event(minutes, EventName::Rejected, "system").with("reason", "validation_failed");
    let results = [
        ("passed", ValidationResult::Green, &[][..]),
        ("flaky", ValidationResult::Green, &["make test"][..]),
        ("failed", ValidationResult::Red, &[][..]),
        ("waits", ValidationResult::Held, &[][..]),
    ];
    for (name, result, flaky) in results {
        let life = if result == ValidationResult::Red { vec![red(50), red(30)] } else { Vec::new() };
        add(&mut state, name, Status::ReadyForReview, 100, life, |record| {
            record.validated = validated(result, flaky);
            record.validation = flaky.first().map(|_| vec!["make flaky".to_owned()]);
        });
    }
    let ends = "validation of each task: 2 passed (1 only at the second try), 1 failed (failed), \
                1 held, no change is blamed (waits); 2 submissions came back without a review";
    assert_eq!(
        judging(&state, Some(true)),
        format!(
            "\n- Besides the code reviewers: 1 command before every review and at every merge; commands of their own for \
             1 task; the integration test at every merge; acceptance tests that no session reads.\n- Last {ends}.\n"
        )
    );
    assert!(digest(&state).contains(&ends.to_owned()), "{:?}", digest(&state));
}

/// Covers: SP-03
#[test]
fn an_unreadable_sprint_is_not_an_error() {
    let text = page(&State::default(), &[]);
    assert!(text.contains("liza validate"), "{text}");
}

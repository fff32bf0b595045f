//! What agents and files say cannot control the terminal of the person who reads it.

use std::fs;

use crate::support::{Run, TestProject};

/// A title, a cleared screen, colour, bell, an eight-bit sequence, reordered text.
const EVIL: &str =
    "evil\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[31mred\u{9b}5m\u{7f} \u{202e}txt.exe\u{2066}\u{200f} \u{8}end";

/// The same in the double quotes of YAML.
const QUOTED: &str = r#""evil\e]0;owned\a\e[2J\e[31mred\x9b5m\x7f \u202etxt.exe\u2066\u200f \bend""#;

#[track_caller]
fn is_harmless(run: &Run) {
    for text in [&run.stdout, &run.stderr] {
        let reorders = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let bad = text.chars().find(|c| (c.is_control() && !matches!(c, '\n' | '\t')) || reorders(*c));
        assert_eq!(bad, None, "{run:#?}");
    }
}

/// A project in which every text that a person can write into the file is hostile.
fn project() -> TestProject {
    let project = TestProject::new();
    project.add_task("one");
    project.liza(&["note", "a note", "--for", "one"]).ok();
    project.liza(&["discover", "--task", "one", "--desc", "found", "--severity", "high"]);
    let state = project.state();
    let state = state.replace("description: Do it", &format!("description: {QUOTED}"));
    let state = state.replace("description: Retry everything", &format!("description: {QUOTED}"));
    let state = state
        .replace("done_when: It is done", &format!("done_when: {QUOTED}\n    rejection_reason: {QUOTED}"));
    let state = state.replace("message: a note", &format!("message: {QUOTED}"));
    let state = state.replace("event: created", &format!("event: {QUOTED}"));
    assert!(state.matches("owned").count() >= 6, "{state}");
    project.write(".liza/state.yaml", &state);
    let log = project.log();
    let (first, rest) = log.split_once("detail: ").unwrap();
    let rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    fs::write(project.root.join(".liza/log.yaml"), format!("{first}detail: {QUOTED}\n{rest}")).unwrap();
    project
}

/// Covers: AT-14, IS-09
#[test]
fn control_and_bidi_characters_reach_no_terminal_in_any_mode() {
    let project = project();
    for words in [
        &["status"][..],
        &["show", "one"],
        &["log"],
        &["goal", "show"],
        &["sprint", "show"],
        &["graph"],
        &["doctor"],
        &["validate"],
        &["watch", "--once"],
        &["analyze"],
        &["get", ".tasks[0].description"],
        &["get", "."],
        &["lock", "read"],
        &["retro"],
        &["show", EVIL],
        &["get", EVIL],
        &["note", "x", "--for", EVIL],
        &["claim-task", "one", EVIL],
        &["-C", EVIL, "status"],
        &["log", "--agent", EVIL],
        &[EVIL],
    ] {
        is_harmless(&project.liza(words));
        is_harmless(&project.liza(&[words, &["--json"]].concat()));
        let colored = project.liza(&[words, &["--color", "always"]].concat());
        let theirs = |text: &str| {
            ["\u{1b}]", "\u{1b}[2J", "\u{1b}[31mred", "\u{9b}", "\u{202e}"]
                .iter()
                .any(|bad| text.contains(bad))
        };
        assert!(!theirs(&colored.stdout) && !theirs(&colored.stderr), "{colored:#?}");
    }
}

/// Covers: AT-14, IS-09
#[test]
fn programs_still_read_the_text_as_it_is() {
    let project = project();
    let text = project.liza(&["get", ".tasks[0].description", "--json"]).result();
    assert_eq!(text, EVIL);
}

/// Covers: AT-14, IS-09
#[test]
fn show_in_a_pipe_is_not_cut() {
    let project = TestProject::new();
    project.add_task("one");
    let reason = format!("begin {} end-of-reason", "many words ".repeat(60).trim());
    project.liza(&["mark-blocked", "one", "--reason", &reason, "--question", "why?"]).ok();
    let page = project.liza(&["show", "one"]).ok().to_owned();
    let history = page.split_once("HISTORY").unwrap().1;
    assert!(page.contains(&reason) && history.contains(&reason), "{page}");
    let narrow = project.run(project.program().args(["show", "one"]).env("COLUMNS", "80")).ok().to_owned();
    assert!(narrow.split_once("HISTORY").unwrap().1.contains("end-of-reason"), "{narrow}");
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
}

/// Covers: UI-03, UI-09
#[test]
fn pages_fit_every_width_with_any_text() {
    use unicode_width::UnicodeWidthStr as _;
    let word = "very".repeat(60);
    let boards = [
        crate::boards::project(crate::boards::BUSY),
        crate::boards::project(crate::boards::FIRE),
        crate::boards::project(&crate::boards::FIRE.replace("Two coders failed at this", &word)),
        project(),
    ];
    for (at, project) in boards.iter().enumerate() {
        let task = ["retry-users", "exhausted", "exhausted", "one"][at];
        project.liza(&["note", &format!("{word} 日本語 🎉 {word}"), "--for", task]).ok();
        for columns in ["40", "80", "120"] {
            for words in [&["status"][..], &["status", "--all"], &["show", task], &["log"]] {
                let run = project.run(project.program().args(words).env("COLUMNS", columns));
                let widest = run.ok().lines().max_by_key(|line| line.width()).unwrap();
                let limit: usize = columns.parse().unwrap();
                assert!(widest.width() <= limit, "{words:?} at {columns}: {widest:?}");
            }
        }
    }
}

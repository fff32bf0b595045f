use std::path::Path;

use liza_core::model::{Fields, State, TaskId, Value};
use proptest::prelude::*;

use super::*;

const TOP: &str = "version: 1\nrevision: 4\ngoal: { id: goal-1, status: IN_PROGRESS }\n";

fn lazy(text: &str) -> State {
    StateView::lazy(Path::new("state.yaml"), text).unwrap().state().unwrap()
}

fn full(text: &str) -> Option<State> {
    let mut view = StateView::full(Path::new("state.yaml"), text).unwrap();
    view.scannable.then(|| view.state().unwrap())
}

/// Covers: BB-02, BB-03
#[test]
fn a_lazy_view_reads_the_example_of_the_schema_like_a_full_one() {
    let text = include_str!("../../tests/fixtures/schema-example.yaml");
    assert_eq!(Some(lazy(text)), full(text));
}

/// Fields as people write them, valid and invalid.
fn field() -> impl Strategy<Value = String> {
    let comment = prop_oneof![Just(""), Just("   # why"), Just(" # a: b")];
    let line = prop_oneof![
        "(status): (DRAFT|\"MERGED\"|'BLOCKED'|DOING|null|~|)",
        "(priority): (1|5|03|\"2\"|high|null|-1|1.5)",
        "(created|lease_expires|review_lease_expires): (2025-01-17T14:00:00Z|\"2025-01-17T14:00:00Z\"|2024-02-29T10:00:00Z|2025-01-17 14:00:00Z|2025-01-17T15:00:00\\+01:00|never|null)",
        "(depends_on|superseded_by|supersedes): (\\[\\]|\\[a, b\\]|\\[ a ,b-1 \\]|\\[\"a\"\\]|a|null|\\[A\\]|\\[a,\\])",
        "(failed_by): (\\[coder-1, coder-2\\]|\\[\\]|\\[coder-01\\]|coder-1)",
        "(assigned_to|reviewing_by|approved_by): (coder-1|\"code-reviewer-2\"|human|null|nobody|)",
        "(handoff_pending): (true|false|\"true\"|yes|)",
        "(reservation): (null|\\{ by: coder-1, generation: 2, expires: 2025-01-17T14:00:00Z, base_commit: a1b2c3d4 \\}|1)",
        "(approvals): (null|\\[\\]|\\[\\{ agent: code-reviewer-1, commit: a1b2c3d4 \\}\\]|1)",
        "(revision): (3|x|)",
        "(my_field|\"quoted\"|description): (text|\"a # b\"|'it''s'|\\[1, \\{x: y\\}\\])",
    ];
    let block = prop_oneof![
        Just("depends_on:\n      - a\n      - b-2".to_owned()),
        Just("depends_on:\n    - a".to_owned()),
        Just("failed_by:\n      # who\n      - coder-1".to_owned()),
        Just("done_when: |\n      status: FAKE\n      - id: fake\n\n      # no comment".to_owned()),
        Just("scope: plain text\n      goes on".to_owned()),
        Just("assigned_to:\n      coder-1".to_owned()),
        Just("created: 2025-01-17T14:00:00Z\n      # deeper".to_owned()),
        Just("history:\n      - { time: 2025-01-17T14:00:00Z, event: created, n: 017 }".to_owned()),
        Just("reservation:\n      by: coder-1\n      generation: 2\n      expires: 2025-01-17T14:00:00Z\n      base_commit: a1b2c3d4".to_owned()),
        Just("approvals:\n      - agent: code-reviewer-1\n        commit: a1b2c3d4".to_owned()),
        Just("# a comment".to_owned()),
        Just("".to_owned()),
    ];
    prop_oneof![3 => (line, comment).prop_map(|(line, comment)| line + comment), 1 => block]
}

fn tasks() -> impl Strategy<Value = String> {
    let id = prop_oneof![8 => "[a-c]{1,2}(-[0-9])?", 1 => Just("\"q\"".to_owned()), 1 => Just("Bad Id".to_owned()), 1 => Just("017".to_owned())];
    let task = (id, prop::collection::vec(field(), 0..8), 0usize..4).prop_map(|(id, fields, style)| {
        let mut seen = std::collections::BTreeSet::new();
        let fresh = |field: &String| {
            let name = field.split(':').next().unwrap_or_default().trim_matches(['"', '#', ' ']).to_owned();
            field.is_empty() || field.starts_with('#') || seen.insert(name)
        };
        let fields: Vec<String> = fields.into_iter().filter(fresh).collect();
        let lines: String = fields
            .iter()
            .map(|field| if field.is_empty() { "\n".to_owned() } else { format!("    {field}\n") })
            .collect();
        match style {
            0 => format!("  -\n    id: {id}\n{lines}"),
            1 if !lines.is_empty() && !lines.starts_with("    #") && !lines.starts_with('\n') => {
                format!("  - {}    id: {id}   # last\n", lines.trim_start())
            }
            2 => format!("  # above\n  - id: {id}\n{lines}\n"),
            _ => format!("  - id: {id}\n{lines}"),
        }
    });
    let flow = Just("  - {id: flow, status: DRAFT, depends_on: [a]}\n".to_owned());
    prop::collection::vec(prop_oneof![8 => task, 1 => flow], 0..6).prop_map(|tasks| match tasks.len() {
        0 => "tasks: []\n".to_owned(),
        _ => format!("tasks:   # all\n{}", tasks.concat()),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Covers: BB-02, BB-07
    #[test]
    fn a_lazy_view_reads_the_same_state_as_a_full_one(tasks in tasks(), crlf in any::<bool>()) {
        let text = format!("{TOP}{tasks}agents: {{}}\narchived:\n  old-1: MERGED\nconfig: {{}}\nanomalies:\n- broken\n");
        let text = if crlf { text.replace('\n', "\r\n") } else { text };
        if let Ok(Some(expected)) = std::panic::catch_unwind(|| full(&text)) {
            prop_assert_eq!(lazy(&text), expected, "{}", text);
        }
    }

    /// Covers: BB-02, BB-07
    #[test]
    fn the_summaries_of_wanted_tasks_are_the_same_as_in_a_full_view(tasks in tasks(), wanted in prop::collection::vec("[a-c](-[0-9])?", 0..4)) {
        let text = format!("{TOP}{tasks}agents: {{}}\nconfig: {{}}\n");
        let Ok(Some(expected)) = std::panic::catch_unwind(|| full(&text)) else { return Ok(()) };
        let wanted: Vec<TaskId> = wanted.iter().map(|id| id.parse().unwrap()).collect();
        let path = Path::new("state.yaml");
        let mut view = StateView::lazy(path, &text).unwrap();
        let mut board = view.board().unwrap();
        view.load_summaries(&mut board, Some(&wanted)).unwrap();
        view.load_bodies(&mut board, &wanted).unwrap();
        for id in &wanted {
            prop_assert_eq!(board.tasks.get(id), expected.board.tasks.get(id), "{}", text);
        }
    }
}

/// A merge takes the last session of a task out of the sprint: otherwise each would parse the whole file.
///
/// Covers: BB-12
#[test]
fn the_removal_of_a_sections_last_key_reads_back() {
    let sprint = |sessions: bool| {
        let mut fields = Fields::from_iter([("id".to_owned(), Value::from("sprint-1"))]);
        if sessions {
            let tasks = Fields::from_iter([("a".to_owned(), Value::from(2_u32))]);
            fields.insert("sessions".to_owned(), Value::Map(tasks));
        }
        Value::Map(fields)
    };
    for gap in ["", "\n"] {
        let text = format!("{TOP}sprint:\n  id: sprint-1\n  sessions:\n    a: 2\n{gap}config: {{}}\n");
        let view = StateView::lazy(Path::new("state.yaml"), &text).unwrap();
        let ops = [Op::Change { section: "sprint", old: sprint(true), new: sprint(false) }];
        let spliced = splice(&view, &ops).unwrap();
        assert_eq!(spliced.text, format!("{TOP}sprint:\n  id: sprint-1\n{gap}config: {{}}\n"));
        assert!(reads_back(&view, &spliced, &ops), "{gap:?}");
    }
}

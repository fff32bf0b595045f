//! What a write does not change keeps its bytes.

use liza_core::protocol::{AbandonTask, Align, Command, Deregister, EditTask, TaskEdit};

use crate::support::*;

/// The lines that differ: removed and added.
fn difference(before: &str, after: &str) -> (Vec<String>, Vec<String>) {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let front = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let limit = old.len().min(new.len()) - front;
    let back = old.iter().rev().zip(new.iter().rev()).take(limit).take_while(|(a, b)| a == b).count();
    let part =
        |lines: &[&str]| lines[front..lines.len() - back].iter().map(|line| (*line).to_owned()).collect();
    (part(&old), part(&new))
}

fn edit(id: &str, description: &str) -> Command {
    let edit = TaskEdit { description: Some(description.to_owned()), ..TaskEdit::default() };
    Command::from(EditTask { task: task(id), edit })
}

const PERSONAL: &str = "\
# My own notes about this board.
version: 1
revision: 7   # counts
goal: {id: goal-1, description: short, status: IN_PROGRESS, mine: 1}
tasks:
  # first of all
  - id: one
    description: 'old'   # say more?
    status: DRAFT   # not yet
    priority:   2
    my_field: [1,   2]
    created: \"2025-01-17T14:00:00Z\"
  # in between
  - {id: two, description: flow, status: DRAFT, priority: 3, created: 2025-01-17T14:00:00Z, mine: x}

  - id: three
    description: >
      folded
      text
    # a thought
    status: DRAFT
    priority: 1
    created: 2025-01-17T14:00:00Z
agents:   # none yet
config:
    lease_duration: 300   # indented by four
    own_setting: yes
sprint: { id: sprint-1, status: IN_PROGRESS }
own_section:
- a
# the end";

/// Covers: BB-06
#[test]
fn a_change_of_one_key_changes_one_line() {
    let project = Project::with_text("one-key", PERSONAL);
    project.run(edit("one", "new"));
    let text = project.text();
    let expected = PERSONAL
        .replace("revision: 7   # counts", "revision: 8   # counts")
        .replace("description: 'old'   # say more?", "description: new   # say more?")
        .replace(
            "    created: \"2025-01-17T14:00:00Z\"\n",
            "    created: \"2025-01-17T14:00:00Z\"\n    revision: 8\n",
        );
    let expected_with_history = |text: &str| {
        let at = text.find("    revision: 8\n").unwrap() + "    revision: 8\n".len();
        text[at..].starts_with("  # in between") || text[at..].starts_with("    history:\n")
    };
    assert!(expected_with_history(&text), "{text}");
    let (_, added) = difference(&expected, &text);
    assert!(
        added.iter().all(|line| line.contains("history") || line.contains("event:")),
        "{added:?}\n{text}"
    );
}

/// Covers: BB-06
#[test]
fn unknown_fields_comments_and_styles_survive_every_kind_of_write() {
    let project = Project::with_text("kinds", PERSONAL);
    let commands = [
        edit("two", "flow no more"),
        edit("three", "one line"),
        register("coder-1"),
        heartbeat("coder-1"),
        register("planner-1"),
        add_task("four"),
        note("a: note"),
        Command::from(Deregister::any(agent("coder-1"))),
        Command::from(AbandonTask { task: task("three"), reason: "why\nnot".to_owned() }),
        Command::from(Align { summary: "fine".to_owned() }),
        Command::from(Deregister::any(agent("planner-1"))),
    ];
    for (n, command) in commands.into_iter().enumerate() {
        let revision = project.run(command.clone());
        assert_eq!(revision, 8 + n as u64);
        let text = project.text();
        let kept = [
            "# My own notes about this board.\n",
            "   # counts\n",
            "  # first of all\n",
            "'old'   # say more?\n",
            "DRAFT   # not yet\n",
            "    priority:   2\n",
            "    my_field: [1,   2]\n",
            "    created: \"2025-01-17T14:00:00Z\"\n",
            "  # in between\n",
            "    # a thought\n",
            "    lease_duration: 300   # indented by four\n",
            "    own_setting: yes\n",
            "\nown_section:\n- a\n",
            "# the end",
            "mine: 1",
            "mine: x",
        ];
        for line in kept {
            assert!(text.contains(line), "{line:?} lost by {command:?}\n{text}");
        }
        let state = project.store().snapshot().unwrap();
        assert_eq!(state.board.revision.0, revision);
        assert!(state.journal.faults.is_empty(), "{:?}", state.journal.faults);
    }
}

/// Covers: BB-06
#[test]
fn a_byte_order_mark_and_windows_line_breaks_survive() {
    let text = format!("\u{feff}{}", PERSONAL.replace('\n', "\r\n"));
    let project = Project::with_text("windows", &text);
    for command in [edit("one", "a\nb\n"), register("coder-1"), add_task("four"), heartbeat("coder-1")] {
        project.run(command);
        let text = project.text();
        assert!(text.starts_with('\u{feff}'));
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count(), "{text:?}");
    }
    let state = project.store().snapshot().unwrap();
    let body = state.board.body(&task("one")).unwrap();
    assert_eq!(body.record().description.as_deref().map(str::trim_end), Some("a\nb"));
}

/// Covers: BB-06
#[test]
fn legacy_keys_are_read_and_replaced_when_their_entry_changes() {
    let text = PERSONAL.replace(
        "agents:   # none yet\n",
        "agents:\n  coder-1:\n    role: coder\n    status: IDLE\n    task: null   # old\n    lease_expires: 2025-01-17T14:05:00Z\nhandoff:\n  task: one\n  agent: coder-1\n  summary: half\n  next_action: the rest\n",
    );
    let project = Project::with_text("old", &text);
    let state = project.store().snapshot().unwrap();
    assert_eq!(state.board.handoff.ready().unwrap()[&task("one")].summary, "half");
    project.run(heartbeat("coder-1"));
    let state = project.store().snapshot().unwrap();
    assert!(state.board.agents().unwrap()[&agent("coder-1")].heartbeat.is_some());
    project.run(Command::from(AbandonTask { task: task("one"), reason: "enough".to_owned() }));
    let state = project.store().snapshot().unwrap();
    assert!(state.board.handoff.ready().unwrap().is_empty(), "{}", project.text());
}

/// Covers: BB-06, BB-07
#[test]
fn anchors_tags_and_markers_are_written_out_if_necessary() {
    for (name, text) in [
        ("marker", format!("---\n{PERSONAL}")),
        ("anchor", PERSONAL.replace("'old'", "&d 'old'").replace("own_section:\n- a", "own_section:\n- *d")),
        ("tag", PERSONAL.replace("'old'", "!!str old")),
        ("merge", PERSONAL.replace("own_section:\n- a", "base: &b {x: 1}\nown_section:\n  more: *b")),
    ] {
        let project = Project::with_text(name, &text);
        let before = project.store().snapshot().unwrap();
        project.run(edit("one", "new"));
        project.run(note("hello"));
        let after = project.store().snapshot().unwrap();
        assert_eq!(
            after.board.body(&task("one")).unwrap().record().description.as_deref(),
            Some("new"),
            "{name}"
        );
        assert_eq!(before.board.tasks[&task("three")], after.board.tasks[&task("three")], "{name}");
        if name == "anchor" {
            assert!(project.text().contains("old"), "the alias lost its value\n{}", project.text());
        }
    }
}

//! No write drops a comment: what cannot be edited in place is kept as a copy.

use liza_core::protocol::{Archive, Command, Deregister, EditTask, TaskEdit};
use liza_store::{Notice, ValueSyntax};

use crate::support::*;

const BOARD: &str = "\
# top
version: 1
revision: 7
goal: {id: goal-1, description: short, status: IN_PROGRESS}  # the goal
tasks: TASKS
agents: AGENTS
config:
  lease_duration: 300   # five minutes
sprint: { id: sprint-1, status: IN_PROGRESS }  # the first
# end
";

fn board(tasks: &str, agents: &str) -> String {
    BOARD.replace("TASKS", tasks).replace("AGENTS", agents)
}

/// The comments of a text that has no `#` in its values.
fn comments(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.find('#').map(|at| line[at..].trim_end())).collect()
}

/// Checks that all comments of the first text are in the second.
fn assert_kept(before: &str, after: &str) {
    for comment in comments(before) {
        assert!(after.contains(comment), "{comment:?} is lost\n{before}\n=>\n{after}");
    }
}

fn plain_task(id: &str) -> Command {
    let new =
        liza_core::protocol::NewTask { description: "Do it".to_owned(), draft: true, ..Default::default() };
    Command::from(liza_core::protocol::AddTask { task: task(id), new })
}

/// Covers: AC-20
#[test]
fn every_empty_form_is_edited_in_place() {
    let tasks = [
        "[]",
        "[ ]",
        "null",
        "~",
        "[]  # none yet",
        "[ ] # none yet",
        "~  # none",
        "null # none",
        "# none",
        "[]\n  # the first goes here\n  # and so on",
        "",
    ];
    for form in tasks {
        for agents in ["{}  # nobody", "{ }\t# nobody", "~ # nobody", "# nobody", "null  # nobody"] {
            let text = board(form, agents);
            let project = Project::with_text("forms", &text);
            let commands = [
                plain_task("one"),
                register("coder-1"),
                plain_task("two"),
                Command::from(Deregister::any(agent("coder-1"))),
                register("coder-1"),
                note("x"),
            ];
            for command in commands {
                let outcome = project.submit(command.clone()).unwrap();
                assert_eq!(outcome.notices, [], "{form:?} {agents:?} {command:?}");
                assert_kept(&text, &project.text());
            }
            let state = project.store().snapshot().unwrap();
            assert_eq!(state.board.tasks.len(), 2, "{}", project.text());
            assert_eq!(state.board.agents().unwrap().len(), 1, "{}", project.text());
            assert!(!project.names().iter().any(|name| name.contains("before-rewrite")));
        }
    }
}

/// Covers: AC-20
#[test]
fn markers_directives_and_lines_of_tabs_are_kept() {
    let text = board("[] # none", "{} # nobody");
    let cases = [
        format!("---\n{text}...\n"),
        format!("--- # start\n{text}... # the last line\n# after\n"),
        format!("%YAML 1.2\n---\n{text}"),
        format!("# above\n%YAML 1.2\n# between\n---\n{text}...\n"),
        text.replace("\nconfig:", "\n\t\nconfig:\n  \t"),
        text.replace("config:\n", "config:\n\t\n").replace("sprint:", "\t \t\nsprint:"),
    ];
    for before in cases {
        let project = Project::with_text("markers", &before);
        for command in [plain_task("one"), register("coder-1"), note("x"), plain_task("two")] {
            let outcome = project.submit(command).unwrap();
            assert_eq!(outcome.notices, [], "{before}");
        }
        let after = project.text();
        assert_kept(&before, &after);
        for line in before.lines().filter(|line| line.starts_with(['%', '-', '.', '\t'])) {
            assert!(after.lines().any(|other| other == line), "{line:?} is lost\n{after}");
        }
        assert_eq!(project.store().snapshot().unwrap().board.tasks.len(), 2);
    }
}

/// Covers: AC-20, AT-13
#[test]
fn comments_of_agents_survive_register_and_deregister() {
    let agents = "# who works here\n  # the fast one\n  coder-1:   # desk 1\n    role: coder # of course\n                      # busy most of the time\n    status: IDLE\n    lease_expires: 2025-01-17T14:05:00Z # soon\n    # last words\n                    # the careful one\n  coder-2:\n    role: coder\n    status: IDLE # now\n    lease_expires: 2025-01-17T14:05:00Z";
    let text = board("[]", agents);
    let project = Project::with_text("agents", &text);
    let commands = [
        heartbeat("coder-1"),
        Command::from(Deregister::any(agent("coder-1"))),
        register("coder-3"),
        Command::from(Deregister::any(agent("coder-2"))),
        Command::from(Deregister::any(agent("coder-3"))),
        register("coder-1"),
        heartbeat("coder-1"),
        Command::from(Deregister::any(agent("coder-1"))),
    ];
    for command in commands {
        let outcome = project.submit(command.clone()).unwrap();
        assert_eq!(outcome.notices, [], "{command:?}");
        assert_kept(&text, &project.text());
        assert!(project.store().validate(now()).unwrap().is_empty(), "{}", project.text());
    }
    assert!(project.store().snapshot().unwrap().board.agents().unwrap().is_empty());
}

/// Covers: AC-20
#[test]
fn comments_survive_in_values_that_are_written_whole() {
    let tasks = "  # all of them\n  [{id: one, description: a, status: ABANDONED, priority: 3, created:                  2025-01-17T14:00:00Z}, # the first\n   {id: two, description: b, status: DRAFT, priority: 3, created:                  2025-01-17T14:00:00Z}]  # the last";
    let text =
        board(tasks, "{coder-1: {role: coder, status: IDLE, # why\n  lease_expires: 2025-01-17T14:05:00Z}}");
    let project = Project::with_text("whole", &text);
    let edit = TaskEdit { description: Some("new\nlines\n".to_owned()), ..TaskEdit::default() };
    let commands = [
        Command::from(EditTask { task: task("two"), edit }),
        heartbeat("coder-1"),
        plain_task("three"),
        Command::from(Archive { tasks: vec![task("one")] }),
    ];
    for command in commands {
        let outcome = project.submit(command.clone()).unwrap();
        assert_eq!(outcome.notices, [], "{command:?}\n{}", project.text());
        assert_kept(&text, &project.text());
    }
    assert_eq!(project.store().snapshot().unwrap().board.tasks.len(), 2);
}

/// Covers: AC-20
#[test]
fn a_hash_in_a_text_is_no_comment() {
    let project = Project::new("hash");
    for text in ["a\n# b\nc #d\n", "x #1", "# one line", "a\n #b\n"] {
        let new =
            liza_core::protocol::NewTask { description: text.to_owned(), draft: true, ..Default::default() };
        let id = format!("t{}", project.store().snapshot().unwrap().board.tasks.len());
        project.run(Command::from(liza_core::protocol::AddTask { task: task(&id), new }));
        let edit = TaskEdit { description: Some("short".to_owned()), ..TaskEdit::default() };
        project.run(Command::from(EditTask { task: task(&id), edit }));
        assert!(!project.text().contains('#'), "{}", project.text());
    }
}

/// Covers: AC-20
#[test]
fn a_file_that_must_be_rewritten_is_kept_beside_the_new_one() {
    let entries = "version: 1, revision: 7, goal: {id: goal-1, description: short, status: IN_PROGRESS}, # mine\n                    tasks: [], agents: {}, config: {}, sprint: {id: sprint-1, status: IN_PROGRESS}";
    let text = format!("{{{entries}}}\n");
    let project = Project::with_text("rewrite", &text);
    let outcome = project.submit(plain_task("one")).unwrap();
    let [Notice::Rewritten { kept }] = &outcome.notices[..] else { panic!("{:?}", outcome.notices) };
    assert_eq!(std::fs::read_to_string(kept).unwrap(), text);
    assert!(outcome.notices[0].to_string().contains("before-rewrite-1"));
    assert!(project.log().contains("action: rewritten"), "{}", project.log());
    assert!(project.log().contains("before-rewrite-1"), "{}", project.log());
    // The same for a write by path.
    let project = Project::with_text("rewrite-path", &text);
    let store = project.store();
    let session = store.begin_edit().unwrap();
    let edited = session.set(".config.own", "x", ValueSyntax::BySchema, &first_entry(), now()).unwrap();
    let [Notice::Rewritten { kept }] = &edited.notices[..] else { panic!("{:?}", edited.notices) };
    assert_eq!(std::fs::read_to_string(kept).unwrap(), text);
}

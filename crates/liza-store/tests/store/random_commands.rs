//! The file has the intended content: random commands on the file and in memory, with manual edits in between.

use liza_core::model::{Actor, AgentStatus, AnomalyType, Fields, Severity, Sha, State, TaskId, Urgency};
use liza_core::protocol::{
    AbandonTask, Archive, ClaimReview, ClaimRole, ClaimTask, Command, Discover, EditTask, HandoffNotes,
    Intent, LogAnomaly, MarkBlocked, PreCheck, ReleaseClaim, Request, ReserveTask, SetStatus,
    SubmitForReview, SubmitVerdict, TaskEdit, UpdateSprintMetrics, Verdict, WorktreeFacts, WriteHandoff,
    apply,
};
use liza_core::rules::invariants::introduced;
use liza_store::{ProjectDisk, StoreError, misspelled_keys, read_state};
use proptest::prelude::*;

use crate::pyyaml::agree;
use crate::support::*;

/// Texts that are easy to write wrong.
const TEXTS: [&str; 8] =
    ["plain", "no", "017", "a: b # c", "two\nlines\n", "- dash", "emoji 😀", " spaces and \"quotes\" "];

#[derive(Debug, Clone)]
struct Step {
    what: u8,
    which: u8,
    text: u8,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (any::<u8>(), any::<u8>(), any::<u8>());
    proptest::collection::vec(step.prop_map(|(what, which, text)| Step { what, which, text }), 20..60)
}

fn commit(digit: &str) -> Sha {
    digit.repeat(40).parse().unwrap()
}

fn facts() -> Option<WorktreeFacts> {
    Some(WorktreeFacts {
        head: commit("b"),
        on_task_branch: true,
        dirty: Vec::new(),
        changed_tracked: Vec::new(),
        has_base: true,
    })
}

/// The command of a step, and its actor.
fn command(step: &Step) -> (Actor, Command) {
    let id: TaskId = task(["a", "b", "c", "d"][usize::from(step.which) % 4]);
    let text = TEXTS[usize::from(step.text) % TEXTS.len()].to_owned();
    let (coder, reviewer) = (agent("coder-1"), agent("code-reviewer-1"));
    match step.what % 20 {
        0..=2 => (Actor::Human, add_task(id.as_str())),
        3 => {
            let edit = TaskEdit { description: Some(text), priority: Some(1), ..TaskEdit::default() };
            (Actor::Human, Command::from(EditTask { task: id, edit }))
        }
        4 => (Actor::Human, register("coder-1")),
        5 => (Actor::Human, register("code-reviewer-1")),
        6 => (Actor::Human, heartbeat("coder-1")),
        7 => (Actor::Human, Command::from(ReserveTask { task: id, coder, head: commit("a") })),
        8 => (Actor::Human, Command::from(ClaimTask { task: id, coder })),
        9 => {
            let intent = Intent { intent: text.clone(), validation: text, ..Intent::default() };
            (Actor::Operator(coder), Command::from(PreCheck { task: id, intent }))
        }
        10 => {
            let submit = Command::from(SubmitForReview { task: id, commit: commit("b"), facts: facts() });
            (Actor::Operator(coder), submit)
        }
        11 => (Actor::Human, Command::from(ClaimReview { task: id, reviewer, head: Some(commit("b")) })),
        12 => {
            let reason = format!("{text}\nPrior Feedback Status:\n- PARTIAL: {text}");
            let verdict =
                if step.text.is_multiple_of(2) { Verdict::Approved(None) } else { Verdict::Rejected(reason) };
            (Actor::Operator(reviewer), Command::from(SubmitVerdict { task: id, verdict, facts: facts() }))
        }
        13 => {
            let (reason, questions, attempted) = (text.clone(), vec![text.clone()], vec![text]);
            (Actor::Human, Command::from(MarkBlocked { task: id, reason, questions, attempted }))
        }
        14 => (Actor::Human, Command::from(AbandonTask { task: id, reason: text })),
        15 => {
            let notes =
                HandoffNotes { summary: "s".into(), next_action: "n".into(), ..HandoffNotes::default() };
            (Actor::Operator(coder), Command::from(WriteHandoff { task: Some(id), notes, dirty: Vec::new() }))
        }
        16 => {
            let (role, force) = (ClaimRole::Both, true);
            (Actor::Human, Command::from(ReleaseClaim { task: id, role, force, reason: Some(text) }))
        }
        17 => {
            let (severity, urgency) = (Severity::High, Urgency::Immediate);
            let (task, recommendation) = (Some(id), Some(text.clone()));
            (
                Actor::Human,
                Command::from(Discover { task, description: text, severity, urgency, recommendation }),
            )
        }
        18 => {
            let details = Fields::from_iter([("why".to_owned(), text.into())]);
            (Actor::Human, Command::from(LogAnomaly { kind: AnomalyType::SpecGap, task: Some(id), details }))
        }
        _ if step.text.is_multiple_of(2) => (Actor::Human, Command::from(UpdateSprintMetrics)),
        _ => (Actor::Human, Command::from(SetStatus { agent: coder, status: AgentStatus::Handoff })),
    }
}

/// Runs a step on the file and in memory: both accept it, or both refuse it for the same reason.
fn run_step(project: &Project, intended: &mut State, step: &Step) {
    let (actor, command) = command(step);
    let request = Request { actor, ..human(command) };
    let disk = ProjectDisk::new(&project.root);
    let decided = apply(&intended.board, &request);
    match (submit(&project.store(), request.clone()), decided) {
        (Ok(_), Ok(decided)) if !decided.change.is_empty() => intended.apply(&decided.change),
        (Ok(written), Ok(_)) => assert!(!written.changed),
        (Err(StoreError::Refused(stored)), Err(expected)) => assert_eq!(*stored, expected),
        (Err(StoreError::Violates(stored)), Ok(decided)) => {
            assert_eq!(stored, introduced(&intended.board, &decided.change, &disk, request.now));
        }
        (stored, expected) => panic!("{step:?}: {stored:?} against {expected:?}"),
    }
}

/// Edits the file without changing its values.
fn edit_style(project: &Project, style: u8) {
    let text = project.text();
    let text = match style % 4 {
        0 => format!("# edited\n{text}"),
        1 => text.replace('\n', "\r\n").replace("\r\r\n", "\r\n"),
        2 => text.replace("\ntasks:\n", "\ntasks:   # all of them\n\n"),
        _ => text.replacen("\nconfig:\n", "\n\n# settings\nconfig:\n", 1),
    };
    project.write(&text);
}

/// Makes a mistake in the file, or fixes it.
fn edit_wrongly(project: &Project, style: u8) {
    let text = project.text();
    let text = match style % 3 {
        0 => text.replacen("status: UNCLAIMED", "status: DOING", 1),
        1 => text.replace("status: DOING", "status: UNCLAIMED"),
        _ => text.replacen("priority: 3", "priority: 3 # as usual", 1),
    };
    project.write(&text);
}

/// A project after these steps, with manual edits in between, and the state that it must have.
fn run_steps(steps: &[Step], style: u8) -> (Project, State) {
    let project = Project::new("intended");
    for id in ["a", "b", "c", "d"] {
        std::fs::create_dir_all(project.root.join(".worktrees").join(id)).unwrap();
    }
    let mut intended = fresh_state();
    for (n, step) in steps.iter().enumerate() {
        if n % 16 == 15 {
            edit_style(&project, style.wrapping_add(step.which));
        }
        run_step(&project, &mut intended, step);
    }
    (project, intended)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Covers: BB-02, BB-06, BB-09, BB-11
    #[test]
    fn the_file_has_the_intended_state(steps in steps(), style in any::<u8>()) {
        let (project, intended) = run_steps(&steps, style);
        prop_assert_eq!(&project.store().snapshot().unwrap(), &intended);
        std::fs::remove_dir_all(&project.root).unwrap();
    }

    /// Covers: BB-02, BB-06
    #[test]
    fn needs_pyyaml_other_readers_agree_after_random_commands(steps in steps(), style in any::<u8>()) {
        let (project, _) = run_steps(&steps, style);
        agree(&project);
        std::fs::remove_dir_all(&project.root).unwrap();
    }

    /// Covers: BB-02, BB-09
    #[test]
    fn an_incremental_read_gives_the_same_state_as_a_full_one(steps in steps(), style in any::<u8>()) {
        let project = Project::new("incremental");
        for id in ["a", "b", "c", "d"] {
            std::fs::create_dir_all(project.root.join(".worktrees").join(id)).unwrap();
        }
        let mut reader = project.store().incremental_reader();
        for (n, step) in steps.iter().enumerate() {
            let (actor, command) = command(step);
            // Archiving moves the other tasks.
            let command = match step.text % 8 {
                7 => Command::from(Archive { tasks: vec![task(["a", "b", "c", "d"][usize::from(step.which) % 4])] }),
                _ => command,
            };
            let _ = submit(&project.store(), Request { actor, ..human(command) });
            match n % 8 {
                3 => edit_style(&project, style.wrapping_add(step.which)),
                5 => edit_wrongly(&project, step.text),
                _ => {}
            }
            // Sometimes there are several writes between two reads.
            if !step.which.is_multiple_of(4) {
                let parsed = read_state(&project.file("state.yaml")).unwrap();
                prop_assert_eq!(&*reader.read().unwrap(), &parsed, "{}", project.text());
                prop_assert_eq!(&project.store().snapshot().unwrap(), &parsed, "{}", project.text());
                let (writable, misspelled) = project.store().writable_snapshot().unwrap();
                prop_assert_eq!(&writable, &parsed, "{}", project.text());
                prop_assert_eq!(misspelled, misspelled_keys(&project.file("state.yaml")).unwrap());
            }
        }
        std::fs::remove_dir_all(&project.root).unwrap();
    }
}

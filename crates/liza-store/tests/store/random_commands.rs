//! The file has the intended content: random commands on the file and in memory, with manual edits in between.

use liza_core::model::State;
use liza_core::protocol::{Archive, Command, Request, apply};
use liza_core::rules::invariants::introduced;
use liza_store::{ProjectDisk, StoreError, misspelled_keys, read_state};
use proptest::prelude::*;

use crate::pyyaml::agree;
use crate::steps::{Step, command, steps};
use crate::support::*;

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

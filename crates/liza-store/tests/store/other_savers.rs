//! Other programs save, delete or replace the files of `.liza` at the worst moment.

use std::fs;
use std::io::{Seek as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use liza_core::model::{StopFile, StopFiles, Timestamp};
use liza_store::{Call, Host, Notice, Store, StoreError};
use rustix::fs::{FlockOperation, flock};

use crate::support::*;

/// A host that acts as another program between the read of the file and its replacement.
struct Meanwhile<'a> {
    act: &'a dyn Fn(),
    done: AtomicBool,
}

impl Host for Meanwhile<'_> {
    fn masked(&self, text: &str) -> String {
        text.to_owned()
    }

    fn now(&self) -> Timestamp {
        now()
    }

    fn stop_files(&self) -> StopFiles {
        StopFiles::default()
    }

    fn create_stop_files(&self, _: &[StopFile], _: Timestamp) -> std::io::Result<()> {
        if !self.done.swap(true, Ordering::Relaxed) {
            (self.act)();
        }
        Ok(())
    }
}

/// Submits a note while `act` runs between the read and the write.
fn note_while(store: &Store, act: &dyn Fn()) -> Vec<Notice> {
    let call = Call { actor: liza_core::model::Actor::Human, if_revision: None, command: note("ours") };
    let outcome = store.submit(call, &Meanwhile { act, done: AtomicBool::new(false) }).unwrap();
    assert!(outcome.answer.is_ok());
    outcome.written.notices
}

fn by_rename(project: &Project, text: &str) {
    fs::write(project.file("their-copy"), text).unwrap();
    fs::rename(project.file("their-copy"), project.file("state.yaml")).unwrap();
}

/// Covers: AT-06
#[test]
fn a_save_between_the_read_and_the_write_is_not_lost() {
    for in_place in [false, true] {
        for edited_before in [false, true] {
            let project = Project::new("between");
            project.add_task("one");
            if edited_before {
                project.write(&format!("{}# mine\n", project.text()));
            }
            let theirs = project.text().replace("priority: 3", "priority: 1 # urgent");
            let save = || if in_place { project.write(&theirs) } else { by_rename(&project, &theirs) };
            assert_eq!(note_while(&project.store(), &save), []);
            let text = project.text();
            assert!(
                text.contains("priority: 1 # urgent"),
                "{in_place} {edited_before}: the save is lost\n{text}"
            );
            assert!(text.contains("message: ours"), "{text}");
            assert_eq!(project.log().matches("detail: ours").count(), 1, "{}", project.log());
            assert_eq!(project.store().snapshot().unwrap().board.revision.0, 3);
            assert!(!project.names().iter().any(|name| name.contains("tmp") || name.contains("stale")));
        }
    }
}

/// Covers: AT-06
#[test]
fn a_save_into_the_file_that_was_just_replaced_is_kept() {
    let project = Project::new("late");
    project.add_task("one");
    let mut editor = fs::OpenOptions::new().write(true).open(project.file("state.yaml")).unwrap();
    let theirs = project.text().replace("priority: 3", "priority: 1 # urgent");
    project.run(note("ours"));
    let ours = project.text();
    editor.set_len(0).unwrap();
    editor.rewind().unwrap();
    editor.write_all(theirs.as_bytes()).unwrap();
    drop(editor);
    let notices = project.store().recover().unwrap();
    let [Notice::StaleSave { kept, based_on: Some(2), current: 3 }] = &notices[..] else {
        panic!("{notices:?}")
    };
    assert_eq!(fs::read_to_string(kept).unwrap(), theirs);
    assert_eq!(project.text(), ours);
    assert_eq!(project.store().recover().unwrap(), []);
    // Our version can still be restored.
    project.write("garbage: [");
    assert_eq!(project.store().recover().unwrap().len(), 1);
    assert_eq!(project.text(), ours);
}

/// Covers: AT-06
#[test]
fn a_save_that_is_set_aside_keeps_what_its_editor_still_writes() {
    let project = Project::new("aside");
    let old = project.text();
    project.add_task("one");
    let mut editor =
        fs::OpenOptions::new().write(true).truncate(true).open(project.file("state.yaml")).unwrap();
    editor.write_all(old.as_bytes()).unwrap();
    let notices = project.store().recover().unwrap();
    let [Notice::StaleSave { kept, .. }] = &notices[..] else { panic!("{notices:?}") };
    editor.write_all(b"# the rest\n").unwrap();
    assert_eq!(fs::read_to_string(kept).unwrap(), format!("{old}# the rest\n"));
}

/// An editor empties the file before it writes it: a command that reads it in between waits for the rest.
///
/// Covers: AT-06
#[test]
fn a_save_that_is_half_written_is_waited_for() {
    let project = Project::new("half-written");
    project.add_task("one");
    let is_locked = || {
        let file = fs::File::open(project.file("state.yaml.lock")).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).is_err()
    };
    for round in 0..10 {
        let saved = format!("{}# save {round}\n", project.text());
        let half = &saved[..saved.find("revision:").unwrap()];
        std::thread::scope(|scope| {
            project.write(half);
            let command = scope.spawn(|| project.submit(note("ours")).unwrap());
            let mut written = Instant::now();
            wait_until("the lock", || {
                // Written again and again, so that it stays a recent save.
                written = Instant::now();
                project.write(half);
                is_locked()
            });
            project.write(&saved);
            // A save that rests for longer counts as complete.
            let is_recent = written.elapsed() < Duration::from_millis(50);
            let notices = command.join().unwrap().notices;
            assert!(!is_recent || notices.is_empty(), "{notices:?}");
            assert!(
                !is_recent || project.text().contains(&format!("# save {round}\n")),
                "{}",
                project.text()
            );
        });
    }
}

/// Covers: AX-37
#[test]
fn a_reader_waits_for_a_save_that_is_half_written() {
    let project = Project::new("half-read");
    project.add_task("one");
    let saved = format!("{}# saved\n", project.text());
    for half in ["", &saved[..saved.len() / 2]] {
        for _ in 0..10 {
            let begins = AtomicBool::new(false);
            std::thread::scope(|scope| {
                project.write(half);
                let reader = scope.spawn(|| {
                    begins.store(true, Ordering::Relaxed);
                    project.store().snapshot().map(drop)
                });
                let mut written = Instant::now();
                wait_until("the reader", || {
                    written = Instant::now();
                    project.write(half);
                    begins.load(Ordering::Relaxed)
                });
                project.write(&saved);
                // A save that rests for longer counts as complete.
                let is_recent = written.elapsed() < Duration::from_millis(50);
                let read = reader.join().unwrap();
                assert!(!is_recent || read.is_ok(), "{read:?}");
            });
        }
    }
}

/// Covers: AT-12
#[test]
fn deleting_the_lock_file_does_not_give_two_holders() {
    let project = Project::new("deleted-lock");
    let store = project.store();
    let session = store.begin_edit().unwrap();
    fs::remove_file(project.file("state.yaml.lock")).unwrap();
    let impatient = project.store().with_lock_timeout(std::time::Duration::from_millis(50));
    let error = submit(&impatient, human(note("second"))).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
    drop(session);
    assert_eq!(project.run(note("x")), 2);
    assert!(project.file("state.yaml.lock").exists());
}

/// Covers: AT-14
#[test]
fn links_pipes_and_folders_are_errors() {
    let project = Project::new("odd-files");
    let state = project.file("state.yaml");
    let check = |what: &str, expected: &str| {
        let read = Store::open(&project.root).and_then(|store| store.snapshot()).unwrap_err().to_string();
        assert!(read.contains(expected) && read.contains("state.yaml"), "{what}: {read}");
        let written = project.submit(note("x")).unwrap_err().to_string();
        assert!(written.contains(expected), "{what}: {written}");
    };
    fs::rename(&state, project.root.join("elsewhere.yaml")).unwrap();
    std::os::unix::fs::symlink("../elsewhere.yaml", &state).unwrap();
    check("link", "it is a symbolic link");
    fs::remove_file(&state).unwrap();
    std::os::unix::fs::symlink("nowhere", &state).unwrap();
    check("broken link", "it is a symbolic link");
    fs::remove_file(&state).unwrap();
    fs::create_dir(&state).unwrap();
    check("folder", "it is a folder");
    fs::remove_dir(&state).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&state).status().unwrap().success());
    check("pipe", "it is not a file");
    fs::remove_file(&state).unwrap();
    fs::rename(project.root.join("elsewhere.yaml"), &state).unwrap();
    for name in ["log.yaml", "state.yaml.lock"] {
        let (path, moved) = (project.file(name), project.root.join(name));
        fs::rename(&path, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &path).unwrap();
        let before = fs::read(&moved).unwrap();
        let error = project.submit(note("x")).unwrap_err().to_string();
        assert!(error.contains("it is a symbolic link") && error.contains(name), "{error}");
        assert_eq!(fs::read(&moved).unwrap(), before, "{name}");
        fs::remove_file(&path).unwrap();
        fs::rename(&moved, &path).unwrap();
    }
    project.run(note("x"));
}

//! Writers are killed at any point: no acknowledged write is lost, and the log matches the state.

use std::collections::BTreeMap;
use std::process::{Child, Command as Process, Stdio};
use std::time::Duration;

use liza_testkit::evidence::{KILLED_AT_A_CALL, KILLED_AT_RANDOM, tried};

use crate::locking::{acknowledged, with_lock_timeout, worker};
use crate::support::*;

/// The system calls on files that a write makes.
const CALLS: [&str; 17] = [
    "openat",
    "read",
    "pread64",
    "write",
    "pwrite64",
    "fdatasync",
    "fsync",
    "rename",
    "renameat2",
    "linkat",
    "unlink",
    "flock",
    "close",
    "statx",
    "fchmod",
    "getdents64",
    "ftruncate",
];

fn traced(project: &Project, options: &[String], work: &str) -> std::process::Output {
    let plain = worker(project, work);
    let mut strace = Process::new("strace");
    strace.args(["-f", "-qq"]).args(options).arg("--").arg(plain.get_program()).args(plain.get_args());
    for (key, value) in plain.get_envs() {
        match value {
            Some(value) => strace.env(key, value),
            None => strace.env_remove(key),
        };
    }
    strace
        .stderr(Stdio::null())
        .output()
        .expect("strace is installed; ./check leaves this test out without it")
}

/// How often the worker makes each system call.
fn counts(project: &Project, work: &str) -> BTreeMap<&'static str, usize> {
    let trace = project.root.join("trace");
    let options =
        ["-o".to_owned(), trace.display().to_string(), "-e".to_owned(), format!("trace={}", CALLS.join(","))];
    assert!(traced(project, &options, work).status.success());
    let text = std::fs::read_to_string(&trace).unwrap();
    let count = |call: &&'static str| {
        (*call, text.lines().filter(|line| line.contains(&format!(" {call}("))).count())
    };
    CALLS.iter().map(count).collect()
}

/// Checks that the log matches the state, and that no temporary files are left.
fn check_agreement(project: &Project, what: &str) {
    let state = project.store().snapshot().unwrap_or_else(|error| panic!("{what}: {error}"));
    let log = project.log();
    let notes = &state.journal.human_notes;
    assert_eq!(log.matches("action: note").count(), notes.len(), "{what}\n{log}");
    for note in notes {
        assert_eq!(log.matches(&note.message).count(), 1, "{what}: {}\n{log}", note.message);
    }
    assert!(
        !project.names().iter().any(|name| name.contains("tmp") || name.contains("link")),
        "{what}: {:?}",
        project.names()
    );
}

/// Kills a writer at each of its system calls in turn, and returns the log.
fn kill_everywhere(name: &str, prepare: impl Fn(&Project)) -> String {
    let project = Project::new(name);
    prepare(&project);
    let counts = counts(&project, "note counting");
    let mut points = 0;
    for (call, count) in counts {
        for when in 1..=count {
            prepare(&project);
            let before = project.store().snapshot().unwrap().journal.human_notes.len();
            let work = format!("crash.{call}.{when}.");
            let options = [
                "-o",
                "/dev/null",
                "-e",
                &format!("trace={call}"),
                "-e",
                &format!("inject={call}:signal=KILL:when={when}"),
            ];
            let output = traced(&project, &options.map(str::to_owned), &format!("note {work}"));
            let done = String::from_utf8_lossy(&output.stdout).contains("DONE");
            points += 1;
            let what = format!("killed at {call} #{when}");
            let after = format!("after.{call}.{when}.");
            let outcome = project.submit(note(&after)).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(outcome.notices.is_empty(), "{what}: {:?}", outcome.notices);
            check_agreement(&project, &what);
            let notes = project.store().snapshot().unwrap().journal.human_notes;
            let written = notes.iter().any(|note| note.message == work);
            assert!(written || !done, "{what}: an acknowledged write is lost");
            assert_eq!(notes.len(), before + 1 + usize::from(written), "{what}");
        }
    }
    assert!(points > 40, "the trace has too few calls: {points}");
    tried(KILLED_AT_A_CALL, points);
    project.log()
}

/// Covers: BB-09, BB-12
#[test]
fn needs_strace_a_kill_at_any_system_call_of_a_write_loses_nothing() {
    kill_everywhere("kill", |_| {});
}

/// Covers: BB-09, BB-12, BB-16
#[test]
fn needs_strace_a_kill_at_any_system_call_of_a_write_after_a_manual_edit_loses_nothing() {
    kill_everywhere("kill-edited", |project| {
        let text = project.text();
        let text = text.strip_suffix("# edited\n").map_or_else(|| format!("{text}# edited\n"), str::to_owned);
        project.write(&text);
    });
}

/// Covers: AT-04, BB-12
#[test]
fn needs_strace_a_kill_at_any_system_call_logs_each_direct_edit_once_with_its_place() {
    let edits = std::cell::Cell::new(0);
    let edit = |project: &Project| {
        edits.set(edits.get() + 1);
        project.write(&with_lock_timeout(&project.text(), &(100 + edits.get()).to_string()));
    };
    let log = kill_everywhere("kill-direct", edit);
    assert_eq!(log.matches("agent: edited by hand").count(), edits.get(), "{log}");
    assert_eq!(log.matches("detail: config.lock_timeout\n").count(), edits.get(), "{log}");
}

/// What a killed command has done is undone or complete, and never taken for a direct edit.
///
/// Covers: AT-04, CM-04
#[test]
fn needs_strace_a_kill_at_any_system_call_of_a_command_under_the_lock_undoes_or_completes_it() {
    let project = Project::new("kill-modify");
    let counts = counts(&project, "modify 11");
    let (mut done_by, mut timeout, mut kills) = (1, 11, 0);
    for (call, when) in counts.into_iter().flat_map(|(call, count)| (1..=count).map(move |when| (call, when)))
    {
        kills += 1;
        let what = format!("killed at {call} #{when}");
        let wanted = timeout + 1;
        let options = ["-o", "/dev/null", "-e", &format!("trace={call}"), "-e"].map(str::to_owned);
        let inject = format!("inject={call}:signal=KILL:when={when}");
        let output = traced(&project, &[&options[..], &[inject]].concat(), &format!("modify {wanted}"));
        let done = String::from_utf8_lossy(&output.stdout).contains("DONE");
        project.run(note(&format!("after.{call}.{when}.")));
        check_agreement(&project, &what);
        let text = project.text();
        let written = text.contains(&format!("lock_timeout: {wanted}\n"));
        assert!(written || text.contains(&format!("lock_timeout: {timeout}\n")), "{what}: {text}");
        assert!(written || !done, "{what}: an acknowledged write is lost");
        (timeout, done_by) = if written { (wanted, done_by + 1) } else { (timeout, done_by) };
        let log = project.log();
        assert!(!log.contains("edited by hand"), "{what}: {log}");
        assert_eq!(log.matches("action: goal_created").count(), done_by + 1, "{what}: {log}");
    }
    assert!(timeout > 12, "no command was completed");
    tried(KILLED_AT_A_CALL, kills);
}

/// Covers: BB-09, BB-11, BB-12
#[test]
fn random_kills_of_concurrent_writers_lose_nothing() {
    let project = Project::new("random-kills");
    let mut acknowledged_notes = Vec::new();
    let mut kills = 0;
    for round in 0..60 {
        let start = |n: usize| -> Child {
            let work = format!("notes r{round}w{n} 1000");
            worker(&project, &work).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
        };
        let mut children: Vec<Child> = (0..4).map(start).collect();
        // Six writes by four writers: at least two of them are acknowledged before the kills.
        let wanted = project.store().snapshot().unwrap().journal.human_notes.len() + 6;
        wait_until("some writes", || project.log().matches("action: note").count() >= wanted);
        for (n, child) in children.iter_mut().enumerate() {
            // A different moment each time.
            let pause = (round * 7 + n * 13) % 23;
            std::thread::park_timeout(Duration::from_micros(pause as u64 * 150));
            child.kill().unwrap();
            kills += 1;
        }
        for child in children {
            acknowledged_notes.extend(acknowledged(&child.wait_with_output().unwrap().stdout));
        }
    }
    project.run(note("the end"));
    check_agreement(&project, "after all kills");
    let state = project.store().snapshot().unwrap();
    let lost = acknowledged_notes
        .iter()
        .find(|(text, ..)| !state.journal.human_notes.iter().any(|n| n.message == *text));
    assert_eq!(lost, None);
    assert_eq!(state.board.revision.0, 1 + state.journal.human_notes.len() as u64);
    println!(
        "{kills} kills, {} acknowledged, {} written",
        acknowledged_notes.len(),
        state.journal.human_notes.len()
    );
    assert!(kills >= 200 && acknowledged_notes.len() > 60);
    tried(KILLED_AT_RANDOM, kills);
}

const SLOT: usize = 64 * 1024;

/// The record in a slot, without the rest of an older and longer one.
fn record_in(slot: &[u8]) -> String {
    let text = String::from_utf8_lossy(slot);
    let (head, rest) = text.split_once('\n').unwrap_or_default();
    let length = head.split(' ').nth(2).and_then(|length| length.parse().ok()).unwrap_or(0);
    rest[..length].to_owned()
}

/// The files of a project after a power cut, with this log and only some of the records.
fn after_power_cut(project: &Project, log: &[u8], keep: &dyn Fn(&[u8]) -> bool) -> Project {
    let copy = Project::empty("power-cut");
    for name in ["state.yaml", "state.yaml.prev"] {
        std::fs::copy(project.file(name), copy.file(name)).unwrap();
    }
    let mut records = std::fs::read(project.file("state.yaml.lock")).unwrap();
    records.chunks_mut(SLOT).filter(|slot| !keep(slot)).for_each(|slot| slot.fill(0));
    std::fs::write(copy.file("state.yaml.lock"), records).unwrap();
    std::fs::write(copy.file("log.yaml"), log).unwrap();
    copy
}

/// The synced length of the log: the offset of the first entry that the kept records hold.
fn durable_log(project: &Project, keep: &dyn Fn(&[u8]) -> bool) -> usize {
    let records = std::fs::read(project.file("state.yaml.lock")).unwrap();
    let record = record_in(records.chunks(SLOT).find(|slot| keep(slot)).unwrap());
    let offset = |line: &str| {
        let mut words = line.split(' ');
        matches!(words.next(), Some("log" | "carried")).then(|| words.next()?.parse().ok()).flatten()
    };
    record.lines().filter_map(offset).min().unwrap()
}

/// The log is not synced with every write; an entry that is not synced there is in a synced record.
///
/// Covers: BB-12
#[test]
fn a_power_cut_loses_no_log_entry() {
    for notes in [1, 2, 14, 15, 40] {
        let project = Project::new("cut");
        project.run(register("coder-1"));
        for n in 0..notes {
            project.run(note(&format!("note.{n}.")));
        }
        // Unlogged writes: their records are not synced, and must not overwrite the synced one.
        for _ in 0..5 {
            project.run(heartbeat("coder-1"));
        }
        let (log, last) = (project.log(), format!("note.{}.", notes - 1));
        let keep = |slot: &[u8]| record_in(slot).contains("\nlog ") && record_in(slot).contains(&last);
        let durable = durable_log(&project, &keep);
        assert!(durable < log.len());
        // With the two entries before them, fourteen notes are the most that a record carries.
        assert_eq!(durable == 0, notes <= 14, "{notes} notes: {durable}");
        for cut in (durable..=log.len()).step_by(11) {
            for zeros in [0, log.len() - cut] {
                let torn = [&log.as_bytes()[..cut], &vec![0; zeros]].concat();
                let copy = after_power_cut(&project, &torn, &keep);
                assert!(copy.store().recover().unwrap().is_empty());
                let found = copy.log();
                for n in 0..notes {
                    let count = found.matches(&format!("detail: note.{n}.\n")).count();
                    assert_eq!(count, 1, "{notes} notes, cut at {cut}, {n}:\n{found:?}");
                }
                assert_eq!(found.matches("timestamp: ").count(), notes + 2, "cut at {cut}:\n{found:?}");
                assert!(!found.contains('\0'));
                assert!(zeros > 0 || found == log, "cut at {cut}:\n{found:?}");
            }
        }
    }
}

/// The system calls that write, rename or sync files, one per line, with the names of the files.
fn trace_of(project: &Project, work: &str) -> String {
    let trace = project.root.join("trace");
    let calls = "trace=write,pwrite64,fdatasync,fsync,renameat2";
    let options = ["-y", "-o", &trace.display().to_string(), "-e", calls].map(str::to_owned);
    assert!(traced(project, &options, work).status.success());
    std::fs::read_to_string(&trace).unwrap()
}

/// Covers: BB-09, BB-12
#[test]
fn needs_strace_file_and_record_are_synced_before_the_rename() {
    let project = Project::new("order");
    let text = trace_of(&project, "note durable");
    let at = |what: &dyn Fn(&str) -> bool| {
        let found: Vec<usize> = text.lines().enumerate().filter(|(_, l)| what(l)).map(|(n, _)| n).collect();
        assert_eq!(found.len(), 1, "{text}");
        found[0]
    };
    let call = |name: &'static str, file: &'static str| {
        at(&move |line| line.contains(&format!(" {name}(")) && line.contains(file))
    };
    let filled = call("write", "/state.yaml.tmp-2>");
    let recorded = call("pwrite64", "/state.yaml.lock>");
    let synced = call("fdatasync", "/state.yaml.tmp-2>");
    let record_synced = call("fdatasync", "/state.yaml.lock>");
    let renamed = call("renameat2", "/state.yaml.tmp-2\"");
    let name_synced = call("fsync", "/.liza>");
    let logged = call("write", "/log.yaml>");
    assert!(filled < synced && synced < renamed, "{text}");
    assert!(recorded < record_synced && record_synced < renamed, "{text}");
    assert!(renamed < name_synced && name_synced < logged, "{text}");
    // The log is synced before the record drops its entries.
    let text = trace_of(&project, "notes many 20");
    let synced = text.lines().position(|line| line.contains(" fdatasync(") && line.contains("/log.yaml>"));
    let synced = synced.unwrap_or_else(|| panic!("{text}"));
    let before = text.lines().take(synced).filter(|line| line.contains("/log.yaml>")).count();
    let after = text.lines().skip(synced).filter(|line| line.contains("/log.yaml>")).count();
    assert_eq!((before, after), (14, 7), "{text}");
}

//! Many processes write one file.

use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use liza_store::{Store, StoreError};
use liza_testkit::evidence::tried;

use crate::support::*;

const WORK: &str = "LIZA_STORE_TEST_WORK";
const ROOT: &str = "LIZA_STORE_TEST_ROOT";

/// A process that writes to the blackboard: `note TEXT`, `notes NAME COUNT`, `team NAME THREADS` or `modify TIMEOUT`.
pub(crate) fn worker(project: &Project, work: &str) -> Process {
    let mut process = Process::new(std::env::current_exe().unwrap());
    process.args(["locking::work", "--exact", "--nocapture", "--test-threads=1"]);
    process.env(WORK, work).env(ROOT, &project.root).env_remove("NEXTEST");
    process
}

/// The work of such a process; does nothing in a normal test run.
#[test]
fn work() {
    let (Ok(work), Some(root)) = (std::env::var(WORK), std::env::var_os(ROOT)) else { return };
    // Longer than all writes of all workers take on a busy machine: what is tested is the order, not the wait.
    let patience = Duration::from_secs(500);
    let store = Store::open(std::path::Path::new(&root)).unwrap().with_lock_timeout(patience);
    // The test harness has started a line.
    println!();
    let words: Vec<&str> = work.split(' ').collect();
    match words[..] {
        ["note", text] => {
            let outcome = submit(&store, human(note(text))).unwrap();
            println!("DONE {}", outcome.revision);
        }
        ["notes", name, count] => {
            for n in 0..count.parse::<u32>().unwrap() {
                let outcome = submit(&store, human(note(&format!("{name}.{n}.")))).unwrap();
                println!("ACK {name}.{n}. {}", outcome.revision);
            }
        }
        ["team", name, threads] => std::thread::scope(|scope| {
            for thread in 0..threads.parse::<u32>().unwrap() {
                let store = store.clone();
                scope.spawn(move || {
                    for n in 0..1_000 {
                        let text = format!("{name}.{thread}.{n}.");
                        let outcome = submit(&store, human(note(&text))).unwrap();
                        println!("ACK {text} {}", outcome.revision);
                    }
                });
            }
        }),
        ["modify", timeout] => {
            let mut session = store.begin_edit().unwrap();
            session.begin_modify(now()).unwrap();
            let text = std::fs::read_to_string(session.path()).unwrap();
            std::fs::write(session.path(), with_lock_timeout(&text, timeout)).unwrap();
            let edited = session.finish_modify(&first_entry(), now()).unwrap();
            println!("DONE {}", edited.revision);
        }
        _ => panic!("unknown work {work:?}"),
    }
}

/// The text with another `lock_timeout`.
pub(crate) fn with_lock_timeout(text: &str, timeout: &str) -> String {
    let (head, rest) = text.split_once("lock_timeout: ").unwrap();
    let (_, tail) = rest.split_once('\n').unwrap();
    format!("{head}lock_timeout: {timeout}\n{tail}")
}

/// The writes that a worker acknowledged: text and revision.
pub(crate) fn acknowledged(output: &[u8]) -> Vec<(String, u64)> {
    let line = |line: &str| {
        let mut words = line.strip_prefix("ACK ")?.split(' ');
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    String::from_utf8_lossy(output).lines().filter_map(line).collect()
}

fn write_concurrently(processes: usize, each: usize) {
    let project = Project::new("many");
    let start = |n: usize| {
        worker(&project, &format!("notes w{n} {each}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let workers: Vec<Child> = (0..processes).map(start).collect();
    let mut all = Vec::new();
    for child in workers {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        all.extend(acknowledged(&output.stdout));
    }
    assert_eq!(all.len(), processes * each);
    let mut revisions: Vec<u64> = all.iter().map(|(_, revision)| *revision).collect();
    revisions.sort_unstable();
    assert_eq!(revisions, (2..2 + (processes * each) as u64).collect::<Vec<_>>());
    let state = project.store().snapshot().unwrap();
    assert_eq!(state.journal.human_notes.len(), processes * each);
    assert_eq!(project.log().matches("\n- timestamp").count(), processes * each);
}

/// `cargo bench` measures how long they wait.
///
/// Covers: BB-09, BB-11
#[test]
fn sixty_four_processes_lose_nothing() {
    write_concurrently(64, 25);
    tried("processes write at the same time: no write is lost or written twice", 64);
}

/// Covers: BB-09, BB-10, BB-14
#[test]
fn the_store_and_flock_exclude_each_other() {
    let project = Project::new("flock");
    let lock = project.file("state.yaml.lock");
    let mut holder = Process::new("flock")
        .arg("-x")
        .arg(&lock)
        .args(["sh", "-c", "echo held; read line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("flock is part of util-linux");
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(holder.stdout.as_mut().unwrap()), &mut line)
        .unwrap();
    let before = project.text();
    let start = Instant::now();
    let timeout = Duration::from_millis(300);
    let error = submit(&project.store().with_lock_timeout(timeout), human(note("x"))).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
    assert!(start.elapsed() >= timeout);
    assert_eq!(project.text(), before);
    assert!(project.store().snapshot().is_ok(), "reading takes no lock");
    drop(holder.stdin.take());
    holder.wait().unwrap();
    project.run(note("x"));

    let store = project.store();
    let session = store.begin_edit().unwrap();
    let refused = Process::new("flock").arg("-n").arg(&lock).args(["true"]).status().unwrap();
    assert!(!refused.success(), "flock(1) got in");
    drop(session);
    assert!(Process::new("flock").arg("-n").arg(&lock).args(["true"]).status().unwrap().success());
}

/// Covers: BB-10
#[test]
fn the_lock_timeout_comes_from_the_config() {
    let project = Project::new("lock-timeout");
    let text = project.text();
    let without_wait = with_lock_timeout(&text, "0");
    project.write(&without_wait);
    let store = project.store();
    let session = store.begin_edit().unwrap();
    let error = submit(&project.store(), human(note("x"))).unwrap_err();
    let StoreError::Locked { waited, .. } = error else { panic!("{error:?}") };
    assert!(waited < Duration::from_secs(5), "{waited:?} is near the default");
    drop(session);
    project.run(note("x"));
}

/// Covers: BB-09
#[test]
fn children_do_not_inherit_the_lock_and_its_file_is_never_replaced() {
    use std::os::unix::fs::MetadataExt;
    let project = Project::new("inherit");
    let inode = || std::fs::metadata(project.file("state.yaml.lock")).unwrap().ino();
    let first = inode();
    let store = project.store();
    let session = store.begin_edit().unwrap();
    let mut child = Process::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    drop(session);
    project.run(note("x"));
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(inode(), first);
}

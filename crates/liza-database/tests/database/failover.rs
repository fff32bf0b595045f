//! A server that is replaced by its copy behind the same address, and a disk that is full.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use liza_core::model::Seconds;
use liza_store::{DatabaseReason, Store, StoreError};
use liza_testkit::evidence::{DATABASE_FAILS, tried};

use crate::board::{TestBoard, claim, human, now, register};
use crate::leases::beat;
use crate::proxy::Proxy;
use crate::server::Server;
use crate::support::{note, task, wait_until};

/// A server, its copy, and the address under which one of them is reached.
struct Pair {
    primary: Server,
    standby: Server,
    proxy: Proxy,
}

impl Pair {
    fn new() -> Self {
        let primary = Server::own("");
        let standby = Server::standby_of(&primary);
        let proxy = Proxy::new(&primary);
        Self { primary, standby, proxy }
    }

    /// Waits until the copy has all that was written.
    fn wait_for_copy(&self) {
        let at = self.primary.sql("SELECT pg_current_wal_lsn()").remove(0);
        let has = format!("SELECT pg_last_wal_replay_lsn() >= '{at}'");
        wait_until("the copy follows", || self.standby.sql(&has) == ["t"]);
    }

    /// The copy gets nothing more.
    fn part(&self) {
        self.standby.sql("ALTER SYSTEM SET primary_conninfo = ''");
        self.standby.sql("SELECT pg_reload_conf()");
        wait_until("they are apart", || self.primary.sql("SELECT pid FROM pg_stat_replication").is_empty());
    }
}

fn reason(error: &StoreError) -> DatabaseReason {
    let StoreError::Database(error) = error else { panic!("{error:?}") };
    error.reason
}

fn messages(store: &Store) -> Vec<String> {
    let notes = store.snapshot().unwrap().journal.human_notes;
    notes.into_iter().map(|note| note.message).collect()
}

/// Lets time pass on a server.
fn pass(server: &Server, seconds: i64) {
    server.sql(&format!("UPDATE liza.projects SET clock_offset_ms = clock_offset_ms + {seconds} * 1000"));
}

/// Covers: MM-03, MM-05, MM-12
#[test]
fn needs_postgres_a_failover_only_delays_and_no_one_is_taken_over() {
    let pair = Pair::new();
    let board = TestBoard::at(&pair.proxy.address(), "failover").with_tasks(&["one"]);
    let store = board.store().with_retry_limit(Duration::from_secs(60));
    let (first, second) = (register(&store, "coder-1"), register(&store, "coder-2"));
    claim(&store, &task("one"), "coder-1", first).unwrap();
    let Seconds(length) = store.snapshot().unwrap().board.config().unwrap().lease_duration;
    let length = i64::try_from(length).unwrap();
    // Its lease ends just before: another coder could take over at any moment.
    pass(&pair.primary, length + 61);
    pair.wait_for_copy();
    pair.primary.stop("immediate");
    pair.proxy.fail_over(&pair.standby);
    let quick = board.store().with_retry_limit(Duration::from_millis(200));
    // On a slow machine the first attempts only meet the connections that have ended.
    wait_until("the copy refuses writes", || {
        reason(&human(&quick, note("no")).unwrap_err()) == DatabaseReason::ReadOnly
    });
    assert_eq!(messages(&quick), Vec::<String>::new(), "it can be read");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| human(&store, note("after")).unwrap());
        pair.standby.promote();
        waiting.join().unwrap();
    });
    assert_eq!(messages(&store), ["after"]);
    let _ = beat(&store, "coder-2", second);
    let refused = claim(&store, &task("one"), "coder-2", second).unwrap_err();
    assert!(matches!(refused, StoreError::Refused(_)), "{refused:?}");
    // Once a lease length and the grace have passed without a renewal, the task is free.
    pass(&pair.standby, length + 61);
    beat(&store, "coder-2", second).unwrap();
    claim(&store, &task("one"), "coder-2", second).unwrap();
    tried(DATABASE_FAILS, 1);
}

/// Covers: MM-12
#[test]
fn needs_postgres_a_failover_that_lost_commits_steps_back_and_nothing_is_mixed() {
    let pair = Pair::new();
    let board = TestBoard::at(&pair.proxy.address(), "lost-commits");
    let store = board.store().with_retry_limit(Duration::from_secs(60));
    human(&store, note("kept")).unwrap();
    pair.wait_for_copy();
    pair.part();
    // Written and acknowledged, but the copy never gets it.
    human(&store, note("lost")).unwrap();
    let mut reader = store.incremental_reader();
    let before = reader.read().unwrap();
    let mut log = store.log_reader();
    assert!(log.read_new().unwrap().last().unwrap().detail.contains("lost"));
    pair.primary.stop("immediate");
    pair.standby.promote();
    pair.proxy.fail_over(&pair.standby);
    assert_eq!(messages(&store), ["kept"]);
    // The same number of a revision again, with other content.
    let written = human(&store, note("new")).unwrap();
    assert_eq!(written.revision, before.board.revision.0);
    let after = reader.read().unwrap();
    assert_eq!(*after, store.snapshot().unwrap());
    assert_eq!(messages(&store), ["kept", "new"]);
    let followed: Vec<String> = log.read_new().unwrap().into_iter().map(|entry| entry.detail).collect();
    assert!(matches!(followed.as_slice(), [only] if only.contains("new")), "{followed:?}");
    assert_eq!(store.validate(now()).unwrap(), []);
    tried(DATABASE_FAILS, 1);
}

/// A small file system in memory.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn new(path: &Path) -> Self {
        std::fs::create_dir(path).unwrap();
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(path).status().unwrap();
        assert!(mounted.success());
        Server::give(path);
        Self(path.to_owned())
    }

    fn fill(&self) {
        // Ends with an error when nothing more fits.
        let _ = std::fs::write(self.0.join("filler"), vec![0; 2 << 20]);
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Covers: MM-04
#[test]
fn needs_postgres_needs_mount_a_full_disk_delays_and_writes_no_half() {
    let server = Server::own("");
    let disk = SmallDisk::new(&server.folder().join("small"));
    let board = TestBoard::at(&server.address(), "full");
    server.sql(&format!("CREATE TABLESPACE small LOCATION '{}'", disk.0.display()));
    server.sql("ALTER TABLE liza.log SET TABLESPACE small");
    disk.fill();
    let quick = board.store().with_retry_limit(Duration::from_millis(200));
    let long = "x".repeat(3_000);
    let mut written = 0;
    let error = loop {
        match human(&quick, note(&format!("{written} {long}"))) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 1_000, "the disk is never full");
    };
    assert_eq!(reason(&error), DatabaseReason::Full, "{error}");
    assert_eq!(messages(&quick).len(), written, "the note without its log entry is not there");
    let store = board.store().with_retry_limit(Duration::from_secs(60));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| human(&store, note(&long)).unwrap());
        disk.free();
        waiting.join().unwrap();
    });
    assert_eq!(messages(&store).len(), written + 1);
    assert_eq!(store.log_reader().read_new().unwrap().len(), written + 2);
    // While the disk is mounted, the server's folder cannot be removed.
    drop(disk);
    let folder = server.folder().to_owned();
    drop(server);
    assert!(!folder.exists(), "{}", folder.display());
    tried(DATABASE_FAILS, 1);
}

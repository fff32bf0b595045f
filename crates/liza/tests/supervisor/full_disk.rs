//! A full disk at `isolated`: a session that fills its checkout, and code under test that fills its copy.
#![cfg(target_os = "linux")]

use std::fs;

use liza_core::model::Status;

use crate::fixture::{Bench, CODER, REVIEWER};
use crate::support::small_disk::SmallDisk;

/// Covers: RO-07
#[test]
fn needs_mount_a_session_that_fills_its_checkout_loses_nothing_and_blames_nobody() {
    let coder = format!("echo more >> kept; [ -e big ] || head -c 200000000 /dev/zero > big\n{CODER}");
    let bench = Bench::new("sandbox: auto", &[("c", &coder)]);
    bench.project.add_task("t1");
    let disk = SmallDisk::under(&bench.project.root, 40);
    bench.agent(&["coder", "t1", "--cli", "c", "--once"]).wait();
    let log = bench.outputs();
    assert!(log.contains("[liza: confinement isolated") && log.contains("No space left on device"), "{log}");
    assert_eq!(fs::read_to_string(bench.tree("t1").join("kept")).unwrap(), "more\n");
    let status = bench.project.liza(&["status"]);
    let said = status.ok().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("DISK FULL") && said.contains("no task is blamed"), "{said}");
    assert!(bench.task("t1").failed_by.unwrap_or_default().is_empty());
    bench.check_valid();
    fs::write(bench.tree("t1").join("big"), "small\n").unwrap();
    assert_eq!(bench.agent(&["coder", "t1", "--cli", "c", "--once"]).wait(), 0, "{}", bench.outputs());
    assert_eq!(bench.status("t1"), Status::ReadyForReview);
    assert_eq!(fs::read_to_string(bench.tree("t1").join("kept")).unwrap(), "more\nmore\n");
    let left = fs::read_dir(bench.project.root.join(".git")).unwrap().flatten();
    let left: Vec<_> = left
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().starts_with("liza-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    bench.until_nothing_runs();
    drop(disk);
}

/// Covers: RO-09
#[test]
fn needs_mount_a_check_on_a_full_disk_does_not_count_and_leaves_nothing() {
    let reviewer = format!(
        r#"check() {{ "$LIZA" check -- sh -c "$1" > said 2>&1; echo "ended $? $(cat said)"; }}
cd "$TMPDIR"
check 'head -c 200000000 /dev/zero > big'
check 'cat t1.txt; [ ! -e big ]'
head -c 200000000 /dev/zero > filler; cd /; "$LIZA" check -- sh -c 'echo x > x' 2>&1; echo "full $?"; cd "$TMPDIR"; rm filler
check 'cat t1.txt'
{REVIEWER}"#
    );
    let bench = Bench::new("sandbox: auto", &[("c", CODER), ("r", &reviewer)]);
    bench.project.add_task("t1");
    let disk = SmallDisk::under(&bench.project.root, 40);
    for words in [["coder", "--cli", "c", "--once"], ["code-reviewer", "--cli", "r", "--once"]] {
        assert_eq!(bench.agent(&words).wait(), 0, "{}", bench.outputs());
    }
    let log = bench.outputs();
    assert!(log.contains("/.liza/copies was full while it ran, so its result does not count"), "{log}");
    assert_eq!(log.matches("ended 0 work on t1\n").count(), 2, "{log}");
    assert!(log.contains("No space left on device") && !log.contains("full 0"), "{log}");
    assert_eq!(fs::read_dir(bench.project.root.join(".liza/copies")).unwrap().count(), 0);
    assert_eq!(bench.status("t1"), Status::Merged);
    bench.check_valid();
    bench.until_nothing_runs();
    drop(disk);
}

//! A full disk while work is judged: nobody's work is to blame, nothing is left, and all goes on when there is space.

use std::fs;

use crate::fixture::*;
use crate::support::TestProject;
use crate::support::small_disk::SmallDisk;

/// What fills the disk, and fails.
const FILLS: &str = "head -c 200000000 /dev/zero > big";

fn left_in(project: &TestProject) -> Vec<String> {
    let entries = fs::read_dir(project.root.join(".worktrees")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut left: Vec<String> =
        names.filter(|name| name.starts_with('.') && !name.starts_with(".review")).collect();
    left.sort();
    left
}

/// Covers: JU-03, RO-09
#[test]
fn needs_mount_on_a_full_disk_no_work_is_judged() {
    let project = team();
    let disk = SmallDisk::under(&project.root.join(".worktrees"), 8);
    submitted(&project, "one");
    project.liza(&["edit-task", "one", "--validate", FILLS]).ok();
    let review = || project.liza(&["claim-review", "one", "code-reviewer-1", "--json"]);
    let is_unjudged = |words: &str| {
        let run = review();
        let error = run.refused(3, "git");
        let (message, hint) = (error["message"].as_str().unwrap(), error["hint"].as_str().unwrap());
        assert!(message.contains(words) && message.contains(".worktrees"), "{message}");
        assert!(hint.starts_with("free space on the disk"), "{hint}");
        let record = project.record("one");
        assert_eq!((project.status("one"), record.reviewing_by), ("READY_FOR_REVIEW", None));
        assert_eq!((record.rejection_reason, record.validated), (None, None));
        assert_eq!(left_in(&project), [""; 0]);
    };
    is_unjudged("was full while it ran, so its result does not count");
    check_consistent(&project);
    disk.fill();
    is_unjudged("No space left on device");
    let status = project.liza(&["status"]);
    assert!(status.ok().contains("DISK FULL") && status.stdout.contains("df -h"), "{}", status.stdout);
    disk.empty();
    assert!(!project.liza(&["status"]).ok().contains("DISK FULL"));
    project.liza(&["edit-task", "one", "--validate", "test -f one.txt"]).ok();
    review().ok();
    verdict(&project, "one", &["APPROVED"]).ok();
    // A merge on a full disk, too.
    project.liza(&["config", "validation", &format!("[\"{FILLS}\"]")]).ok();
    let error = merge(&project, "one").refused(3, "git");
    assert!(error["message"].as_str().unwrap().contains("was full while it ran"), "{error}");
    assert_eq!(project.status("one"), "APPROVED");
    assert_eq!(left_in(&project), [""; 0]);
    project.liza(&["config", "validation", "[]"]).ok();
    merge(&project, "one").ok();
    check_consistent(&project);
}

/// Covers: JU-03, RO-09
#[test]
fn needs_mount_a_set_up_on_a_full_disk_sends_no_work_back() {
    let project = team();
    let disk = SmallDisk::under(&project.root.join(".worktrees"), 8);
    submitted(&project, "one");
    project.liza(&["config", "setup", FILLS]).ok();
    for _ in 0..4 {
        let run = project.liza(&["claim-review", "one", "code-reviewer-1", "--json"]);
        let error = run.refused(1, "setup_failed");
        assert!(error["message"].as_str().unwrap().contains("was full while it ran"), "{error}");
        assert!(error["hint"].as_str().unwrap().starts_with("free space"), "{error}");
        assert_eq!(project.status("one"), "READY_FOR_REVIEW");
    }
    assert!(!project.liza(&["status"]).ok().contains("goes back to its coder"));
    project.liza(&["config", "setup", "echo made > made"]).ok();
    project.liza(&["claim-review", "one", "code-reviewer-1"]).ok();
    drop(disk);
}

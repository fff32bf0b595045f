//! Every logged write has one log entry.

use crate::support::*;

/// Covers: BB-12
#[test]
fn a_logged_write_has_one_entry_and_a_heartbeat_has_none() {
    let project = Project::new("log");
    project.run(register("coder-1"));
    project.run(heartbeat("coder-1"));
    project.run(heartbeat("coder-1"));
    project.run(note("first line\nsecond # line: x"));
    let log = project.log();
    assert_eq!(log.matches("- timestamp: ").count(), 3, "{log}");
    assert!(log.contains("\n\n- timestamp: 2025-01-17T14:00:00Z\n  agent: human\n  action: note\n"), "{log}");
    assert!(log.contains("  revision: 5\n"), "{log}");
    for entry in log.split("\n\n") {
        let details = entry.lines().filter(|line| line.starts_with("  detail: ")).count();
        assert_eq!(details, 1, "{entry}");
        assert_eq!(
            entry.lines().filter(|line| !line.starts_with("  ") && !line.starts_with("- ")).count(),
            0
        );
    }
}

/// Covers: BB-12
#[test]
fn text_from_others_in_the_log_is_kept() {
    let project = Project::new("log-others");
    let mut log = project.log();
    log.push_str(
        "# a comment\n- timestamp: 2025-01-17T13:00:00Z\n  agent: x\n  action: y\n  detail: no newline",
    );
    std::fs::write(project.file("log.yaml"), &log).unwrap();
    project.run(note("hello"));
    let after = project.log();
    assert!(after.starts_with(&format!("{log}\n\n- timestamp: ")), "{after}");
    std::fs::remove_file(project.file("log.yaml")).unwrap();
    project.run(note("again"));
    assert!(project.log().starts_with("- timestamp: "));
}

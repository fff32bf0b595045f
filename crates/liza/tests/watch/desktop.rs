//! Desktop notifications, passed as arguments to a program.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::support::TestProject;

/// A project with a blocked task, and a notify-send that records its arguments.
fn blocked_project(reason: &str) -> (TestProject, PathBuf) {
    let project = TestProject::new();
    project.add_task("core");
    project.liza(&["mark-blocked", "core", "--reason", reason, "--question", "?"]).ok();
    let folder = project.home().join("bin");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("notify-send");
    let called = project.home().join("called");
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >> '{}'\n", called.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    (project, called)
}

fn watch_once(project: &TestProject, display: &str, words: &[&str]) {
    let path = format!("{}:{}", project.home().join("bin").display(), std::env::var("PATH").unwrap());
    let mut program = project.program();
    program.args(["watch", "--once"]).args(words).env("PATH", path);
    if !display.is_empty() {
        program.env("DISPLAY", display);
    }
    project.run(&mut program).ok();
}

/// Covers: SP-05
#[cfg(target_os = "linux")]
#[test]
fn an_alarm_is_shown_and_its_text_is_not_interpreted() {
    let (project, called) = blocked_project("$(touch owned) <b>x</b> & `id`");
    watch_once(&project, ":7", &[]);
    let arguments = fs::read_to_string(called).unwrap();
    let lines: Vec<&str> = arguments.lines().collect();
    assert_eq!(lines[..4], ["--app-name=liza", "--urgency=normal", "--", "liza: project"]);
    assert_eq!(lines[4], "⚠️ BLOCKED: core — $(touch owned) &lt;b&gt;x&lt;/b&gt; &amp; `id`");
    assert_eq!(lines.len(), 5, "each line once");
}

/// Covers: SP-05
#[cfg(target_os = "linux")]
#[test]
fn without_a_desktop_or_the_option_nothing_is_started() {
    for (display, words) in [("", &[][..]), (":7", &["--no-desktop"][..])] {
        let (project, called) = blocked_project("x");
        watch_once(&project, display, words);
        assert!(!called.exists());
        assert!(project.read(".liza/alerts.log").contains("BLOCKED"));
    }
}

/// Covers: SP-05
#[cfg(target_os = "linux")]
#[test]
fn a_flood_is_one_notification() {
    let (project, called) = blocked_project("x");
    for id in ["b", "c", "d", "e"] {
        project.add_task(id);
        project.liza(&["mark-blocked", id, "--reason", "x", "--question", "?"]).ok();
    }
    watch_once(&project, ":7", &[]);
    let arguments = fs::read_to_string(called).unwrap();
    assert_eq!(arguments.matches("--app-name").count(), 1, "{arguments}");
    assert!(arguments.contains("5 alerts"), "{arguments}");
}

//! `liza watch --once`, for scripts and cron, and what a watcher keeps between its runs.

use std::fs;

use crate::support::TestProject;
use crate::support::process::Running;

fn blocked() -> TestProject {
    let project = TestProject::new();
    project.add_task("core");
    project.liza(&["mark-blocked", "core", "--reason", "no spec\u{7}", "--question", "?"]).ok();
    project
}

fn reported(project: &TestProject) -> usize {
    let text = fs::read_to_string(project.root.join(".liza/alerts.log")).unwrap_or_default();
    text.lines().filter(|line| line.contains("BLOCKED: core")).count()
}

/// Covers: SP-05, CM-01, CM-03
#[test]
fn once_prints_all_alarms_and_reports_new_ones_once() {
    let project = blocked();
    for n in 0..2 {
        let run = project.liza(&["watch", "--once"]);
        run.ok();
        assert_eq!(run.stderr.trim(), "⚠️ BLOCKED: core — no spec", "run {n}");
        assert_eq!(run.stdout, "");
        assert_eq!(reported(&project), 1);
    }
    let line = project.read(".liza/alerts.log");
    assert!(line.starts_with("20") && line.contains("Z ⚠️ BLOCKED: core — no spec\n"), "{line}");
    let run = project.liza(&["watch", "--once", "--json"]);
    let alert = &run.result()["alerts"][0];
    assert_eq!((alert["event"].as_str(), alert["task"].as_str()), (Some("blocked"), Some("core")));
    assert_eq!(alert["new"], false);
    let run = project.liza(&["watch", "--once", "--quiet"]);
    assert_eq!((run.ok(), run.stderr.as_str()), ("", ""));
    project.liza(&["abandon-task", "core", "--reason", "x"]).ok();
    assert_eq!(project.liza(&["watch", "--once"]).ok(), "no alerts\n");
}

/// Covers: CM-01
#[test]
fn another_project_can_be_named_and_the_old_names_work() {
    let project = blocked();
    project.liza(&["setup"]).ok();
    let scripts = project.home().join(".liza/scripts");
    let root = project.root.to_str().unwrap();
    for (name, words) in [("liza-watch.sh", &[root, "--once"][..]), ("liza-analyze.sh", &[root][..])] {
        let mut script = project.command(scripts.join(name));
        project.run(script.args(words).current_dir(project.home())).ok();
    }
    assert_eq!(reported(&project), 1);
    project.liza(&["watch", "/nowhere", "--once", "--json"]).refused(1, "no_directory");
    project.liza_as("coder-1", &["watch", "--once", "--json"]).refused(1, "not_permitted");
    project.liza(&["watch", "--interval", "0", "--json"]).refused(1, "usage");
}

/// Covers: SP-05
#[test]
fn a_second_watcher_is_refused_and_once_takes_no_alarm_from_the_first() {
    let project = TestProject::new();
    project.add_task("core");
    let mut first = Running::liza(&project, &["watch", "--no-desktop"]);
    first.wait_for_output("watching");
    let error = project.liza(&["watch", "--json", "--interval", "1"]).refused(1, "watching");
    assert!(error["hint"].as_str().unwrap().contains("--once"), "{error}");
    project.liza(&["mark-blocked", "core", "--reason", "no spec", "--question", "?"]).ok();
    let run = project.liza(&["watch", "--once"]);
    run.ok();
    assert_eq!(run.stderr.trim(), "⚠️ BLOCKED: core — no spec");
    first.wait_for_output("BLOCKED: core");
    assert_eq!(reported(&project), 1, "reported once, by the running watcher");
    first.stop();
    assert!(!project.root.join(".liza/watch.lock").exists());
}

/// Covers: SP-05
#[test]
fn a_damaged_alarm_memory_is_replaced_with_a_notice() {
    for broken in ["{\"version\": 1, \"told\"", "\u{0}\u{1}", "[]", ""] {
        let project = blocked();
        project.liza(&["watch", "--once"]).ok();
        project.write(".liza/alerts.state", broken);
        let run = project.liza(&["watch", "--once"]);
        run.ok();
        assert!(
            run.stderr.contains("cannot read .liza/alerts.state, so alerts are repeated once"),
            "{run:?}"
        );
        assert_eq!(reported(&project), 2, "the current alarm is reported again");
        assert!(project.read(".liza/alerts.log").contains("ALERTS STATE LOST"));
        let again = project.liza(&["watch", "--once"]);
        assert!(!again.stderr.contains("alerts.state"), "{again:?}");
        assert_eq!(reported(&project), 2);
    }
}

/// Covers: SP-05, BB-12
#[test]
fn a_full_log_is_archived_and_nothing_is_lost() {
    let project = blocked();
    let old = "2026-01-01T00:00:00Z old\n".repeat(50_000);
    project.write(".liza/alerts.log", &old);
    project.liza(&["watch", "--once"]).ok();
    assert_eq!(project.read(".liza/alerts.log").lines().count(), 1);
    let kept: Vec<_> = fs::read_dir(project.root.join(".liza/archive")).unwrap().flatten().collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(fs::read_to_string(kept[0].path()).unwrap(), old);
}

/// Covers: SP-05, IV-16
#[test]
fn an_unreadable_blackboard_is_reported_and_no_alarm_is_cleared() {
    let project = blocked();
    project.liza(&["watch", "--once"]).ok();
    let good = project.state();
    project.write(".liza/state.yaml", "tasks: [\n");
    let run = project.liza(&["watch", "--once"]);
    run.ok();
    assert!(run.stderr.contains("🚨 INVALID STATE: "), "{run:?}");
    project.write(".liza/state.yaml", &good);
    project.liza(&["watch", "--once"]).ok();
    assert_eq!(reported(&project), 1, "the condition never ended");
}

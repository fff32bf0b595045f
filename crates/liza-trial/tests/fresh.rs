//! The generated tasks, run with a real shell.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::process::{Command, Stdio};

use liza_trial::fresh::{FreshTask, Kind, fresh_tasks};

fn passes(task: &FreshTask, code: &str, test: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(task.file()), code).unwrap();
    fs::write(folder.path().join("test.sh"), test).unwrap();
    let command = &mut Command::new("sh");
    command.arg("test.sh").current_dir(folder.path()).stderr(Stdio::null()).status().unwrap().success()
}

/// Covers: TR-01
#[test]
fn the_solution_passes_and_a_boundary_that_is_off_by_one_is_found_by_hidden_tests_only() {
    for task in fresh_tasks(11, 6) {
        assert!(passes(&task, &task.solution, &task.hidden), "{}", task.text);
        assert_eq!(
            passes(&task, &task.solution, &task.visible),
            task.kind != Kind::Impossible,
            "{}",
            task.text
        );
        let wrong = task.solution.replacen("-gt", "-ge", 1);
        assert!(!passes(&task, &wrong, &task.hidden), "{}", task.text);
        assert_eq!(passes(&task, &wrong, &task.visible), task.kind != Kind::Impossible, "{}", task.text);
    }
}

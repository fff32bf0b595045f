//! The guide shows what the program does: every block of it is run and compared.

use crate::support::{TestProject, console};

/// Covers: CM-05
#[test]
fn one_task_by_hand_is_true() {
    let page = console::page("guide/one-task-by-hand.md");
    // What agent programs there are is the machine's own affair.
    let (shown, seen) = console::run(&TestProject::at("shop"), &page, "agent programs");
    assert!(shown.iter().filter(|line| line.starts_with("$ ")).count() > 20);
    assert_eq!(seen, shown);
}

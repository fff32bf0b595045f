//! Runs every command block of the guide and compares its output.

use crate::support::{TestProject, console};

/// Covers: CM-05
#[test]
fn the_guide_one_task_by_hand_is_correct() {
    let page = console::page("guide/one-task-by-hand.md");
    // The installed agent programs differ between machines.
    let (shown, mut seen) = console::run(&TestProject::at("shop"), &page, "agent programs");
    // So does what their kernels can confine.
    seen.retain(|line| !line.contains("    confinement    "));
    assert!(shown.iter().filter(|line| line.starts_with("$ ")).count() > 20);
    assert_eq!(seen, shown);
}

//! What the watcher and the supervisors decide: alarms at, below and above each threshold, and the next step.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use liza_status::view::View;
use liza_status::words::sprint_facts;

mod alarms;
mod charts;
mod failing;
mod found_merges;
mod goals;
mod manual_edit;
mod needs_you;
mod planner;
mod results;
mod stop_files;
mod supervise;
mod view;
mod waiting;

/// The parts of the sprint's line.
fn sprint_words(view: &View) -> Vec<String> {
    sprint_facts(view.sprint.as_ref().unwrap()).into_iter().map(|(_, words)| words).collect()
}

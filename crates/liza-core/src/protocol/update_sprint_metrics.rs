//! update-sprint-metrics: counts the sprint's figures again from all of its tasks.
//!
//! Every command keeps them up to date (`sprint_figures.rs`); this is for a file that was edited by hand.

use crate::model::{Board, Metrics, Refusal, Section, TaskId, Timestamp};
use crate::rules::sprint::planned_with_replacements;

use super::operation::{LoadScope, Rule};
use super::permission::{EVERYONE, Rights};
use super::sprint_figures::write_figures;
use super::tx::Tx;

/// Counts again. There is no log entry, since nothing happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UpdateSprintMetrics;

impl Rule for UpdateSprintMetrics {
    type Reply = Metrics;
    const VERB: &'static str = "update-sprint-metrics";
    const RIGHTS: Rights = EVERYONE;
    const LOADS: LoadScope = LoadScope::all(&[Section::Sprint]);

    fn other_tasks(&self, board: &Board, _now: Timestamp) -> Vec<TaskId> {
        let sprint = board.sprint.ready();
        sprint
            .map(|sprint| planned_with_replacements(board, sprint).into_iter().collect())
            .unwrap_or_default()
    }

    fn run(&self, tx: &mut Tx<'_>) -> Result<Metrics, Refusal> {
        write_figures(tx)?;
        Ok(tx.change().sprint.as_ref().unwrap_or(tx.board.sprint()?).metrics.clone())
    }
}

//! The sprint's figures, recomputed from tasks and histories: never counted along, so never wrong.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::board::State;
use crate::event::EventName;
use crate::ids::TaskId;
use crate::record::{Status, TaskRecord};
use crate::sprint::planned_with_replacements;

/// `sprint.metrics`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metrics {
    /// MERGED, ABANDONED and SUPERSEDED.
    pub tasks_done: u32,
    /// Between the first claim and the merge.
    pub tasks_in_progress: u32,
    /// BLOCKED.
    pub tasks_blocked: u32,
    /// Claims.
    pub iterations_total: u32,
    /// Rejections, over all coders.
    pub review_cycles_total: u32,
    /// `approved` events.
    pub review_verdict_approvals: u32,
    /// `rejected` events.
    pub review_verdict_rejections: u32,
    /// Both.
    pub review_verdict_count: u32,
    /// Approvals of all verdicts.
    pub review_verdict_approval_rate_percent: Option<u32>,
    /// `ready_for_review` events.
    pub task_submitted_for_review_count: u32,
    /// Approvals of all submissions.
    pub task_outcome_approval_rate_percent: Option<u32>,
}

impl Metrics {
    /// Whether the verdicts look as if nobody read the code: over 95 % approvals among five or more.
    pub fn looks_rubber_stamped(&self) -> bool {
        self.review_verdict_count >= 5
            && u64::from(self.review_verdict_approvals) * 100 > u64::from(self.review_verdict_count) * 95
    }
}

/// Whole percent, nothing where there is nothing to divide by.
fn percent(part: u32, whole: u32) -> Option<u32> {
    u32::try_from((u64::from(part) * 100).checked_div(u64::from(whole))?).ok()
}

/// The figures of the current sprint: its planned tasks with their replacements.
pub fn sprint_metrics(state: &State) -> Metrics {
    let Some(sprint) = state.board.sprint.ready() else { return Metrics::default() };
    let tasks = planned_with_replacements(&state.board, sprint);
    // What is in the archive cannot be counted any more, and gets there only after the sprint's last count.
    if sprint.status.is_terminal() && tasks.iter().any(|task| state.board.archived.contains_key(task)) {
        return sprint.metrics.clone();
    }
    measure(state, &tasks)
}

fn measure(state: &State, tasks: &BTreeSet<TaskId>) -> Metrics {
    let mut metrics = Metrics::default();
    for task in tasks {
        count_status(&mut metrics, state.board.status(task));
        if let Ok(body) = state.board.body(task) {
            count_history(&mut metrics, &body.record);
        }
    }
    metrics.review_verdict_count = metrics.review_verdict_approvals + metrics.review_verdict_rejections;
    metrics.review_verdict_approval_rate_percent =
        percent(metrics.review_verdict_approvals, metrics.review_verdict_count);
    metrics.task_outcome_approval_rate_percent =
        percent(metrics.review_verdict_approvals, metrics.task_submitted_for_review_count);
    metrics
}

fn count_status(metrics: &mut Metrics, status: Option<Status>) {
    match status {
        Some(Status::Merged | Status::Abandoned | Status::Superseded) => metrics.tasks_done += 1,
        Some(
            Status::Claimed
            | Status::ReadyForReview
            | Status::Rejected
            | Status::Approved
            | Status::IntegrationFailed,
        ) => metrics.tasks_in_progress += 1,
        Some(Status::Blocked) => metrics.tasks_blocked += 1,
        Some(Status::Draft | Status::Unclaimed) | None => {}
    }
}

fn count_history(metrics: &mut Metrics, record: &TaskRecord) {
    metrics.review_cycles_total += record.review_cycles_total.unwrap_or(0);
    for event in record.history.iter().flatten() {
        metrics.iterations_total += u32::from(EventName::is_claim(&event.event));
        metrics.review_verdict_approvals += u32::from(event.is(EventName::Approved));
        metrics.review_verdict_rejections += u32::from(event.is(EventName::Rejected));
        metrics.task_submitted_for_review_count += u32::from(event.is(EventName::ReadyForReview));
    }
}

//! The sprint's figures, computed from tasks and their histories.
//!
//! Every figure is a sum over tasks, so a command replaces its own tasks' share without reading the others.

use std::ops::{Add, Sub};

use crate::model::{Metrics, State, Status, TaskRecord};

use super::sprint::planned_with_replacements;

/// The share of one task in the figures, or the sum over several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Contribution {
    done: u32,
    in_progress: u32,
    blocked: u32,
    claims: u32,
    review_cycles: u32,
    approvals: u32,
    rejections: u32,
    submissions: u32,
}

pub(crate) fn contribution(record: &TaskRecord) -> Contribution {
    let mut sum =
        Contribution { review_cycles: record.review_cycles_total.unwrap_or(0), ..Contribution::default() };
    match record.status {
        Some(Status::Merged | Status::Abandoned | Status::Superseded) => sum.done = 1,
        Some(
            Status::Claimed
            | Status::ReadyForReview
            | Status::Rejected
            | Status::Approved
            | Status::IntegrationFailed,
        ) => sum.in_progress = 1,
        Some(Status::Blocked) => sum.blocked = 1,
        Some(Status::Draft | Status::Unclaimed) | None => {}
    }
    let past = record.past();
    (sum.claims, sum.submissions) = (past.claims, past.submissions);
    (sum.approvals, sum.rejections) = (past.approvals, past.rejections);
    sum
}

impl Contribution {
    fn combine(self, other: Self, with: fn(u32, u32) -> u32) -> Self {
        Self {
            done: with(self.done, other.done),
            in_progress: with(self.in_progress, other.in_progress),
            blocked: with(self.blocked, other.blocked),
            claims: with(self.claims, other.claims),
            review_cycles: with(self.review_cycles, other.review_cycles),
            approvals: with(self.approvals, other.approvals),
            rejections: with(self.rejections, other.rejections),
            submissions: with(self.submissions, other.submissions),
        }
    }
}

impl Add for Contribution {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.combine(other, u32::saturating_add)
    }
}

impl Sub for Contribution {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.combine(other, u32::saturating_sub)
    }
}

impl From<&Metrics> for Contribution {
    fn from(metrics: &Metrics) -> Self {
        Self {
            done: metrics.tasks_done,
            in_progress: metrics.tasks_in_progress,
            blocked: metrics.tasks_blocked,
            claims: metrics.iterations_total,
            review_cycles: metrics.review_cycles_total,
            approvals: metrics.review_verdict_approvals,
            rejections: metrics.review_verdict_rejections,
            submissions: metrics.task_submitted_for_review_count,
        }
    }
}

impl From<Contribution> for Metrics {
    fn from(sum: Contribution) -> Self {
        let verdicts = sum.approvals.saturating_add(sum.rejections);
        Self {
            tasks_done: sum.done,
            tasks_in_progress: sum.in_progress,
            tasks_blocked: sum.blocked,
            iterations_total: sum.claims,
            review_cycles_total: sum.review_cycles,
            review_verdict_approvals: sum.approvals,
            review_verdict_rejections: sum.rejections,
            review_verdict_count: verdicts,
            review_verdict_approval_rate_percent: percent(sum.approvals, verdicts),
            task_submitted_for_review_count: sum.submissions,
            task_outcome_approval_rate_percent: percent(sum.approvals, sum.submissions),
        }
    }
}

/// Whole percent; `None` if there is nothing to divide by.
fn percent(part: u32, whole: u32) -> Option<u32> {
    u32::try_from((u64::from(part) * 100).checked_div(u64::from(whole))?).ok()
}

/// The figures of the current sprint, counted over its planned tasks with their replacements.
pub fn sprint_metrics(state: &State) -> Metrics {
    let Some(sprint) = state.board.sprint.ready() else { return Metrics::default() };
    let tasks = planned_with_replacements(&state.board, sprint);
    // Archived tasks cannot be counted any more; they are archived only after the sprint's last count.
    if sprint.status.is_terminal() && tasks.iter().any(|task| state.board.archived.contains_key(task)) {
        return sprint.metrics.clone();
    }
    let bodies = tasks.iter().filter_map(|task| state.board.body(task).ok());
    bodies.fold(Contribution::default(), |sum, body| sum + contribution(body.record())).into()
}

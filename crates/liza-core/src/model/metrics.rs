//! The sprint's figures, as the file has them; `rules/metrics.rs` computes them.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metrics {
    pub tasks_done: u32,
    /// Between the first claim and the merge.
    pub tasks_in_progress: u32,
    pub tasks_blocked: u32,
    pub iterations_total: u32,
    pub review_cycles_total: u32,
    pub review_verdict_approvals: u32,
    pub review_verdict_rejections: u32,
    pub review_verdict_count: u32,
    pub review_verdict_approval_rate_percent: Option<u32>,
    pub task_submitted_for_review_count: u32,
    pub task_outcome_approval_rate_percent: Option<u32>,
}

impl Metrics {
    /// True if the code was probably not read: over 95 % approvals among five or more verdicts.
    pub fn looks_rubber_stamped(&self) -> bool {
        self.review_verdict_count >= 5
            && u64::from(self.review_verdict_approvals) * 100 > u64::from(self.review_verdict_count) * 95
    }
}

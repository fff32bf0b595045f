//! The number of sessions without a merge or a person's decision: the bound of every loop of agents.
//!
//! Each session is charged to one budget when it starts. New commits refill nothing. A merge refills the
//! planner's and the shared budget, a person refills any. Proven in `tests/rules/session_budget.rs` with
//! agents that do their worst.

use std::fmt;

use crate::model::{Board, Config, SessionCounts, Sprint, Status, TaskId, TaskRecord};

/// The budget that a session is charged to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionBudget {
    Planner,
    /// Sessions on tasks that the planner added to a running plan.
    Shared,
    /// Sessions on this task and its replacements.
    Task(TaskId),
}

impl SessionBudget {
    /// The budget of a coder's or code reviewer's session on this task.
    pub fn of_task(id: &TaskId, record: &TaskRecord) -> Self {
        match &record.budget_task {
            _ if record.shared_budget == Some(true) => SessionBudget::Shared,
            Some(first) => SessionBudget::Task(first.clone()),
            None => SessionBudget::Task(id.clone()),
        }
    }

    pub fn used(&self, sprint: &Sprint) -> u32 {
        match self {
            SessionBudget::Planner => sprint.sessions.planner,
            SessionBudget::Shared => sprint.sessions.shared,
            SessionBudget::Task(task) => sprint.sessions.tasks.get(task).copied().unwrap_or(0),
        }
    }

    pub fn limit(&self, config: &Config) -> u32 {
        match self {
            SessionBudget::Planner => config.max_planner_sessions,
            SessionBudget::Shared | SessionBudget::Task(_) => config.max_sessions,
        }
    }

    /// True if no session may start.
    pub fn is_used_up(&self, sprint: &Sprint, config: &Config) -> bool {
        self.used(sprint) >= self.limit(config)
    }

    pub(crate) fn charge(&self, counts: &mut SessionCounts) {
        let count = self.count(counts);
        *count = count.saturating_add(1);
    }

    pub(crate) fn refund(&self, counts: &mut SessionCounts) {
        let count = self.count(counts);
        *count = count.saturating_sub(1);
    }

    pub(crate) fn refill(&self, counts: &mut SessionCounts) {
        match self {
            SessionBudget::Planner => counts.planner = 0,
            SessionBudget::Shared => counts.shared = 0,
            SessionBudget::Task(task) => drop(counts.tasks.shift_remove(task)),
        }
    }

    fn count<'c>(&self, counts: &'c mut SessionCounts) -> &'c mut u32 {
        match self {
            SessionBudget::Planner => &mut counts.planner,
            SessionBudget::Shared => &mut counts.shared,
            SessionBudget::Task(task) => counts.tasks.entry(task.clone()).or_default(),
        }
    }
}

impl fmt::Display for SessionBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionBudget::Planner => f.write_str("the planner"),
            SessionBudget::Shared => f.write_str("the tasks that the planner added to the plan"),
            SessionBudget::Task(task) => write!(f, "{task} and its replacements"),
        }
    }
}

/// True once work on the plan has begun: tasks that the planner adds now share one budget.
pub fn plan_has_begun(board: &Board, sprint: &Sprint) -> bool {
    let waits = |status: Option<Status>| matches!(status, Some(Status::Draft | Status::Unclaimed));
    let counts = &sprint.sessions;
    counts.shared > 0 || !counts.tasks.is_empty() || board.summaries().any(|task| !waits(task.status))
}

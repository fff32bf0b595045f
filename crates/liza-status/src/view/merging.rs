//! A merge that is running, as a screen shows it.

use crate::alarms::Moment;
use serde::Serialize;

use crate::forecast::{Next, What};
use liza_core::model::{AgentId, Seconds, Status, TaskId};

use super::task::TaskView;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergeView {
    pub task: TaskId,
    /// `None` if the human merges.
    pub by: Option<AgentId>,
    pub age: Seconds,
    /// True once its integration test has begun.
    pub is_testing: bool,
    /// True if another agent has left the team since it began.
    pub team_leaves: bool,
}

/// The merge that is running, if its task is still to be merged.
pub(super) fn merge_view(tasks: &mut [TaskView], at: Moment<'_>) -> Option<MergeView> {
    let merge = at.seen.merge.clone()?;
    let is_open = |task: &&mut TaskView| task.id == merge.task && task.status == Some(Status::Approved);
    let task = tasks.iter_mut().find(is_open)?;
    let age = at.now.since(merge.since);
    let (is_testing, team_leaves) = (merge.is_testing, merge.team_leaves);
    let shown = MergeView { task: merge.task, by: merge.by, age, is_testing, team_leaves };
    let what = What::MergeNow { is_testing, age };
    task.next = match shown.by {
        Some(agent) => Next::agent(agent, what),
        None => Next::you(what),
    };
    task.reason = task.next.merge_words();
    Some(shown)
}

//! A plan that waits for the human.

use crate::model::{State, TaskId};
use crate::rules::triggers::proposed_tasks;
use crate::text::count;

use super::{Alarm, AlarmKind};

/// The planner has proposed tasks, and the human has to approve them.
pub(super) fn alarm(state: &State) -> Option<Alarm> {
    let tasks: Vec<&TaskId> = proposed_tasks(state).map(|(id, _)| id).collect();
    let goal = state.board.goal.ready()?.id.as_str();
    let names: Vec<&str> = tasks.iter().map(|id| id.as_str()).collect();
    let text =
        format!("the plan waits for your approval: {}, {}", count(names.len(), "task"), names.join(", "));
    (!names.is_empty()).then(|| Alarm::warning(AlarmKind::PlanProposed, goal, text))
}

//! The cost of the goal: time, usage and rejections of each task, of the sessions without one, and of all.
//!
//! The page of charts and the table at the end of a run show these figures; `spending.rs` has the sprint's.

use serde::Serialize;

use crate::model::{Seconds, State, TaskId, TaskRecord, Timestamp, Usage};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskFigures {
    pub task: TaskId,
    /// From its first claim to its end, or to now.
    pub time: Option<Seconds>,
    pub usage: Usage,
    /// By code reviewers and the human.
    pub rejections: u32,
}

/// The figures of the goal. Its tasks and the rest add up to the total.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct GoalFigures {
    pub tasks: Vec<TaskFigures>,
    /// The usage of sessions that plan, and of tasks in the archive.
    pub other: Usage,
    pub total: Usage,
    pub rejections: u32,
}

impl GoalFigures {
    pub fn of(state: &State, now: Timestamp) -> Self {
        let figures = |(id, record): (&TaskId, &TaskRecord)| TaskFigures {
            task: id.clone(),
            time: record.work_time(now),
            usage: record.usage.clone().unwrap_or_default(),
            rejections: record.past().rejections,
        };
        let tasks: Vec<TaskFigures> = state.bodies().map(|(id, body)| figures((id, body.record()))).collect();
        let mut of_tasks = Usage::default();
        tasks.iter().for_each(|task| of_tasks.add(&task.usage));
        let recorded = state.board.goal.ready().and_then(|goal| goal.usage.clone());
        let other = recorded.unwrap_or_default().since(&of_tasks);
        let mut total = of_tasks;
        total.add(&other);
        let rejections = tasks.iter().map(|task| task.rejections).sum();
        Self { tasks, other, total, rejections }
    }
}

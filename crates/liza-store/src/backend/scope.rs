//! The parts of the blackboard that a command needs, for a back end that doesn't read all of it.

use std::collections::BTreeSet;

use liza_core::model::{Board, TaskId};
use liza_core::protocol::Pending;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskExtent {
    Named,
    /// Summaries of all, and those that are named in full.
    Summaries,
    Whole,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadScope {
    /// Sections besides those that every command needs; all of them if the extent is whole.
    pub sections: BTreeSet<String>,
    pub extent: TaskExtent,
    pub tasks: BTreeSet<TaskId>,
}

impl LoadScope {
    pub fn of(
        sections: impl IntoIterator<Item = &'static str>,
        extent: TaskExtent,
        tasks: impl IntoIterator<Item = TaskId>,
    ) -> Self {
        let sections = sections.into_iter().map(str::to_owned).collect();
        Self { sections, extent, tasks: tasks.into_iter().collect() }
    }

    /// The parts that a pending command needs, as far as a board tells.
    pub fn needed_by(pending: &dyn Pending, board: &Board) -> Self {
        let sections = pending.sections();
        let extent = match pending.summaries(board) {
            None => TaskExtent::Summaries,
            Some(_) => TaskExtent::Named,
        };
        Self::of(sections.iter().map(|section| section.key()), extent, pending.named_tasks(board))
    }

    pub fn everything() -> Self {
        Self { sections: BTreeSet::new(), extent: TaskExtent::Whole, tasks: BTreeSet::new() }
    }

    pub fn is_whole(&self) -> bool {
        self.extent == TaskExtent::Whole
    }

    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.sections.extend(other.sections);
        self.tasks.extend(other.tasks);
        self.extent = self.extent.max(other.extent);
        self
    }

    pub fn covers(&self, other: &Self) -> bool {
        self.is_whole()
            || (self.extent >= other.extent
                && self.sections.is_superset(&other.sections)
                && self.tasks.is_superset(&other.tasks))
    }
}

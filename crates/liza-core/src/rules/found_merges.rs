//! Tasks whose merge is on the integration branch but not on the blackboard, which may be an older copy.
//!
//! The program observes the branch; the consequences are here. No agent claims, continues, reviews or merges
//! such a task until the human has settled it: its work would be done twice.

use indexmap::IndexSet;
use liza_ids::{BranchMerge, BranchSteps};

use crate::model::{Board, Refusal, Sha, TaskId, TaskStatus};
use liza_ids::order::sort_by;

/// The open tasks whose merge is on the branch and not on the blackboard, with the merge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundMerges {
    tasks: Vec<(TaskId, Sha)>,
    hold_merges: bool,
}

impl FoundMerges {
    pub const NONE: Self = Self { tasks: Vec::new(), hold_merges: false };

    /// Finds the tasks that wait. Merges of tasks that are APPROVED at exactly that commit need no human if
    /// there is nothing else: the machine that made them, the next merge or `recover` records them.
    pub fn new(board: &Board, beyond: &BranchSteps) -> Self {
        let status = |merge: &BranchMerge| board.task(&merge.task).map(|task| task.status);
        let is_recorded_soon = |merge: &BranchMerge| match status(merge) {
            Ok(TaskStatus::Approved { commit, .. }) => commit == merge.commit,
            Ok(TaskStatus::Merged { merge_commit }) => merge_commit.as_ref() == Some(&merge.merge_commit),
            Ok(_) | Err(_) => false,
        };
        if !beyond.has_others && beyond.merges.iter().all(is_recorded_soon) {
            return Self::NONE;
        }
        let mut found = unrecorded(board, beyond);
        sort_by(&mut found, &|a, b| a.task.cmp(&b.task));
        let tasks = found.into_iter().map(|merge| (merge.task.clone(), merge.merge_commit.clone())).collect();
        Self { tasks, hold_merges: beyond.has_others || !beyond.merges.is_empty() }
    }

    /// The merge of this task, if the task waits.
    pub fn of(&self, task: &TaskId) -> Option<&Sha> {
        self.tasks.iter().find(|(found, _)| found == task).map(|(_, merge)| merge)
    }

    pub fn tasks(&self) -> impl Iterator<Item = &TaskId> {
        self.tasks.iter().map(|(task, _)| task)
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// True if every merge is refused: the branch has commits that the human has to settle first.
    pub fn hold_merges(&self) -> bool {
        self.hold_merges
    }

    pub fn without_waiting(&self, mut tasks: Vec<TaskId>) -> Vec<TaskId> {
        tasks.retain(|task| self.of(task).is_none());
        tasks
    }

    /// Refuses work on a task that waits.
    pub fn check(&self, task: &TaskId) -> Result<(), Refusal> {
        match self.of(task) {
            Some(merge) => Err(Refusal::MergeNotRecorded { task: task.clone(), merge: merge.clone() }),
            None => Ok(()),
        }
    }
}

/// The merges of tasks that are open on the blackboard; for a reused name, only the first one counts.
pub fn unrecorded<'a>(board: &Board, beyond: &'a BranchSteps) -> Vec<&'a BranchMerge> {
    let mut known = IndexSet::new();
    let is_open = |task: &TaskId| board.status(task).is_some_and(|status| !status.is_terminal());
    beyond.merges.iter().filter(|merge| is_open(&merge.task) && known.insert(&merge.task)).collect()
}

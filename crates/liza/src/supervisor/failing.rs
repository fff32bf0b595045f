//! Counts what an agent's supervisor tries again and again, by task, and records it for the screens.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use liza_core::model::{AgentId, Generation, TaskId, Timestamp};
use liza_core::watch::alarms::{FailingJob, FailingJobs};

use crate::failing_jobs;

/// What fails, by task; without a task, what is about none.
#[derive(Debug, Default)]
pub(super) struct Failing(BTreeMap<Option<TaskId>, FailingJob>);

impl Failing {
    /// Counts one more failure; returns how many there were in a row.
    pub(super) fn count(&mut self, task: Option<TaskId>, why: String, now: Timestamp) -> u32 {
        let job = match self.0.entry(task) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let task = place.key().clone();
                place.insert(FailingJob { task, count: 0, message: String::new(), since: now })
            }
        };
        job.count = job.count.saturating_add(1);
        job.message = why;
        job.count
    }

    /// Forgets what has succeeded; returns whether a screen may have shown it.
    pub(super) fn succeeded(&mut self, task: Option<&TaskId>) -> bool {
        let ended = [self.0.remove(&None), task.and_then(|task| self.0.remove(&Some(task.clone())))];
        ended.into_iter().flatten().any(|job| job.count >= FailingJob::LIMIT)
    }

    /// Writes down what a person has to know.
    pub(super) fn record(&self, folder: &Path, agent: AgentId, generation: Generation) {
        let jobs = self.0.values().filter(|job| job.count >= FailingJob::LIMIT).cloned().collect();
        failing_jobs::record(folder, agent, &FailingJobs { generation, jobs });
    }
}

//! Work that failed: when it is tried again, and what the screens say of it.
//!
//! Shared by all agents of a team: what the environment refuses to one, it refuses to the others.

use std::collections::BTreeMap;
use std::path::Path;

use liza_core::model::{AgentId, Seconds, State, Timestamp};
use liza_core::supervise::{Backoffs, WorkKind, WorkSubject, backoff};
use liza_core::watch::alarms::FailingJob;

use crate::observe::failing_jobs;
use crate::project::now;

use super::error::{FailedWork, SupervisorError};

/// The longest pause after work that was refused: it was another agent's, or waits for a person who is asked elsewhere.
const LONGEST_REFUSED: Seconds = Seconds(30);

#[derive(Debug, Default)]
pub(super) struct Failing {
    jobs: BTreeMap<(WorkKind, WorkSubject), FailingJob>,
    /// How often in a row work was refused by the rules.
    refused: BTreeMap<(WorkKind, WorkSubject), u32>,
    backoffs: Backoffs,
}

impl Failing {
    /// Begins with nothing, and forgets what an earlier team has left and what no longer has to be done.
    pub(super) fn begin(folder: &Path, state: &State) -> Self {
        failing_jobs::forget_earlier(folder, state);
        Self::default()
    }

    /// What is left alone for now.
    pub(super) fn backoffs(&mut self, now: Timestamp) -> &Backoffs {
        self.backoffs.forget_ended(now);
        &self.backoffs
    }

    /// Leaves work alone for a while that did not fail.
    pub(super) fn put_off(&mut self, kind: WorkKind, subject: WorkSubject, pause: Seconds) {
        if pause > Seconds(0) {
            self.backoffs.put_off(kind, subject, now() + pause);
        }
    }

    /// Leaves work alone that the rules refused: 1 s, doubling, at most 30 s.
    pub(super) fn refuse(&mut self, kind: WorkKind, subject: WorkSubject) {
        let times = self.refused.entry((kind, subject.clone())).or_default();
        let pause = Seconds(1u64.checked_shl(*times).unwrap_or(u64::MAX).min(LONGEST_REFUSED.0));
        *times = times.saturating_add(1).min(16);
        self.put_off(kind, subject, pause);
    }

    /// Counts one more failure of the environment, and leaves the work alone for longer each time.
    pub(super) fn count(
        &mut self,
        agent: AgentId,
        work: &FailedWork,
        error: &SupervisorError,
    ) -> (FailingJob, Seconds) {
        let (kind, task, remedy) = (work.kind, work.task.clone(), error.remedy());
        let key = (kind, work.subject(agent));
        let before = self.jobs.get(&key);
        let (times, since) = before.map_or((0, now()), |job| (job.count, job.since));
        let count = times.saturating_add(1);
        let job = FailingJob { kind, agent, task, count, message: error.to_string(), remedy, since };
        self.jobs.insert(key.clone(), job.clone());
        let pause = backoff(count);
        self.put_off(kind, key.1, pause);
        (job, pause)
    }

    pub(super) fn succeeded(&mut self, folder: &Path, kind: WorkKind, subject: &WorkSubject) {
        let key = (kind, subject.clone());
        self.refused.remove(&key);
        self.jobs.remove(&key);
        self.backoffs.end(kind, subject);
        // Also what an earlier team has failed at.
        failing_jobs::forget(folder, kind, subject);
    }
}

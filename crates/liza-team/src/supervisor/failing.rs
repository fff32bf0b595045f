//! Failed work: the time of the next try, and its message on the screens. Shared by all agents of a team: the
//! environment refuses the same to all of them.

use std::collections::BTreeMap;
use std::path::Path;

use liza_core::model::{AgentId, Seconds, State, Timestamp};
use liza_core::supervise::{Backoffs, WorkKind, WorkSubject, backoff};
use liza_status::alarms::FailingJob;

use crate::observe::failing_jobs;
use crate::project::now;

use super::error::{FailedWork, SupervisorError};

/// The longest pause after a refusal: the work was another agent's, or waits for a person who was asked.
const LONGEST_REFUSED: Seconds = Seconds(30);

#[derive(Debug, Default)]
pub(super) struct Failing {
    jobs: BTreeMap<(WorkKind, WorkSubject), FailingJob>,
    /// Refusals by the rules in a row.
    refused: BTreeMap<(WorkKind, WorkSubject), u32>,
    backoffs: Backoffs,
}

impl Failing {
    /// Forgets the failures of an earlier team that no longer matter.
    pub(super) fn begin(folder: &Path, state: &State) -> Self {
        failing_jobs::forget_earlier(folder, state);
        Self::default()
    }

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
        // An earlier team's failure, too.
        failing_jobs::forget(folder, kind, subject);
    }
}

//! A team whose work failed or succeeded: its messages, and the time of the next try.

use liza_core::supervise::{WorkKind, WorkSubject};
use liza_core::text::count;
use liza_status::alarms::FailingJob;

use crate::observe::failing_jobs;

use super::error::{Consequence, FailedWork, SupervisorError};
use super::event::{FailedClaim, MemberIndex};
use super::message::MessageLevel;
use super::team::Team;

impl Team<'_> {
    /// Leaves failed work alone for a while; the agent goes on with the rest.
    pub(super) fn work_failed(&mut self, index: MemberIndex, work: &FailedWork, error: &SupervisorError) {
        let Some(member) = self.members.get(index) else { return };
        let agent = member.identity.agent;
        if error.consequence() == Consequence::Recheck {
            self.failing.refuse(work.kind, work.subject(agent));
            return self.info(index, error.to_string());
        }
        let (job, pause) = self.failing.count(agent, work, error);
        let is_due = job.count.is_multiple_of(FailingJob::LIMIT);
        // A failed set-up has a record and an alarm of its own.
        if job.count >= FailingJob::LIMIT && !error.is_setup() {
            failing_jobs::record(self.project.folder(), &work.subject(agent), &job);
        }
        let why = if is_due { job.in_words() } else { job.message.trim_end_matches('.').to_owned() };
        let (level, text) = match (&job.task, work.kind) {
            (Some(task), WorkKind::Code | WorkKind::Review) => {
                let level = if is_due { MessageLevel::Alert } else { MessageLevel::Info };
                (level, format!("cannot claim {task} ({}): {why}", count(job.count as usize, "time")))
            }
            (Some(_) | None, _) => (MessageLevel::Alert, why),
        };
        self.report(index, level, format!("{text}. Retry in {pause}"));
    }

    /// Leaves tasks alone for a moment that another agent was faster to claim.
    pub(super) fn claims_lost(&mut self, index: MemberIndex, lost: Vec<FailedClaim>) {
        for FailedClaim { kind, task, why } in lost {
            self.debug(index, format!("{task} was not claimed: {why}"));
            self.failing.refuse(kind, WorkSubject::Task(task));
        }
    }

    /// Forgets that this work, or the agent's sessions, failed before.
    pub(super) fn work_succeeded(&mut self, index: MemberIndex, work: &FailedWork) {
        let Some(member) = self.members.get(index) else { return };
        let agent = WorkSubject::Agent(member.identity.agent);
        for subject in [work.subject(member.identity.agent), agent] {
            self.failing.succeeded(self.project.folder(), work.kind, &subject);
        }
    }
}

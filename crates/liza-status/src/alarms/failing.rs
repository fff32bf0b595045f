//! Jobs that supervisors retry: none is retried for ever in silence, also when its team has ended.

use liza_core::model::{GoalStatus, State, Status, TaskSummary};
use liza_core::supervise::WorkKind;
use liza_core::text::count;

use super::{Alarm, AlarmKind, FailingJob, Moment, Remedy};
use crate::command_line::liza;

pub(super) fn alarms(at: Moment<'_>) -> impl Iterator<Item = Alarm> {
    let is_reported = move |job: &&FailingJob| job.count >= FailingJob::LIMIT && is_open(at.state, job);
    at.seen.failing_jobs.iter().filter(is_reported).map(move |job| alarm(at, job))
}

/// True if the failed job still has to be done: its task waits for exactly that.
pub fn is_open(state: &State, job: &FailingJob) -> bool {
    let Some(task) = &job.task else {
        return state.board.goal.ready().is_some_and(|goal| goal.status == GoalStatus::InProgress);
    };
    state.board.summary(task).is_some_and(|summary| waits_for(job, summary))
}

fn waits_for(job: &FailingJob, summary: &TaskSummary) -> bool {
    let is_others =
        summary.is(Status::Claimed) && summary.assigned_to.is_some_and(|other| other != job.agent);
    match job.kind {
        WorkKind::Merge => summary.is(Status::Approved),
        WorkKind::Review => summary.is(Status::ReadyForReview),
        WorkKind::Code => {
            let open = [Status::Unclaimed, Status::Rejected, Status::IntegrationFailed, Status::Claimed];
            open.into_iter().any(|status| summary.is(status)) && !is_others
        }
        WorkKind::Plan => false,
    }
}

fn alarm(at: Moment<'_>, job: &FailingJob) -> Alarm {
    let (agent, times) = (job.agent, count(job.count as usize, "time"));
    // The page of a task shows its error, the doctor everything else.
    let (subject, place, command) = match &job.task {
        Some(task) => (task.to_string(), format!(" at {task}"), liza!("show", task)),
        None => (agent.to_string(), String::new(), liza!("doctor")),
    };
    let again =
        if at.here().has(agent) { "It tries again by itself" } else { "The next liza run tries again" };
    let text = format!("{agent} has failed {times} in a row{place}: {}. {again}", job.in_words());
    let alarm = Alarm::new(AlarmKind::WorkFails, subject, text).about(job.task.as_ref()).since(job.since);
    alarm.answered(job.remedy.as_ref().map_or(command, |remedy| remedy.command.clone()))
}

impl FailingJob {
    /// The reason for the failure, and the remedy for a person.
    pub fn in_words(&self) -> String {
        let why = self.message.trim_end_matches('.');
        match &self.remedy {
            Some(Remedy { advice, .. }) => format!("{why}. {advice}"),
            None => why.to_owned(),
        }
    }
}

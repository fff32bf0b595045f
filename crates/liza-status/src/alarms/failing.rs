//! Jobs that supervisors retry: none is retried for ever in silence, also when its team has ended.

use liza_core::model::{GoalStatus, State, Status, TaskSummary, Timestamp};
use liza_core::supervise::WorkKind;
use liza_core::text::count;

use super::{Alarm, AlarmKind, AlarmSubject, FailingJob, Observations, Remedy};
use crate::command_line::{CommandLine, liza};

pub(super) fn alarms(state: &State, seen: &Observations, now: Timestamp) -> Vec<Alarm> {
    let open = seen.failing_jobs.iter().filter(|job| job.count >= FailingJob::LIMIT && is_open(state, job));
    open.map(|job| alarm(state, seen, job, now)).collect()
}

/// True if the failed job still has to be done: its task waits for exactly that.
pub fn is_open(state: &State, job: &FailingJob) -> bool {
    let is_current = |goal: GoalStatus| goal == GoalStatus::InProgress;
    let Some(task) = &job.task else {
        return state.board.goal.ready().is_some_and(|goal| is_current(goal.status));
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

fn alarm(state: &State, seen: &Observations, job: &FailingJob, now: Timestamp) -> Alarm {
    let (agent, times) = (job.agent, count(job.count as usize, "time"));
    let (subject, at) = match &job.task {
        Some(task) => (AlarmSubject::from(task), format!(" at {task}")),
        None => (AlarmSubject::Agent(agent), String::new()),
    };
    let again = if seen.presence(&state.board, now).has(agent) {
        "It tries again by itself"
    } else {
        "The next liza run tries again"
    };
    let text = format!("{agent} has failed {times} in a row{at}: {}. {again}", job.in_words());
    Alarm::critical(AlarmKind::WorkFails, subject, text).since(job.since)
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

/// The command for a person: the page of a task shows its error, the doctor everything else.
pub(crate) fn command(seen: &Observations, subject: &AlarmSubject) -> CommandLine {
    let is_about = |job: &&FailingJob| match (&job.task, subject) {
        (Some(task), subject) => subject.task() == Some(task),
        (None, AlarmSubject::Agent(agent)) => job.agent == *agent,
        (None, _) => false,
    };
    let remedy = seen.failing_jobs.iter().filter(is_about).find_map(|job| job.remedy.as_ref());
    match (remedy, subject.task()) {
        (Some(remedy), _) => remedy.command.clone(),
        (None, Some(task)) => liza!("show", task),
        (None, None) => liza!("doctor"),
    }
}

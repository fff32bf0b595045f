//! What an agent's supervisor tries again and again: no job is retried for ever in silence.

use crate::model::{AgentId, State, Status, TaskId, Timestamp};
use crate::text::count;

use super::{Alarm, AlarmKind, AlarmSubject, FailingJob, FailingJobs, Observations};

/// One for each job of an agent that is here, unless its task has ended or another agent has it.
pub(super) fn alarms(state: &State, seen: &Observations, now: Timestamp) -> Vec<Alarm> {
    let here = |(agent, failing): &(&AgentId, &FailingJobs)| {
        let entry = state.board.agents.ready().and_then(|agents| agents.get(*agent));
        let is_same = entry.is_some_and(|entry| {
            entry.is_live(now) && entry.generation.is_none_or(|own| own == failing.generation)
        });
        is_same && !seen.dead.contains(*agent)
    };
    let jobs = seen.failing_jobs.iter().filter(here);
    let jobs = jobs.flat_map(|(agent, failing)| failing.jobs.iter().map(move |job| (*agent, job)));
    let is_open = |(agent, job): &(AgentId, &FailingJob)| {
        job.count >= FailingJob::LIMIT && job.task.as_ref().is_none_or(|task| waits_for(state, *agent, task))
    };
    jobs.filter(is_open).map(|(agent, job)| alarm(agent, job)).collect()
}

fn waits_for(state: &State, agent: AgentId, task: &TaskId) -> bool {
    let Some(summary) = state.board.summary(task) else { return false };
    let is_open = summary.status.is_some_and(|status| !status.is_terminal());
    let is_others = summary.is(Status::Claimed) && summary.assigned_to.is_some_and(|other| other != agent);
    is_open && !is_others
}

fn alarm(agent: AgentId, job: &FailingJob) -> Alarm {
    let times = count(job.count as usize, "time");
    let why = job.message.trim_end_matches('.');
    let (subject, at) = match &job.task {
        Some(task) => (AlarmSubject::from(task), format!(" at {task}")),
        None => (AlarmSubject::Agent(agent), String::new()),
    };
    let text = format!("{agent} has failed {times} in a row{at}: {why}. It tries again by itself");
    Alarm::critical(AlarmKind::WorkFails, subject, text).since(job.since)
}

/// What a person does about it: what is wrong with a task is in its page, everything else is the doctor's.
pub(in crate::watch) fn command(subject: &AlarmSubject) -> String {
    match subject.task() {
        Some(task) => format!("liza show {task}"),
        None => "liza doctor".to_owned(),
    }
}

//! Alarms about one task.

use std::collections::BTreeSet;

use liza_core::model::{
    AgentId, AgentStatus, Config, EventName, MAX_FAILED_CODERS, Seconds, State, Status, TaskBody, TaskId,
    TaskRecord, TaskStatus, Timestamp, lease_is_live,
};

use liza_core::rules::approvals::{incomplete_approval, lacks_approval};

use super::stops::STALE;
use super::{Alarm, AlarmKind, Moment, answer_question};
use crate::command_line::{CommandLine, OPEN, liza};

/// The time that a rejected task may wait for its coder.
const ORPHAN_GRACE: Seconds = Seconds(30);

/// Adds the alarms of this task. A broken record is reported as invalid elsewhere; its limits still count.
pub(super) fn alarms(at: Moment<'_>, id: &TaskId, body: &TaskBody, found: &mut Vec<Alarm>) {
    let record = body.record();
    found.extend(no_approval(id, body));
    if record.status.is_none_or(Status::is_terminal) {
        return;
    }
    if let Ok(status) = body.status() {
        found.extend(status_alarm(at, id, record, status));
    }
    found.extend(takes_back(id, record));
    if coders(record).len() >= 2 {
        found.push(Alarm::of_task(AlarmKind::Reassigned, id, "hypothesis exhaustion risk"));
    }
    if record.failed_by.as_ref().is_some_and(|failed| failed.len() >= MAX_FAILED_CODERS) {
        found.push(Alarm::of_task(AlarmKind::HypothesisExhaustion, id, "requires rescope"));
    }
    // Broken settings have an alarm of their own; without settings there are no limits to check.
    if let Some(config) = at.config() {
        limits(config, id, record, found);
    }
}

/// Work that is about to be merged, with a merge in it that drops the merged work of others.
fn takes_back(id: &TaskId, record: &TaskRecord) -> Option<Alarm> {
    let waits = matches!(record.status, Some(Status::ReadyForReview | Status::Approved));
    let merges = record.takes_back.as_ref().filter(|merges| waits && !merges.is_empty())?;
    let merges = merges.join("; ");
    let what = format!("its work has merges that take back what the integration branch has: {merges}");
    Some(Alarm::of_task(AlarmKind::TakesBack, id, what).since(last(record, EventName::ReadyForReview)))
}

fn status_alarm(at: Moment<'_>, id: &TaskId, record: &TaskRecord, status: &TaskStatus) -> Option<Alarm> {
    match status {
        TaskStatus::Draft => stale_draft(id, record, at.now),
        TaskStatus::Claimed { work, lease } => (!lease_is_live(*lease, at.now)).then(|| {
            let text = format!("{} on {id}", work.coder);
            Alarm::new(AlarmKind::LeaseExpired, id, text).about(id).since(*lease)
        }),
        TaskStatus::ReadyForReview { review, .. } => {
            let review = review.as_ref().filter(|review| !review.is_live(at.now))?;
            let text = format!("{} on {id} — review can be reclaimed", review.by);
            Some(Alarm::new(AlarmKind::ReviewLeaseExpired, id, text).about(id).since(review.lease))
        }
        TaskStatus::Rejected { work, .. } => orphaned(at, id, record, work.coder),
        TaskStatus::Blocked { block, .. } => {
            let alarm = Alarm::of_task(AlarmKind::Blocked, id, &block.reason);
            Some(alarm.since(last(record, EventName::Blocked)).answered(answer_question(Some(id))))
        }
        TaskStatus::IntegrationFailed { .. } => {
            let alarm = Alarm::new(AlarmKind::IntegrationFailed, id, id.as_str()).about(id);
            Some(alarm.since(last(record, EventName::IntegrationFailed)))
        }
        TaskStatus::Unclaimed { .. }
        | TaskStatus::Approved { .. }
        | TaskStatus::Merged { .. }
        | TaskStatus::Abandoned
        | TaskStatus::Superseded { .. } => None,
    }
}

/// A task that is APPROVED or MERGED by its status alone.
fn no_approval(id: &TaskId, body: &TaskBody) -> Option<Alarm> {
    let record = body.record();
    let can_be_judged = body.status().is_ok() || incomplete_approval(id, body).is_some();
    let status = record.status.filter(|_| lacks_approval(record) && can_be_judged)?;
    let approve = format!("approve a commit: liza submit-verdict {id} APPROVED --commit SHA");
    let text = match (&record.review_commit, status) {
        (_, Status::Merged) => format!(
            "{id} is MERGED, but neither an approval nor a merge of it is recorded. Send it back, or {approve}"
        ),
        (Some(commit), _) => format!(
            "{id} is APPROVED, but no approval of {} is recorded, so it is not merged. Look at it (liza diff {id}), then \
             approve it, or send it back: liza submit-verdict {id} REJECTED \"...\"",
            commit.short()
        ),
        (None, _) => format!(
            "{id} is APPROVED, but no commit and no approval of it are recorded, so it is not merged. Send it back, or \
             {approve}"
        ),
    };
    Some(Alarm::new(AlarmKind::NoApproval, id, text).about(id).answered(verdict_command(id, record)))
}

/// The command with which a person judges such a task.
pub(crate) fn verdict_command(id: &TaskId, record: &TaskRecord) -> CommandLine {
    match record.review_commit.is_some() && record.status != Some(Status::Merged) {
        true => liza!("submit-verdict", id, "APPROVED"),
        false => liza!("submit-verdict", id, "REJECTED", OPEN),
    }
}

/// The time of the last such event; `None` if a person wrote the status into the file.
fn last(record: &TaskRecord, name: EventName) -> Option<Timestamp> {
    record.last_event(name).map(|event| event.time)
}

fn stale_draft(id: &TaskId, record: &TaskRecord, now: Timestamp) -> Option<Alarm> {
    // A proposed one waits for the human, not for the planner.
    let created = record.created.filter(|_| record.last_event(EventName::Proposed).is_none())?;
    let age = now.since(created);
    let words = format!("created {}min ago (Planner crash?)", age.in_minutes());
    (age > STALE).then(|| Alarm::of_task(AlarmKind::StaleDraft, id, words).since(created))
}

/// A rejected task whose coder does not work on it.
fn orphaned(at: Moment<'_>, id: &TaskId, record: &TaskRecord, coder: AgentId) -> Option<Alarm> {
    let status = match at.board().agents.ready()?.get(&coder) {
        Some(entry) if !entry.is_live(at.now) => "gone (lease expired)",
        Some(entry) if entry.status == AgentStatus::Working => return None,
        Some(entry) => entry.status.name(),
        None => "not registered",
    };
    let rejected = last(record, EventName::Rejected);
    // A coder that has just finished another task is about to take this one.
    let free = rejected.max(last_act(at.state, coder));
    let words = format!("assigned to {coder} but agent is {status}");
    let alarm = Alarm::of_task(AlarmKind::OrphanedRejected, id, words).since(rejected);
    free.is_none_or(|free| at.now.since(free) > ORPHAN_GRACE).then_some(alarm)
}

/// The agent's last action on any task.
fn last_act(state: &State, agent: AgentId) -> Option<Timestamp> {
    let name = agent.to_string();
    let events = state.bodies().flat_map(|(_, body)| body.record().events());
    events.filter(|event| event.agent.as_deref() == Some(name.as_str())).map(|event| event.time).max()
}

/// The coders who have claimed the task to do it; one that only fixed its merge has no hypothesis to exhaust.
fn coders(record: &TaskRecord) -> BTreeSet<AgentId> {
    let claims = record.events().filter(|event| event.is_claim());
    let claims = claims.filter(|event| !event.is(EventName::ClaimedForIntegrationFix));
    claims.filter_map(|event| event.agent.as_deref()?.parse().ok()).collect()
}

/// At, and on the way to, the limits of this task.
fn limits(config: &Config, id: &TaskId, record: &TaskRecord, found: &mut Vec<Alarm>) {
    let mut near = Vec::new();
    let cycles = record.review_cycles_current.unwrap_or(0);
    let max_cycles = config.max_review_cycles(record);
    if max_cycles > 0 && cycles >= max_cycles {
        found.push(Alarm::of_task(AlarmKind::ReviewLoop, id, format!("{cycles} cycles (at cliff)")));
    } else if max_cycles > 0 && reaches(cycles, max_cycles, 60) {
        near.push(approaching(id, "cycles", &format!("review cycles {cycles}/{max_cycles}")));
    }
    let (iteration, max) = (record.iteration.unwrap_or(0), config.max_iterations(record));
    if max > 0 && reaches(iteration, max, 80) {
        near.push(approaching(id, "iteration", &format!("iteration {iteration}/{max}")));
    }
    let failed = record.failed_by.as_ref().map_or(0, Vec::len);
    let total = record.review_cycles_total.unwrap_or(0);
    if failed == 1 && total >= 3 {
        near.push(approaching(id, "failures", &format!("1 of 2 coders failed, {total} review cycles")));
    }
    // What has blocked a task is reached, and not approached.
    found.extend(near.into_iter().filter(|_| record.status != Some(Status::Blocked)));
}

/// True if a figure has reached that many percent of its limit; people may have written any number.
fn reaches(figure: u32, limit: u32, percent: u64) -> bool {
    u64::from(figure) * 100 >= u64::from(limit) * percent
}

fn approaching(id: &TaskId, figure: &'static str, metric: &str) -> Alarm {
    let subject = format!("{id}:{figure}");
    Alarm { subject, ..Alarm::of_task(AlarmKind::ApproachingLimit, id, metric) }
}

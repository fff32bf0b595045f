//! Alarms about one task.

use std::collections::BTreeSet;

use crate::agent::{AgentStatus, LEASE_GRACE};
use crate::board::State;
use crate::config::Config;
use crate::event::EventName;
use crate::ids::{AgentId, TaskId};
use crate::record::{Status, TaskRecord};
use crate::task::EXHAUSTED;
use crate::time::{Seconds, Timestamp};

use super::{Alarm, STALE};

/// How long a rejected task may wait for its coder.
const ORPHAN_GRACE: Seconds = Seconds(30);

/// Adds what stands about this task.
pub(super) fn alarms(
    state: &State,
    id: &TaskId,
    record: &TaskRecord,
    now: Timestamp,
    found: &mut Vec<Alarm>,
) {
    let Some(status) = record.status.filter(|status| !status.is_terminal()) else { return };
    match status {
        Status::Draft => found.extend(stale_draft(id, record, now)),
        Status::Claimed => found.extend(lease_expired(id, record, now)),
        Status::ReadyForReview => found.extend(review_lease_expired(id, record, now)),
        Status::Rejected => found.extend(orphaned(state, id, record, now)),
        Status::Blocked => {
            let reason = record.blocked_reason.as_deref().unwrap_or("no reason given");
            let alarm = Alarm::warning("BLOCKED", id, format!("{id} — {reason}"));
            found.push(alarm.since(last(record, EventName::Blocked)));
        }
        Status::IntegrationFailed => {
            let alarm = Alarm::critical("INTEGRATION FAILED", id, id.to_string());
            found.push(alarm.since(last(record, EventName::IntegrationFailed)));
        }
        Status::Unclaimed | Status::Approved | Status::Merged | Status::Abandoned | Status::Superseded => {}
    }
    if coders(record).len() >= 2 {
        found.push(Alarm::warning("REASSIGNED", id, format!("{id} — hypothesis exhaustion risk")));
    }
    if record.failed_by.as_ref().is_some_and(|failed| failed.len() >= EXHAUSTED) {
        found.push(Alarm::critical("HYPOTHESIS EXHAUSTION", id, format!("{id} — requires rescope")));
    }
    let config = state.board.config.ready().cloned().unwrap_or_default();
    limits(&config, id, record, found);
}

/// When that last happened to the task; nothing where a person wrote the state by hand.
fn last(record: &TaskRecord, name: EventName) -> Option<Timestamp> {
    record.history.iter().flatten().rev().find(|event| event.is(name)).map(|event| event.time)
}

fn stale_draft(id: &TaskId, record: &TaskRecord, now: Timestamp) -> Option<Alarm> {
    let created = record.created?;
    let age = now.since(created);
    let text = format!("{id} — created {}min ago (Planner crash?)", age.in_minutes());
    (age > STALE).then(|| Alarm::warning("STALE DRAFT", id, text).since(created))
}

/// In-flight operations get the grace before anybody is alarmed, as others get it before they take over.
fn lease_expired(id: &TaskId, record: &TaskRecord, now: Timestamp) -> Option<Alarm> {
    let expires = record.lease_expires?;
    let agent = record.assigned_to.map_or("nobody".to_owned(), |agent| agent.to_string());
    let alarm = || Alarm::warning("LEASE EXPIRED", id, format!("{agent} on {id}")).since(expires);
    (expires + LEASE_GRACE < now).then(alarm)
}

fn review_lease_expired(id: &TaskId, record: &TaskRecord, now: Timestamp) -> Option<Alarm> {
    let (reviewer, expires) = (record.reviewing_by?, record.review_lease_expires?);
    let text = format!("{reviewer} on {id} — review can be reclaimed");
    (expires < now).then(|| Alarm::warning("REVIEW LEASE EXPIRED", id, text).since(expires))
}

/// A rejected task whose coder is not at work.
fn orphaned(state: &State, id: &TaskId, record: &TaskRecord, now: Timestamp) -> Option<Alarm> {
    let agent = record.assigned_to?;
    let entry = state.board.agents.ready()?.get(&agent);
    let status = match entry {
        Some(entry) if !entry.is_live(now) => "gone (lease expired)",
        Some(entry) if entry.status == AgentStatus::Working => return None,
        Some(entry) => entry.status.name(),
        None => "not registered",
    };
    let rejected = last(record, EventName::Rejected);
    // A coder that has just left another task is on its way here.
    let free = rejected.max(last_act(state, agent));
    if free.is_some_and(|free| now.since(free) <= ORPHAN_GRACE) {
        return None;
    }
    let text = format!("{id} — assigned to {agent} but agent is {status}");
    Some(Alarm::critical("ORPHANED REJECTED", id, text).since(rejected))
}

/// When the agent last did something on any task.
fn last_act(state: &State, agent: AgentId) -> Option<Timestamp> {
    let name = agent.to_string();
    let events = state.records().flat_map(|(_, record)| record.history.iter().flatten());
    events.filter(|event| event.agent.as_deref() == Some(name.as_str())).map(|event| event.time).max()
}

/// The coders who have claimed the task to do it; who repairs its merge has no hypothesis to exhaust.
fn coders(record: &TaskRecord) -> BTreeSet<AgentId> {
    let claims = record.history.iter().flatten().filter(|event| EventName::is_claim(&event.event));
    let claims = claims.filter(|event| !event.is(EventName::ClaimedForIntegrationFix));
    claims.filter_map(|event| event.agent.as_deref()?.parse().ok()).collect()
}

/// At, and on the way to, the limits of this task.
fn limits(config: &Config, id: &TaskId, record: &TaskRecord, found: &mut Vec<Alarm>) {
    let cycles = record.review_cycles_current.unwrap_or(0);
    let max_cycles = config.max_review_cycles(record);
    if max_cycles > 0 && cycles >= max_cycles {
        found.push(Alarm::critical("REVIEW LOOP", id, format!("{id} — {cycles} cycles (at cliff)")));
    } else if max_cycles > 0 && reaches(cycles, max_cycles, 60) {
        found.push(approaching(id, "cycles", &format!("review cycles {cycles}/{max_cycles}")));
    }
    let (iteration, max) = (record.iteration.unwrap_or(0), config.max_iterations(record));
    if max > 0 && reaches(iteration, max, 80) {
        found.push(approaching(id, "iteration", &format!("iteration {iteration}/{max}")));
    }
    let failed = record.failed_by.as_ref().map_or(0, Vec::len);
    let total = record.review_cycles_total.unwrap_or(0);
    if failed == 1 && total >= 3 {
        found.push(approaching(id, "failures", &format!("1 of 2 coders failed, {total} review cycles")));
    }
}

/// Whether a figure has come to so many hundredths of its limit; people may have written any number.
fn reaches(figure: u32, limit: u32, percent: u64) -> bool {
    u64::from(figure) * 100 >= u64::from(limit) * percent
}

fn approaching(id: &TaskId, what: &str, metric: &str) -> Alarm {
    Alarm::warning("APPROACHING LIMIT", format!("{id}:{what}"), format!("{id} — {metric}"))
}

//! The leases that heartbeats have renewed, put into a board or a text that was loaded.

use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use liza_core::model::{
    AgentId, AgentRecord, Board, Change, Loaded, Status, TaskBody, TaskId, TaskSlot, TaskSummary, Timestamp,
};
use liza_store::StoreError;
use liza_store::backend::changed_text;

use crate::load::{HeartbeatRow, LoadedRows};
use crate::time::Clock;

/// The text of these rows with the renewed leases.
pub(crate) fn text_of(path: &Path, loaded: &LoadedRows, clock: &Clock) -> Result<String, StoreError> {
    let text = loaded.rows.text(loaded.project.revision);
    let renewed = changed_text(path, &text, |before| {
        let mut after = before.clone();
        overlay(&mut after, &loaded.heartbeats, clock);
        renewals(before, &after)
    })?;
    Ok(renewed.unwrap_or(text))
}

/// The change from a board to the same board with renewed leases.
fn renewals(before: &Board, after: &Board) -> Change {
    let mut change = Change { revision: before.revision, ..Change::default() };
    let (old, new) = (before.agents.ready(), after.agents.ready());
    for (id, entry) in new.into_iter().flatten() {
        if old.and_then(|old| old.get(id)) != Some(entry) {
            change.agents.insert(*id, Some(entry.clone()));
        }
    }
    let record = |slot: &TaskSlot| slot.body.as_ref().map(|body| body.record().clone());
    for (id, slot) in &after.tasks {
        if before.tasks.get(id).map(record) != Some(record(slot)) {
            change.tasks.extend(record(slot).map(|record| (id.clone(), record)));
        }
    }
    change
}

pub(crate) fn overlay(board: &mut Board, heartbeats: &[HeartbeatRow], clock: &Clock) {
    let Loaded::Ready(agents) = &mut board.agents else { return };
    for (id, entry) in agents.iter_mut() {
        let name = id.to_string();
        let generation = entry.generation.and_then(|generation| i64::try_from(generation.0).ok());
        let row = heartbeats.iter().find(|row| row.agent == name && Some(row.generation) == generation);
        if let Some(row) = row {
            entry.lease_expires = entry.lease_expires.max(Some(Timestamp::from_unix(row.lease_expires)));
            entry.heartbeat = entry.heartbeat.max(Some(Timestamp::from_unix(row.heartbeat)));
        }
        entry.lease_expires = entry.lease_expires.map(|expires| clock.lease(expires));
    }
    for (id, slot) in &mut board.tasks {
        renew_task(id, slot, agents, clock);
    }
}

/// A task that an agent holds has the agent's lease.
fn renew_task(id: &TaskId, slot: &mut TaskSlot, agents: &IndexMap<AgentId, AgentRecord>, clock: &Clock) {
    let lease_of = |agent: Option<AgentId>, lease: Option<Timestamp>| {
        let holder = agents.get(&agent?).filter(|entry| entry.current_task.as_ref() == Some(id));
        holder.and_then(|entry| entry.lease_expires).max(lease).map(|expires| clock.lease(expires))
    };
    let summary = &slot.summary;
    let (coding, review) = match summary.status {
        Some(Status::Claimed) => (lease_of(summary.assigned_to, summary.lease_expires), None),
        Some(Status::ReadyForReview) => (None, lease_of(summary.reviewing_by, summary.review_lease_expires)),
        Some(_) | None => return,
    };
    let is_same = |old: Option<Timestamp>, new: Option<Timestamp>| new.is_none() || old == new;
    if is_same(summary.lease_expires, coding) && is_same(summary.review_lease_expires, review) {
        return;
    }
    put_leases(&mut slot.summary, coding, review);
    if let Some(body) = &slot.body {
        let mut record = body.record().clone();
        record.lease_expires = coding.or(record.lease_expires);
        record.review_lease_expires = review.or(record.review_lease_expires);
        slot.body = Some(Arc::new(TaskBody::new(record, body.faults().to_vec())));
    }
}

fn put_leases(summary: &mut TaskSummary, coding: Option<Timestamp>, review: Option<Timestamp>) {
    summary.lease_expires = coding.or(summary.lease_expires);
    summary.review_lease_expires = review.or(summary.review_lease_expires);
}

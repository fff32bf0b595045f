//! The board for a command, from the loaded rows, with the leases that heartbeats have renewed.

use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use liza_core::model::{
    AgentId, AgentRecord, Board, Loaded, Revision, State, Status, TaskBody, TaskId, TaskSlot, TaskSummary,
    Timestamp,
};
use liza_core::protocol::Pending;

use super::load::{HeartbeatRow, LoadedRows, TaskExtent, Wanted};
use super::time::Clock;
use crate::codec::{self, StateView};
use crate::error::StoreError;
use crate::verify::mismatch;

/// The board that a pending command needs, from a view of the loaded rows.
pub(super) fn board_of(
    path: &Path,
    view: &mut StateView<'_>,
    pending: &dyn Pending,
) -> Result<Board, StoreError> {
    let mut board = view.board()?;
    view.load_sections(&mut board, &pending.sections());
    let summaries = pending.summaries(&board);
    view.load_summaries(&mut board, summaries.as_deref())?;
    let bodies = pending.bodies(&board);
    view.load_bodies(&mut board, &bodies)?;
    // The rows are in our own layout, which needs no parser.
    if view.tree.is_some() { Err(mismatch(path, "the rows")) } else { Ok(board) }
}

/// What a pending command needs, as far as a board tells.
pub(super) fn wanted_by(pending: &dyn Pending, board: &Board) -> Wanted {
    let sections = pending.sections();
    let extent = match pending.summaries(board) {
        None => TaskExtent::Summaries,
        Some(_) => TaskExtent::Named,
    };
    Wanted::of(sections.iter().map(|section| section.key()), extent, pending.named_tasks(board))
}

/// The whole state in these rows.
pub(super) fn state_of(path: &Path, loaded: &LoadedRows, clock: &Clock) -> Result<State, StoreError> {
    let text = loaded.rows.text(loaded.project.revision);
    let mut state = codec::parse_state(path, text.as_bytes(), true)?;
    state.board.revision = Revision(loaded.project.revision);
    overlay(&mut state.board, &loaded.heartbeats, clock);
    Ok(state)
}

/// Puts the leases that heartbeats have renewed into a board.
pub(super) fn overlay(board: &mut Board, heartbeats: &[HeartbeatRow], clock: &Clock) {
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

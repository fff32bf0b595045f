//! Renews leases without the lock on the project: one conditional update of rows that only heartbeats write.
//! An expired row is not renewed here: the command then takes the lock, which prevents a takeover.

use liza_core::model::{Change, Timestamp};
use liza_store::Written;
use liza_store::backend::Job;

use crate::connection::quoted;
use crate::load::SERVER_MS;
use crate::read::board_for;
use crate::store::DatabaseStore;
use liza_store::StoreError;

/// Renews the leases that a heartbeat asks for. None if it needs the lock.
pub(crate) fn renew(store: &DatabaseStore, job: &mut dyn Job) -> Result<Option<Written>, StoreError> {
    let (board, _, _) = board_for(store, job)?;
    // Only advice: a refusal is decided again under the lock.
    let Ok(change) = job.decide(&board) else { return Ok(None) };
    let Some(values) = renewals(&change) else { return Ok(None) };
    let results = store.query_rows(|project| {
        format!(
            "UPDATE liza.heartbeats AS h SET lease_expires = greatest(h.lease_expires, v.lease), \
             heartbeat = greatest(h.heartbeat, v.beat) \
             FROM (VALUES {values}) AS v (agent, generation, lease, beat), liza.projects AS p \
             WHERE p.id = {project} AND h.project = {project} AND h.agent = v.agent \
             AND h.generation = v.generation AND h.lease_expires * 1000 >= {SERVER_MS} + p.clock_offset_ms"
        )
    })?;
    let renewed = results.first().map_or(0, |result| result.count);
    if usize::try_from(renewed) != Ok(change.agents.len()) {
        return Ok(None);
    }
    let changed = !change.agents.is_empty();
    Ok(Some(Written::new(board.revision, changed, Vec::new(), Vec::new())))
}

/// The new leases as values of SQL; none if the change has other content.
fn renewals(change: &Change) -> Option<String> {
    let rest = Change { agents: Default::default(), tasks: Default::default(), ..change.clone() };
    if !rest.is_empty() || change.agents.is_empty() {
        return None;
    }
    let value = |(id, entry): (&liza_core::model::AgentId, &Option<liza_core::model::AgentRecord>)| {
        let entry = entry.as_ref()?;
        let generation = entry.generation?;
        let (lease, beat) = (entry.lease_expires?.unix(), entry.heartbeat.map_or(0, Timestamp::unix));
        Some(format!("({}, {generation}::bigint, {lease}::bigint, {beat}::bigint)", quoted(&id.to_string())))
    };
    let values: Option<Vec<String>> = change.agents.iter().map(value).collect();
    values.map(|values| values.join(", "))
}

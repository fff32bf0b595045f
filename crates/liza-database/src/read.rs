//! Reads without the lock: the text, the board for a command, and repeated reads.

use std::sync::Arc;

use liza_core::model::{Board, Config, Revision, State};
use liza_store::StoreError;
use liza_store::backend::{Job, LoadScope, ReadState, mismatch};

use crate::leases::text_of;
use crate::load::{self, HeartbeatRow, LoadedRows, ProjectRow};
use crate::store::DatabaseStore;
use crate::time::Clock;

/// The number of times that a read loads what the command asks for next.
const STEPS: usize = 5;

/// The blackboard as the file would have it, with the current leases.
pub(crate) fn text_and_revision(store: &DatabaseStore) -> Result<(String, Revision), StoreError> {
    let loaded = store.load(&LoadScope::everything())?;
    let text = text_of(store.path(), &loaded, &store.clock_of(&loaded, ""))?;
    Ok((text, loaded.revision()))
}

/// The board that a command needs, and its rows and time.
pub(crate) fn board_for(
    store: &DatabaseStore,
    job: &mut dyn Job,
) -> Result<(Board, LoadedRows, Clock), StoreError> {
    let mut wanted = LoadScope::needed_by(job, &store.known_board());
    for _ in 0..STEPS {
        let loaded = store.load(&wanted)?;
        let clock = store.clock_of(&loaded, "");
        job.set_facts(clock.now(), loaded.stop_files);
        let mut board = loaded.rows.board_for(store.path(), loaded.revision(), job)?;
        store.complete(&mut board, &loaded.heartbeats, &clock);
        let needed = LoadScope::needed_by(job, &board);
        if wanted.covers(&needed) {
            return Ok((board, loaded, clock));
        }
        wanted = wanted.and(needed);
    }
    Err(mismatch(store.path(), "what the command needs"))
}

#[derive(Debug)]
pub(crate) struct DatabaseReader {
    store: DatabaseStore,
    last: Option<LastRead>,
}

#[derive(Debug)]
struct LastRead {
    /// Changes with every write. The revision alone is not enough: after a failover the same numbers may return.
    project: ProjectRow,
    heartbeats: Vec<HeartbeatRow>,
    /// What the person of this machine had accepted.
    accepted: Config,
    held: bool,
    state: Arc<State>,
}

impl DatabaseReader {
    pub(crate) fn new(store: &DatabaseStore) -> Self {
        Self { store: store.clone(), last: None }
    }
}

impl ReadState for DatabaseReader {
    fn read(&mut self) -> Result<Arc<State>, StoreError> {
        if let Some(last) = &self.last {
            let now = self.store.load(&load::least())?;
            // Notes this machine's clock error.
            let _ = self.store.clock_of(&now, "");
            let is_same = now.project == last.project && now.heartbeats == last.heartbeats;
            if is_same && !last.held && self.store.accepted().read() == last.accepted {
                return Ok(last.state.clone());
            }
        }
        let accepted = self.store.accepted().read();
        let loaded = self.store.load(&LoadScope::everything())?;
        let clock = self.store.clock_of(&loaded, "");
        let state = Arc::new(self.store.state_of(&loaded, &clock)?);
        self.store.remember(state.board.clone());
        self.last = Some(LastRead {
            project: loaded.project,
            accepted,
            held: clock.now().unix() < clock.hold_until,
            heartbeats: loaded.heartbeats,
            state: state.clone(),
        });
        Ok(state)
    }
}

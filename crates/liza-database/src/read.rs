//! Reads without the lock: the whole blackboard, parts of it, its text, and repeated reads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use liza_core::model::{Board, Revision, Section, State, TaskId, Value};
use liza_core::rules::misspelled::MisspelledKey;
use liza_store::backend::{
    Backend, Job, LoadScope, ReadLog, ReadState, Setback, SharedBoard, TaskExtent, TextEdit, Transaction,
    WaitLimit, mismatch, settings_file, values_of,
};
use liza_store::{DatabaseReason, ProjectDisk, StoreError};

use crate::edit::DatabaseEdit;
use crate::leases::{overlay, state_of, text_of};
use crate::load::{self, HeartbeatRow, LoadedRows, ProjectRow};
use crate::log::DatabaseLogReader;
use crate::store::DatabaseStore;
use crate::time::Clock;
use crate::transaction::{DatabaseTransaction, union};
use crate::transfer;

/// How often a read follows what a command needs.
const STEPS: usize = 5;

impl Backend for DatabaseStore {
    fn root(&self) -> &Path {
        &self.root
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn state_file(&self) -> PathBuf {
        settings_file(&self.root)
    }

    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn disk(&self) -> ProjectDisk {
        ProjectDisk::of_several_machines(&self.root)
    }

    fn with_limit(&self, limit: WaitLimit) -> Arc<dyn Backend> {
        let mut store = self.clone();
        match limit {
            WaitLimit::Lock(_) => {}
            WaitLimit::Database(limit) => store.retry_limit = limit,
        }
        Arc::new(store)
    }

    fn database(&self) -> Option<&dyn SharedBoard> {
        Some(self)
    }

    fn scope(&self, job: &dyn Job) -> LoadScope {
        LoadScope::needed_by(job, &self.known_board())
    }

    fn lock(&self, scope: &LoadScope, _: Instant) -> Result<Box<dyn Transaction>, Setback> {
        Ok(Box::new(DatabaseTransaction::begin(self, scope)?))
    }

    fn overtaken(&self) -> StoreError {
        self.error(DatabaseReason::Slow, "other writes were always faster").into()
    }

    fn snapshot(&self) -> Result<State, StoreError> {
        let loaded = load_rows(self, &LoadScope::everything())?;
        let state = state_of(&self.path, &loaded, &self.clock_of(&loaded, ""))?;
        self.remember(state.board.clone());
        Ok(state)
    }

    fn writable_snapshot(&self) -> Result<(State, Vec<MisspelledKey>), StoreError> {
        let loaded = load_rows(self, &LoadScope::everything())?;
        let misspelled = loaded.rows.misspelled_keys(&self.path, loaded.revision())?;
        Ok((state_of(&self.path, &loaded, &self.clock_of(&loaded, ""))?, misspelled))
    }

    fn text(&self) -> Result<String, StoreError> {
        Ok(text_and_revision(self)?.0)
    }

    fn values(&self) -> Result<Value, StoreError> {
        values_of(&self.path, &text_and_revision(self)?.0)
    }

    fn read_parts(&self, sections: &[Section], tasks: &[TaskId]) -> Result<Board, StoreError> {
        let names = sections.iter().map(|section| section.key());
        let loaded = load_rows(self, &LoadScope::of(names, TaskExtent::Named, tasks.iter().cloned()))?;
        // The agents have the leases of the tasks.
        let with_agents = [sections, &[Section::Agents]].concat();
        let mut board = loaded.rows.board_with(&self.path, loaded.revision(), &with_agents, tasks)?;
        overlay(&mut board, &loaded.heartbeats, &self.clock_of(&loaded, ""));
        if !sections.contains(&Section::Agents) {
            board.agents = Default::default();
        }
        Ok(board)
    }

    fn board_for(&self, job: &mut dyn Job) -> Result<Board, StoreError> {
        let given = job.stop_files();
        let (board, loaded, clock) = board_for(self, job)?;
        job.set_facts(clock.now(), union(loaded.stop_files, given));
        Ok(board)
    }

    fn state_reader(&self) -> Box<dyn ReadState> {
        Box::new(DatabaseReader { store: self.clone(), last: None })
    }

    fn log_reader(&self, tail: Option<u64>) -> Box<dyn ReadLog> {
        Box::new(DatabaseLogReader::new(self, tail))
    }

    fn whole_log(&self) -> Result<String, StoreError> {
        transfer::whole_log(self)
    }

    fn archive(&self) -> Result<BTreeMap<String, String>, StoreError> {
        transfer::archive(self)
    }

    fn archived(&self, name: &str) -> Result<Option<String>, StoreError> {
        transfer::archived(self, name)
    }

    fn add_earlier(&self, log: &str, archive: &BTreeMap<String, String>) -> Result<(), StoreError> {
        transfer::add_earlier(self, log, archive)
    }

    fn begin_edit(&self) -> Result<Box<dyn TextEdit + '_>, StoreError> {
        Ok(Box::new(DatabaseEdit::begin(self)?))
    }
}

/// The rows, all of one moment.
pub(crate) fn load_rows(store: &DatabaseStore, wanted: &LoadScope) -> Result<LoadedRows, StoreError> {
    let results = store.query(|project| load::snapshot_statements(project, wanted))?;
    Ok(store.checked(results.get(load::SNAPSHOT_LEAD..).unwrap_or_default(), 0)?)
}

/// The blackboard as the file would have it, with the leases as they are now.
pub(crate) fn text_and_revision(store: &DatabaseStore) -> Result<(String, Revision), StoreError> {
    let loaded = load_rows(store, &LoadScope::everything())?;
    let text = text_of(store.path(), &loaded, &store.clock_of(&loaded, ""))?;
    Ok((text, loaded.revision()))
}

/// The board that a command needs, with the rows and the time that it was read from.
pub(crate) fn board_for(
    store: &DatabaseStore,
    job: &mut dyn Job,
) -> Result<(Board, LoadedRows, Clock), StoreError> {
    let mut wanted = LoadScope::needed_by(job, &store.known_board());
    for _ in 0..STEPS {
        let loaded = load_rows(store, &wanted)?;
        let clock = store.clock_of(&loaded, "");
        job.set_facts(clock.now(), loaded.stop_files);
        let mut board = loaded.rows.board_for(store.path(), loaded.revision(), job)?;
        overlay(&mut board, &loaded.heartbeats, &clock);
        let needed = LoadScope::needed_by(job, &board);
        if wanted.covers(&needed) {
            return Ok((board, loaded, clock));
        }
        wanted = wanted.and(needed);
    }
    Err(mismatch(store.path(), "what the command needs"))
}

/// Reads the blackboard again and again.
#[derive(Debug)]
pub(crate) struct DatabaseReader {
    store: DatabaseStore,
    last: Option<LastRead>,
}

#[derive(Debug)]
struct LastRead {
    /// Changes with every write. The revision alone does not tell: after a failover it may count the same numbers again.
    project: ProjectRow,
    heartbeats: Vec<HeartbeatRow>,
    held: bool,
    state: Arc<State>,
}

impl ReadState for DatabaseReader {
    fn read(&mut self) -> Result<Arc<State>, StoreError> {
        if let Some(last) = &self.last {
            let now = load_rows(&self.store, &load::least())?;
            // Notes how far this machine's clock is off.
            let _ = self.store.clock_of(&now, "");
            if now.project == last.project && now.heartbeats == last.heartbeats && !last.held {
                return Ok(last.state.clone());
            }
        }
        let loaded = load_rows(&self.store, &LoadScope::everything())?;
        let clock = self.store.clock_of(&loaded, "");
        let state = Arc::new(state_of(self.store.path(), &loaded, &clock)?);
        self.store.remember(state.board.clone());
        self.last = Some(LastRead {
            project: loaded.project,
            held: clock.now().unix() < clock.hold_until,
            heartbeats: loaded.heartbeats,
            state: state.clone(),
        });
        Ok(state)
    }
}

//! The back end that `liza-store` asks for: each method in terms of the other modules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use liza_core::model::{Board, Revision, Section, State, StopFile, StopFileTimes, TaskId, Timestamp, Value};
use liza_core::rules::misspelled::MisspelledKey;
use liza_store::backend::{
    AcceptedSettings, Backend, DatabaseSettings, Job, LoadScope, ReadLog, ReadState, Setback, SharedBoard,
    TaskExtent, TextEdit, Transaction, WaitLimit, settings_file, values_of,
};
use liza_store::{
    DatabaseError, DatabaseReason, DatabaseReport, ProjectDisk, RaisedAlarms, RequestId, StoreError, Watch,
    Written,
};

use crate::edit::DatabaseEdit;
use crate::log::DatabaseLogReader;
use crate::read::{DatabaseReader, board_for, text_and_revision};
use crate::store::DatabaseStore;
use crate::transaction::{DatabaseTransaction, union};
use crate::{alarm_row, heartbeat, poll, report, requests, stop_rows, transfer};

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
        let loaded = self.load(&LoadScope::everything())?;
        let state = self.state_of(&loaded, &self.clock_of(&loaded, ""))?;
        self.remember(state.board.clone());
        Ok(state)
    }

    fn writable_snapshot(&self) -> Result<(State, Vec<MisspelledKey>), StoreError> {
        let loaded = self.load(&LoadScope::everything())?;
        let misspelled = loaded.rows.misspelled_keys(&self.path, loaded.revision())?;
        Ok((self.state_of(&loaded, &self.clock_of(&loaded, ""))?, misspelled))
    }

    fn text(&self) -> Result<String, StoreError> {
        Ok(text_and_revision(self)?.0)
    }

    fn values(&self) -> Result<Value, StoreError> {
        values_of(&self.path, &text_and_revision(self)?.0)
    }

    fn read_parts(&self, sections: &[Section], tasks: &[TaskId]) -> Result<Board, StoreError> {
        let names = sections.iter().map(|section| section.key());
        let loaded = self.load(&LoadScope::of(names, TaskExtent::Named, tasks.iter().cloned()))?;
        // The agents have the leases of the tasks.
        let with_agents = [sections, &[Section::Agents]].concat();
        let mut board = loaded.rows.board_with(&self.path, loaded.revision(), &with_agents, tasks)?;
        self.complete(&mut board, &loaded.heartbeats, &self.clock_of(&loaded, ""));
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
        Box::new(DatabaseReader::new(self))
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

impl SharedBoard for DatabaseStore {
    fn settings(&self) -> &DatabaseSettings {
        self.settings()
    }

    fn accepted(&self) -> &AcceptedSettings {
        self.accepted()
    }

    fn report(&self) -> Result<DatabaseReport, StoreError> {
        report::report(self)
    }

    fn renew(&self, job: &mut dyn Job) -> Result<Option<Written>, StoreError> {
        heartbeat::renew(self, job)
    }

    fn check_request(&self, id: &RequestId, fingerprint: &str) -> Result<(), StoreError> {
        requests::check_request(self, id, fingerprint)
    }

    fn was_committed(
        &self,
        request: &RequestId,
        deadline: Instant,
        lost: &DatabaseError,
    ) -> Result<bool, StoreError> {
        requests::was_committed(self, request, deadline, lost)
    }

    fn retry_limit(&self) -> Duration {
        self.retry_limit
    }

    fn poll_for(&self, watch: &Watch) {
        poll::poll_for(self, watch);
    }

    fn stop_files(&self) -> Result<StopFileTimes, StoreError> {
        stop_rows::stop_files(self)
    }

    fn change_stop_files(&self, add: &[StopFile], remove: &[StopFile]) -> Result<(), StoreError> {
        stop_rows::change_stop_files(self, add, remove)
    }

    fn raise_alarms(
        &self,
        keys: &BTreeSet<String>,
        stays: &dyn Fn(&str) -> bool,
        seen: (Revision, Timestamp),
    ) -> Result<RaisedAlarms, StoreError> {
        alarm_row::raise_alarms(self, keys, stays, seen)
    }
}

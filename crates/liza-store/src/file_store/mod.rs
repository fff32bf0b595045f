//! The blackboard in a file: its place, its creation, its reads and its lock. Every write goes through
//! `transaction.rs` (changes of commands) or `edit.rs`. Both validate, and write the whole new version
//! durably or nothing at all.

mod direct_edit;
mod edit;
mod incremental;
mod log_reader;
mod log_text;
mod modified_parts;
mod part_edit;
#[cfg(test)]
mod part_edit_tests;
mod related_tasks;
mod transaction;
mod transfer;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use liza_core::model::{Board, DirectEdit, LogEntry, Section, State, TaskId, Timestamp, Value};
use liza_core::rules::misspelled::{self, MisspelledKey};
use liza_host::durable::read_file;
use liza_host::private;

use edit::FileEdit;
use incremental::FileReader;
use log_reader::FileLogReader;
use transaction::FileTransaction;

use crate::backend::{
    Backend, Job, LoadScope, ReadLog, ReadState, Setback, TextEdit, Transaction, WaitLimit,
};
use crate::codec::verify::new_document;
use crate::codec::{self, StateView, load, text_without_bom};
use crate::disk::ProjectDisk;
use crate::document::plain_value;
use crate::error::StoreError;
use crate::file::{Fingerprint, LockTimeout, LockedFolder, NewVersion, Notice, StateFolder};
use crate::log::FIRST;
use crate::yaml::YamlError;

#[derive(Debug, Clone)]
pub(crate) struct FileStore {
    root: PathBuf,
    folder: StateFolder,
    /// By default `config.lock_timeout` of the blackboard.
    lock_timeout: Option<LockTimeout>,
}

impl FileStore {
    pub(crate) fn open(root: &Path) -> Result<Self, StoreError> {
        let store = Self::at(root);
        // A symbolic link without a target exists too: the read explains it.
        if fs::symlink_metadata(store.folder.state()).is_ok() {
            Ok(store)
        } else {
            // The read knows whether a version is kept.
            store.folder.read().map(|_| store)
        }
    }

    fn at(root: &Path) -> Self {
        let folder = StateFolder::new(root.join(".liza"));
        Self { root: root.to_owned(), folder, lock_timeout: None }
    }

    pub(crate) fn create(root: &Path, state: &State, log: &LogEntry) -> Result<Self, StoreError> {
        let store = Self::at(root);
        let path = store.folder.path();
        if store.folder.state().exists() {
            return Err(StoreError::Exists { path: store.folder.state() });
        }
        private::create_folder(path).map_err(StoreError::io("create", path))?;
        let text = new_document(&store.folder.state(), state)?;
        let revision = state.board.revision;
        let mut locked = store.lock()?;
        if store.folder.state().exists() {
            return Err(StoreError::Exists { path: store.folder.state() });
        }
        locked.commit(&NewVersion {
            before: Fingerprint::of(b""),
            on_disk: b"",
            after: text.as_bytes(),
            edits: &[],
            revision_before: 0,
            revision: revision.0,
            scannable: true,
            log: Some(store.log_text(log, FIRST)?),
        })?;
        Ok(store)
    }

    /// A view of a version of state.yaml, with its tree.
    fn tree_view<'t>(&self, path: &'t Path, bytes: &'t [u8]) -> Result<StateView<'t>, StoreError> {
        let (text, _) = text_without_bom(path, bytes)?;
        match self.folder.is_own_version(bytes) {
            true => StateView::own_tree(path, text),
            false => StateView::full(path, text),
        }
    }

    /// A board read without a lock: by `lazily` if the store wrote the file and that is enough, else the whole.
    fn board_of(
        &self,
        lazily: impl FnOnce(&mut StateView<'_>) -> Result<Option<Board>, StoreError>,
    ) -> Result<Board, StoreError> {
        let (path, bytes) = (self.folder.state(), self.folder.read()?);
        let (text, _) = text_without_bom(&path, &bytes)?;
        if self.folder.is_own_version(&bytes)
            && let Some(board) = lazily(&mut StateView::lazy(&path, text)?)?
        {
            return Ok(board);
        }
        Ok(StateView::full(&path, text)?.state()?.board)
    }

    /// Restores a blackboard that was deleted, emptied or cut off from the version that is kept beside it.
    pub(crate) fn restore_lost(root: &Path) -> Result<Option<Notice>, StoreError> {
        let store = Self::at(root);
        store.folder.bring_back()?;
        if !store.folder.previous().is_file() {
            return Ok(None);
        }
        store.lock()?.restore_lost()
    }

    pub(crate) fn not_encoded(&self, source: YamlError) -> StoreError {
        StoreError::Encode { path: self.folder.state(), source }
    }

    pub(crate) fn files(&self) -> &StateFolder {
        &self.folder
    }

    pub(crate) fn lock(&self) -> Result<LockedFolder, StoreError> {
        self.lock_since(Instant::now())
    }

    /// Takes the lock for a command that has been waiting since then.
    fn lock_since(&self, since: Instant) -> Result<LockedFolder, StoreError> {
        let timeout = || self.lock_timeout.unwrap_or_else(|| self.configured_lock_timeout());
        LockedFolder::acquire(&self.folder, since, &timeout)
    }

    fn configured_lock_timeout(&self) -> LockTimeout {
        let path = self.folder.state();
        let config = || {
            let bytes = self.folder.read().ok()?;
            let (text, _) = text_without_bom(&path, &bytes).ok()?;
            let view = StateView::lazy(&path, text).ok()?;
            view.with_section("config", codec::decode_config).ok()?
        };
        config().map_or_else(LockTimeout::default, |config| {
            LockTimeout(Duration::from_secs(config.lock_timeout.0))
        })
    }
}

impl Backend for FileStore {
    fn root(&self) -> &Path {
        &self.root
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn state_file(&self) -> PathBuf {
        self.folder.state()
    }

    fn path(&self) -> PathBuf {
        self.folder.state()
    }

    fn disk(&self) -> ProjectDisk {
        ProjectDisk::new(&self.root)
    }

    fn with_limit(&self, limit: WaitLimit) -> Arc<dyn Backend> {
        let lock_timeout = match limit {
            WaitLimit::Lock(timeout) => Some(LockTimeout(timeout)),
            WaitLimit::Database(_) => self.lock_timeout,
        };
        Arc::new(Self { lock_timeout, ..self.clone() })
    }

    fn lock(&self, _: &LoadScope, since: Instant) -> Result<Box<dyn Transaction>, Setback> {
        Ok(Box::new(FileTransaction::begin(self, since)?))
    }

    fn pending_edit(&self, now: Timestamp) -> Option<DirectEdit> {
        direct_edit::pending(self, now)
    }

    fn snapshot(&self) -> Result<State, StoreError> {
        let bytes = self.folder.read()?;
        codec::parse_state(&self.folder.state(), &bytes, self.folder.is_own_version(&bytes))
    }

    fn writable_snapshot(&self) -> Result<(State, Vec<MisspelledKey>), StoreError> {
        let (path, bytes) = (self.folder.state(), self.folder.read()?);
        let mut view = self.tree_view(&path, &bytes)?;
        view.check_version()?;
        Ok((view.state()?, keys_misspelled_in(&view)))
    }

    fn misspelled_keys(&self) -> Result<Vec<MisspelledKey>, StoreError> {
        misspelled_keys(&self.folder.state())
    }

    fn text(&self) -> Result<String, StoreError> {
        let bytes = self.folder.read()?;
        Ok(text_without_bom(&self.folder.state(), &bytes)?.0.to_owned())
    }

    fn values(&self) -> Result<Value, StoreError> {
        let (path, bytes) = (self.folder.state(), self.folder.read()?);
        let view = self.tree_view(&path, &bytes)?;
        Ok(view.tree.as_ref().map(plain_value).unwrap_or(Value::Null))
    }

    /// Parses only these parts if the store wrote the file.
    fn read_parts(&self, sections: &[Section], tasks: &[TaskId]) -> Result<Board, StoreError> {
        self.board_of(|view| {
            let mut board = view.board()?;
            view.load_sections(&mut board, sections);
            view.load_summaries(&mut board, Some(tasks))?;
            if view.tree.is_some() {
                return Ok(None);
            }
            view.load_bodies(&mut board, tasks)?;
            Ok(Some(board))
        })
    }

    fn board_for(&self, job: &mut dyn Job) -> Result<Board, StoreError> {
        self.board_of(|view| load(view, job))
    }

    fn state_reader(&self) -> Box<dyn ReadState> {
        Box::new(FileReader::new(self.clone()))
    }

    fn log_reader(&self, tail: Option<u64>) -> Box<dyn ReadLog> {
        Box::new(FileLogReader::new(self.folder.log(), tail))
    }

    fn log_faults(&self) -> Result<Vec<String>, StoreError> {
        FileLogReader::new(self.folder.log(), None).faults()
    }

    fn whole_log(&self) -> Result<String, StoreError> {
        Ok(transfer::text_of(&self.folder.log())?.unwrap_or_default())
    }

    fn archive(&self) -> Result<BTreeMap<String, String>, StoreError> {
        transfer::archive(self)
    }

    fn archived(&self, name: &str) -> Result<Option<String>, StoreError> {
        transfer::text_of(&self.folder().join("archive").join(format!("{name}.yaml")))
    }

    fn add_earlier(&self, log: &str, archive: &BTreeMap<String, String>) -> Result<(), StoreError> {
        transfer::add_earlier(self, log, archive)
    }

    fn recover(&self) -> Result<Vec<Notice>, StoreError> {
        Ok(self.lock()?.current()?.notices)
    }

    fn begin_edit(&self) -> Result<Box<dyn TextEdit + '_>, StoreError> {
        Ok(Box::new(FileEdit::begin(self)?))
    }
}

pub fn read_state(path: &Path) -> Result<State, StoreError> {
    let bytes = read_file(path).map_err(StoreError::io("read", path))?;
    let (text, _) = text_without_bom(path, &bytes)?;
    let mut view = StateView::full(path, text)?;
    view.check_version()?;
    view.state()
}

pub fn misspelled_keys(path: &Path) -> Result<Vec<MisspelledKey>, StoreError> {
    let bytes = read_file(path).map_err(StoreError::io("read", path))?;
    let (text, _) = text_without_bom(path, &bytes)?;
    Ok(keys_misspelled_in(&StateView::full(path, text)?))
}

fn keys_misspelled_in(view: &StateView<'_>) -> Vec<MisspelledKey> {
    view.tree.as_ref().map(|tree| misspelled::misspelled_keys(&plain_value(tree))).unwrap_or_default()
}

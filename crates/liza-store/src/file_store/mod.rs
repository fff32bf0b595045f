//! The blackboard in a file: where it is, how it is created, read and locked.
//!
//! Every write goes through `submit.rs`, which decides commands, or `text_edit.rs`. All of them validate, and write
//! the whole new version durably or nothing at all. `log_text.rs` has the texts for the log.

mod batch;
mod log_text;
mod submit;
mod transfer;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use batch::WriteQueue;
use liza_core::model::{Board, LogEntry, Section, State, TaskId};
use liza_core::rules::misspelled::{self, MisspelledKey};
use liza_host::durable::read_file;
use liza_host::private;

use crate::codec::{self, StateView, text_without_bom};
use crate::document::plain_value;
use crate::error::StoreError;
use crate::file::{Fingerprint, LockTimeout, LockedFolder, NewVersion, Notice, StateFolder};
use crate::verify::{self, new_document};
use crate::yaml::YamlError;

pub(crate) use log_text::entry_text;

/// How often a write starts again because a person saves the file at the same moment.
pub(crate) const OVERTAKEN_LIMIT: usize = 20;

/// The blackboard of one project.
#[derive(Debug, Clone)]
pub(crate) struct FileStore {
    root: PathBuf,
    folder: StateFolder,
    /// How long to wait for the lock; by default `config.lock_timeout` of the blackboard.
    lock_timeout: Option<LockTimeout>,
    /// The commands of this process that wait for each other.
    queue: Arc<WriteQueue>,
}

impl FileStore {
    /// Opens the blackboard of the project at `root`.
    ///
    /// # Errors
    /// When there is none.
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
        Self { root: root.to_owned(), folder, lock_timeout: None, queue: Arc::default() }
    }

    /// Creates a blackboard in a project that has none.
    ///
    /// # Errors
    /// When there is one already, or the folder cannot be written.
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
            log: Some(store.log_text(log, revision)?),
        })?;
        Ok(store)
    }

    /// Waits this long for the lock, whatever the config says.
    #[must_use]
    pub(crate) fn with_lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = Some(LockTimeout(timeout));
        self
    }

    /// The project root.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of the blackboard.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The blackboard itself.
    pub(crate) fn state_file(&self) -> PathBuf {
        self.folder.state()
    }

    /// The whole blackboard, read without a lock.
    ///
    /// # Errors
    /// When the file is not a valid blackboard.
    pub(crate) fn snapshot(&self) -> Result<State, StoreError> {
        let bytes = self.folder.read()?;
        codec::parse_state(&self.folder.state(), &bytes, self.folder.is_own_version(&bytes))
    }

    /// The whole blackboard, if a command could write it (also checks its version), and its keys that are probably
    /// misspelled.
    ///
    /// # Errors
    /// When the file is not a valid blackboard, or a newer program wrote it.
    pub(crate) fn writable_snapshot(&self) -> Result<(State, Vec<MisspelledKey>), StoreError> {
        let (path, bytes) = (self.folder.state(), self.folder.read()?);
        let mut view = self.tree_view(&path, &bytes)?;
        view.check_version()?;
        Ok((view.state()?, keys_misspelled_in(&view)))
    }

    /// A view of a version of state.yaml, with its tree.
    pub(crate) fn tree_view<'t>(&self, path: &'t Path, bytes: &'t [u8]) -> Result<StateView<'t>, StoreError> {
        let (text, _) = text_without_bom(path, bytes)?;
        match self.folder.is_own_version(bytes) {
            true => StateView::own_tree(path, text),
            false => StateView::full(path, text),
        }
    }

    /// The text of the blackboard.
    ///
    /// # Errors
    /// When the file is not text.
    pub(crate) fn text(&self) -> Result<String, StoreError> {
        let bytes = self.folder.read()?;
        Ok(text_without_bom(&self.folder.state(), &bytes)?.0.to_owned())
    }

    /// Parts of the blackboard, read without a lock: these sections, and these tasks in full.
    ///
    /// Parses only these parts if the store wrote the file.
    ///
    /// # Errors
    /// When the file is not a valid blackboard.
    pub(crate) fn read_parts(&self, sections: &[Section], tasks: &[TaskId]) -> Result<Board, StoreError> {
        let bytes = self.folder.read()?;
        let path = self.folder.state();
        let (text, _) = text_without_bom(&path, &bytes)?;
        if self.folder.is_own_version(&bytes) {
            let mut view = StateView::lazy(&path, text)?;
            let mut board = view.board()?;
            view.load_sections(&mut board, sections);
            view.load_summaries(&mut board, Some(tasks))?;
            if view.tree.is_none() {
                view.load_bodies(&mut board, tasks)?;
                return Ok(board);
            }
        }
        Ok(StateView::full(&path, text)?.state()?.board)
    }

    /// Repairs what a crash or a stale save has left, and reports it.
    ///
    /// # Errors
    /// When the lock is not free, or the files cannot be read or written.
    pub(crate) fn recover(&self) -> Result<Vec<Notice>, StoreError> {
        Ok(self.lock()?.current()?.notices)
    }

    /// Restores a blackboard that was deleted, emptied or cut off from the version that is kept beside it.
    ///
    /// # Errors
    /// When the lock is not free, or the files cannot be read or written.
    pub(crate) fn restore_lost(root: &Path) -> Result<Option<Notice>, StoreError> {
        let store = Self::at(root);
        if !store.folder.previous().is_file() {
            return Ok(None);
        }
        store.lock()?.restore_lost()
    }

    fn mismatch(&self, what: &str) -> StoreError {
        verify::mismatch(&self.folder.state(), what)
    }

    pub(crate) fn not_encoded(&self, source: YamlError) -> StoreError {
        StoreError::Encode { path: self.folder.state(), source }
    }

    pub(crate) fn files(&self) -> &StateFolder {
        &self.folder
    }

    /// Takes the lock.
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

/// The blackboard in any file.
///
/// # Errors
/// When the file is not a valid blackboard, or a newer program wrote it.
pub fn read_state(path: &Path) -> Result<State, StoreError> {
    let bytes = read_file(path).map_err(StoreError::io("read", path))?;
    let (text, _) = text_without_bom(path, &bytes)?;
    let mut view = StateView::full(path, text)?;
    view.check_version()?;
    view.state()
}

/// The keys of the blackboard in a file that are probably misspelled.
///
/// # Errors
/// When the file is not a valid blackboard.
pub fn misspelled_keys(path: &Path) -> Result<Vec<MisspelledKey>, StoreError> {
    let bytes = fs::read(path).map_err(StoreError::io("read", path))?;
    let (text, _) = text_without_bom(path, &bytes)?;
    Ok(keys_misspelled_in(&StateView::full(path, text)?))
}

fn keys_misspelled_in(view: &StateView<'_>) -> Vec<MisspelledKey> {
    view.tree.as_ref().map(|tree| misspelled::misspelled_keys(&plain_value(tree))).unwrap_or_default()
}

//! The blackboard: read it, and change it by commands.
//!
//! Every write goes through [`Store::submit`] or `text_edit.rs`. All of them validate, and write the whole new version
//! durably or nothing at all.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use liza_core::model::{
    Actor, Board, Change, Effect, LogEntry, Refusal, Revision, Section, State, StopFile, StopFiles, TaskId,
    Timestamp, Value, Worktree,
};
use liza_core::protocol::{Operation, Pending, Request};
use liza_core::rules::invariants::{self, DiskFacts, Violation};
use liza_core::rules::misspelled::{self, MisspelledKey};
use liza_core::text::one_line;

use crate::archive;
use crate::codec::{self, Spliced, StateView, text_without_bom};
use crate::document::{Edit, plain_value, same_value};
use crate::durable::read_file;
use crate::error::StoreError;
use crate::file::{
    CurrentFile, Fingerprint, LockTimeout, LockedFolder, NewVersion, Notice, Origin, StateFolder,
};
use crate::private;
use crate::yaml::{self, YamlError, to_value};

/// The longest detail of a log entry, in characters.
const DETAIL_LIMIT: usize = 1_000;

/// How often a write starts again because a person saves the file at the same moment.
pub(crate) const OVERTAKEN_LIMIT: usize = 20;

/// The outcome of a command.
#[must_use = "effects still have to run"]
#[derive(Debug)]
pub struct Outcome<R> {
    /// The reply, or why the command was refused although something was written.
    pub answer: Result<R, Refusal>,
    /// The write.
    pub written: Written,
}

/// The write behind an outcome.
#[must_use = "effects still have to run"]
#[derive(Debug)]
pub struct Written {
    /// The current revision.
    pub revision: Revision,
    /// Whether anything was written.
    pub changed: bool,
    /// What the caller has to do outside the blackboard.
    pub effects: Vec<Effect>,
    /// What was repaired before the write, or could not be completed.
    pub notices: Vec<Notice>,
    /// How long it took to get the lock.
    pub waited: Duration,
}

/// A command and who sends it.
#[derive(Debug, Clone)]
pub struct Call<C> {
    /// Who sends it.
    pub actor: Actor,
    /// The revision that the sender had read.
    pub if_revision: Option<Revision>,
    /// What they want.
    pub command: C,
}

/// What a command needs from outside the blackboard. It is asked once the lock is held, so that nothing is decided on
/// what was true before the wait. Everything here must be quick.
pub trait Host {
    /// The time.
    fn now(&self) -> Timestamp;
    /// Which stop files are present.
    fn stop_files(&self) -> StopFiles;
    /// Creates stop files that must exist before a change is written.
    ///
    /// # Errors
    /// When one cannot be created; nothing is written then.
    fn create_stop_files(&self, files: &[StopFile], now: Timestamp) -> io::Result<()>;
    /// A text for the log without the secrets in it.
    fn masked(&self, text: &str) -> String;
}

/// The blackboard of one project.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    folder: StateFolder,
    /// How long to wait for the lock; by default `config.lock_timeout` of the blackboard.
    lock_timeout: Option<LockTimeout>,
}

/// The facts that the rules need from the disk: which worktrees and specifications exist below the project root.
#[derive(Debug, Clone)]
pub struct ProjectDisk {
    root: PathBuf,
    skip_specs: bool,
}

impl ProjectDisk {
    /// The disk of the project at `root`. With `SKIP_SPEC_FILE_CHECK=true` every specification counts as existing.
    pub fn new(root: &Path) -> Self {
        let skip_specs = std::env::var_os("SKIP_SPEC_FILE_CHECK").is_some_and(|value| value == "true");
        Self { root: root.to_owned(), skip_specs }
    }
}

impl DiskFacts for ProjectDisk {
    fn worktree_exists(&self, worktree: &Worktree) -> bool {
        self.root.join(worktree.as_str()).is_dir()
    }

    fn spec_exists(&self, path: &str) -> bool {
        let inside =
            Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        self.skip_specs || (inside && self.root.join(path).is_file())
    }
}

impl Store {
    /// Opens the blackboard of the project at `root`.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
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

    /// Creates a blackboard in a project that has none.
    ///
    /// # Errors
    /// When there is one already, or the folder cannot be written.
    pub fn create(root: &Path, state: &State, log: &LogEntry) -> Result<Self, StoreError> {
        let store = Self::at(root);
        let path = store.folder.path();
        if store.folder.state().exists() {
            return Err(StoreError::Exists { path: store.folder.state() });
        }
        private::create_folder(path).map_err(StoreError::io("create", path))?;
        let sections = codec::document_fields(state).map_err(|error| store.not_encoded(error))?;
        let text = yaml::document(&sections);
        let read = StateView::full(&store.folder.state(), &text)?.state()?;
        store.check_same(state, &read)?;
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
    pub fn with_lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = Some(LockTimeout(timeout));
        self
    }

    /// The project root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of the blackboard.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The blackboard itself.
    pub fn state_file(&self) -> PathBuf {
        self.folder.state()
    }

    /// The whole blackboard, read without a lock.
    ///
    /// # Errors
    /// When the file is not a valid blackboard.
    pub fn snapshot(&self) -> Result<State, StoreError> {
        let bytes = self.folder.read()?;
        codec::parse_state(&self.folder.state(), &bytes, self.folder.is_own_version(&bytes))
    }

    /// The whole blackboard, if a command could write it (also checks its version), and its keys that are probably
    /// misspelled.
    ///
    /// # Errors
    /// When the file is not a valid blackboard, or a newer program wrote it.
    pub fn writable_snapshot(&self) -> Result<(State, Vec<MisspelledKey>), StoreError> {
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
    pub fn text(&self) -> Result<String, StoreError> {
        let bytes = self.folder.read()?;
        Ok(text_without_bom(&self.folder.state(), &bytes)?.0.to_owned())
    }

    /// Parts of the blackboard, read without a lock: these sections, and these tasks in full.
    ///
    /// Parses only these parts if the store wrote the file.
    ///
    /// # Errors
    /// When the file is not a valid blackboard.
    pub fn read_parts(&self, sections: &[Section], tasks: &[TaskId]) -> Result<Board, StoreError> {
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

    /// All violations in the blackboard.
    ///
    /// # Errors
    /// When the file is not a valid blackboard.
    pub fn validate(&self, now: Timestamp) -> Result<Vec<Violation>, StoreError> {
        Ok(invariants::validate(&self.snapshot()?, &ProjectDisk::new(&self.root), now))
    }

    /// Repairs what a crash or a stale save has left, and reports it.
    ///
    /// # Errors
    /// When the lock is not free, or the files cannot be read or written.
    pub fn recover(&self) -> Result<Vec<Notice>, StoreError> {
        Ok(self.lock()?.current()?.notices)
    }

    /// Restores a blackboard that was deleted, emptied or cut off from the version that is kept beside it.
    ///
    /// # Errors
    /// When the lock is not free, or the files cannot be read or written.
    pub fn restore_lost(root: &Path) -> Result<Option<Notice>, StoreError> {
        let store = Self::at(root);
        if !store.folder.previous().is_file() {
            return Ok(None);
        }
        store.lock()?.restore_lost()
    }

    /// Decides a command and writes what it changes.
    ///
    /// # Errors
    /// When the rules refuse it, the lock is not free, or the files cannot be read or written. The blackboard is
    /// unchanged then.
    pub fn submit<C: Operation>(
        &self,
        call: Call<C>,
        host: &dyn Host,
    ) -> Result<Outcome<C::Reply>, StoreError> {
        let mut locked = self.lock()?;
        let Call { actor, if_revision, command } = call;
        let (now, stop_files) = (host.now(), host.stop_files());
        let mut pending = (Request { actor, now, stop_files, if_revision, command }, None);
        let mut attempts = 0;
        let written = loop {
            attempts += 1;
            match self.submit_locked(&mut locked, &mut pending, host) {
                // A person saved the file meanwhile: decide again, on what they saved.
                Err(StoreError::Overtaken { .. }) if attempts < OVERTAKEN_LIMIT => {}
                other => break other?,
            }
        };
        let answer = pending.1.ok_or_else(|| self.mismatch("the answer of the rules"))?;
        Ok(Outcome { answer, written })
    }

    /// Decides a request without a lock, and writes nothing.
    ///
    /// # Errors
    /// When the rules refuse it, or the file is not a valid blackboard.
    pub fn check<C: Operation>(&self, request: Request<C>) -> Result<C::Reply, StoreError> {
        let bytes = self.folder.read()?;
        let path = self.folder.state();
        let (text, _) = text_without_bom(&path, &bytes)?;
        let mut pending = (request, None);
        let scanned = match self.folder.is_own_version(&bytes) {
            true => load(&mut StateView::lazy(&path, text)?, &pending)?,
            false => None,
        };
        let board = match scanned {
            Some(board) => board,
            None => StateView::full(&path, text)?.state()?.board,
        };
        let _ = pending.decide(&board)?;
        Ok(pending.1.ok_or_else(|| self.mismatch("the answer of the rules"))??)
    }

    fn submit_locked(
        &self,
        locked: &mut LockedFolder,
        pending: &mut dyn Pending,
        host: &dyn Host,
    ) -> Result<Written, StoreError> {
        let current = locked.current()?;
        let path = self.folder.state();
        let (text, bom) = text_without_bom(&path, &current.bytes)?;
        match current.origin {
            Origin::Ours { scannable: true } => {
                self.submit_lazily(locked, &current, (text, bom), pending, host)
            }
            Origin::Ours { scannable: false } | Origin::Edited => {
                self.submit_carefully(locked, &current, (text, bom), pending, host)
            }
        }
    }

    /// For a version that we wrote: scans lines for the summaries, and parses only what the command needs.
    fn submit_lazily(
        &self,
        locked: &mut LockedFolder,
        current: &CurrentFile,
        (text, bom): (&str, usize),
        pending: &mut dyn Pending,
        host: &dyn Host,
    ) -> Result<Written, StoreError> {
        let path = self.folder.state();
        let mut view = StateView::lazy(&path, text)?;
        view.check_version()?;
        let Some(mut board) = load(&mut view, pending)? else {
            return self.submit_carefully(locked, current, (text, bom), pending, host);
        };
        board.revision = board.revision.max(Revision(current.revision));
        let mut change = self.decide(&board, pending, host)?;
        if change.is_empty() {
            return Ok(unwritten(board.revision, change, current, locked));
        }
        add_missing_sprint(&mut change, &view, pending.now());
        let ops = codec::operations(&board, &change).map_err(|error| self.not_encoded(error))?;
        let spliced =
            codec::splice(&view, &ops).ok().filter(|spliced| codec::reads_back(&view, spliced, &ops));
        let Some(spliced) = spliced else {
            return self.submit_carefully(locked, current, (text, bom), pending, host);
        };
        archive::store(self.folder.path(), &view, &board, &change)?;
        self.write(locked, current, bom, (spliced, true), change, pending.now())
    }

    /// For a version that a person edited: parses the whole file before and after.
    fn submit_carefully(
        &self,
        locked: &mut LockedFolder,
        current: &CurrentFile,
        (text, bom): (&str, usize),
        pending: &mut dyn Pending,
        host: &dyn Host,
    ) -> Result<Written, StoreError> {
        let path = self.folder.state();
        let mut view = StateView::full(&path, text)?;
        view.check_version()?;
        let mut state = view.state()?;
        state.board.revision = state.board.revision.max(Revision(current.revision));
        let mut change = self.decide(&state.board, pending, host)?;
        if change.is_empty() {
            return Ok(unwritten(state.board.revision, change, current, locked));
        }
        add_missing_sprint(&mut change, &view, pending.now());
        let ops = codec::operations(&state.board, &change).map_err(|error| self.not_encoded(error))?;
        let mut intended = state.clone();
        intended.apply(&change);
        let (spliced, scannable) = self.verified_text(&view, &ops, &intended)?;
        archive::store(self.folder.path(), &view, &state.board, &change)?;
        self.write(locked, current, bom, (spliced, scannable), change, pending.now())
    }

    /// What to write; the stop files that have to exist before it are created.
    fn decide(
        &self,
        board: &Board,
        pending: &mut dyn Pending,
        host: &dyn Host,
    ) -> Result<Change, StoreError> {
        let mut change = pending.decide(board)?;
        if let Some(entry) = &mut change.log {
            entry.detail = host.masked(&entry.detail);
        }
        let violations = invariants::introduced(board, &change, &ProjectDisk::new(&self.root), pending.now());
        if !violations.is_empty() {
            return Err(StoreError::Violates(violations));
        }
        let create = host.create_stop_files(&change.stop_files, pending.now());
        create.map_err(StoreError::io("create a stop file in", self.folder.path()))?;
        Ok(change)
    }

    /// A new text that reads back as the intended state: spliced if possible, otherwise a rewrite of the whole file.
    pub(crate) fn verified_text(
        &self,
        view: &StateView<'_>,
        ops: &[codec::Op],
        intended: &State,
    ) -> Result<(Spliced, bool), StoreError> {
        if let Ok(spliced) = codec::splice(view, ops)
            && let Ok(scannable) = self.check_text(&spliced.text, intended, view, ops)
        {
            return Ok((spliced, scannable));
        }
        let text = codec::rewrite(view, ops).ok_or_else(|| self.mismatch("the file"))?;
        let scannable = self.check_text(&text, intended, view, ops)?;
        Ok((Spliced { text, edits: Vec::new(), rewritten: true }, scannable))
    }

    /// Checks that a text reads as the intended state and keeps the sections that the operations do not touch. Returns
    /// whether a line scan finds all its blocks.
    fn check_text(
        &self,
        text: &str,
        intended: &State,
        before: &StateView<'_>,
        ops: &[codec::Op],
    ) -> Result<bool, StoreError> {
        let path = self.folder.state();
        let mut view = StateView::full(&path, text)?;
        let state = view.state()?;
        self.check_same(intended, &state)?;
        let is_same = |name: &&String| {
            let value =
                |view: &StateView<'_>| view.with_section(name, |node| Ok(plain_value(node))).ok().flatten();
            match (value(before), value(&view)) {
                (Some(before), Some(after)) => same_value(&before, &after),
                (before, after) => before.is_none() && after.is_none(),
            }
        };
        match codec::untouched(before, ops).iter().find(|name| !is_same(name)) {
            Some(name) => Err(self.mismatch(name)),
            None => Ok(view.scannable),
        }
    }

    fn check_same(&self, intended: &State, read: &State) -> Result<(), StoreError> {
        let fields = |state: &State| codec::document_fields(state).map_err(|error| self.not_encoded(error));
        let (intended, read) = (fields(intended)?, fields(read)?);
        let differs =
            |(key, value): &(&String, &Value)| !read.get(*key).is_some_and(|read| same_value(value, read));
        match intended.iter().find(differs) {
            Some((key, _)) => Err(self.mismatch(key)),
            None if intended.len() != read.len() => Err(self.mismatch("a section")),
            None => Ok(()),
        }
    }

    fn write(
        &self,
        locked: &mut LockedFolder,
        current: &CurrentFile,
        bom: usize,
        (spliced, scannable): (Spliced, bool),
        change: Change,
        now: Timestamp,
    ) -> Result<Written, StoreError> {
        let mut log = match &change.log {
            Some(entry) => Some(self.log_text(entry, change.revision)?),
            None => None,
        };
        let rewritten = match spliced.rewritten {
            true => Some(self.keep_before_rewrite(locked, &current.bytes, now, change.revision, &mut log)?),
            false => None,
        };
        let after = if bom == 0 {
            spliced.text.into_bytes()
        } else {
            [&current.bytes[..bom], spliced.text.as_bytes()].concat()
        };
        let shift = |edit: &Edit| Edit {
            range: edit.range.start + bom..edit.range.end + bom,
            text: edit.text.clone(),
        };
        let edits: Vec<Edit> = spliced.edits.iter().map(shift).collect();
        let notice = locked.commit(&NewVersion {
            before: current.fingerprint,
            on_disk: &current.bytes,
            after: &after,
            edits: &edits,
            revision_before: current.revision,
            revision: change.revision.0,
            scannable,
            log,
        })?;
        Ok(Written {
            revision: change.revision,
            changed: true,
            effects: change.effects,
            notices: current.notices.iter().cloned().chain(rewritten).chain(notice).collect(),
            waited: locked.waited(),
        })
    }

    /// Keeps a copy of a version whose comments and form the write loses, and adds that to the log.
    pub(crate) fn keep_before_rewrite(
        &self,
        locked: &LockedFolder,
        bytes: &[u8],
        now: Timestamp,
        revision: Revision,
        log: &mut Option<String>,
    ) -> Result<Notice, StoreError> {
        let notice = Notice::Rewritten { kept: locked.keep_before_rewrite(bytes)? };
        let entry = LogEntry {
            timestamp: now,
            agent: "liza".to_owned(),
            action: "rewritten".to_owned(),
            task: None,
            detail: notice.to_string(),
        };
        let text = self.log_text(&entry, revision)?;
        *log = Some(log.take().map_or_else(|| text.clone(), |first| format!("{first}\n\n{text}")));
        Ok(notice)
    }

    pub(crate) fn log_text(&self, entry: &LogEntry, revision: Revision) -> Result<String, StoreError> {
        // The entry must fit into a write record.
        let entry = LogEntry { detail: one_line(&entry.detail, DETAIL_LIMIT), ..entry.clone() };
        let mut value = to_value(&entry).map_err(|error| self.not_encoded(error))?;
        if let Value::Map(fields) = &mut value {
            fields.insert("revision".to_owned(), Value::Int(i64::try_from(revision.0).unwrap_or(i64::MAX)));
        }
        Ok(yaml::item(&value, 0))
    }

    fn mismatch(&self, what: &str) -> StoreError {
        StoreError::ReadBackMismatch { path: self.folder.state(), what: what.to_owned() }
    }

    pub(crate) fn not_encoded(&self, source: YamlError) -> StoreError {
        StoreError::Encode { path: self.folder.state(), source }
    }

    pub(crate) fn files(&self) -> &StateFolder {
        &self.folder
    }

    /// Takes the lock.
    pub(crate) fn lock(&self) -> Result<LockedFolder, StoreError> {
        let timeout = || self.lock_timeout.unwrap_or_else(|| self.configured_lock_timeout());
        LockedFolder::acquire(&self.folder, &timeout)
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

/// What a pending command needs of a version that we wrote; `None` if it has to be parsed in full.
fn load(view: &mut StateView<'_>, pending: &dyn Pending) -> Result<Option<Board>, StoreError> {
    let mut board = view.board()?;
    view.load_sections(&mut board, &pending.sections());
    let summaries = pending.summaries(&board);
    view.load_summaries(&mut board, summaries.as_deref())?;
    if view.tree.is_some() {
        return Ok(None);
    }
    let bodies = pending.bodies(&board);
    view.load_bodies(&mut board, &bodies)?;
    Ok(Some(board))
}

/// Adds the first sprint to a file that has none.
fn add_missing_sprint(change: &mut Change, view: &StateView<'_>, now: Timestamp) {
    if change.sprint.is_none() {
        change.sprint = view.missing_sprint(now);
    }
}

fn unwritten(revision: Revision, change: Change, current: &CurrentFile, locked: &LockedFolder) -> Written {
    Written {
        revision,
        changed: false,
        effects: change.effects,
        notices: current.notices.clone(),
        waited: locked.waited(),
    }
}

//! The blackboard: look at it, change it by a command, be told when it changes.
//!
//! Every write goes through [`Store::submit`] or the few ways in `raw.rs`; all of them validate, and all of them
//! write the whole new version durably or nothing at all.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use liza_core::model::{Actor, Board, Change, Config, Effect, LogEntry, Refusal, Revision, Section, State, StopFile, StopFiles, TaskId, Timestamp, Value, Worktree};
use liza_core::protocol::{Operation, Pending, Request, apply};
use liza_core::rules::invariants;
use liza_core::rules::invariants::{DiskFacts, Violation};
use liza_core::text::one_line;

use crate::archive;
use crate::document::{Edit, untyped};
use crate::error::StoreError;
use crate::file::{Current, Folder, Held, Imprint, Notice, Origin, Patience, Write};
use crate::wire::{self, Spliced, View, body_of};
use crate::yaml::{self, to_value};

/// The longest detail of a log entry, in characters.
const DETAIL_LIMIT: usize = 1_000;

/// What came of a command.
#[must_use = "effects still have to run"]
#[derive(Debug)]
pub struct Outcome<R> {
    /// The reply, or why the caller did not get what it wanted although something was written.
    pub answer: Result<R, Refusal>,
    /// What was written.
    pub written: Written,
}

/// The write behind an outcome.
#[must_use = "effects still have to run"]
#[derive(Debug)]
pub struct Written {
    /// The revision of the blackboard now.
    pub revision: Revision,
    /// Whether anything was written.
    pub changed: bool,
    /// What to do outside the blackboard.
    pub effects: Vec<Effect>,
    /// What was found and repaired on the way.
    pub notices: Vec<Notice>,
    /// How long the lock was waited for.
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

/// What a command needs from outside the blackboard; asked for once the lock is held, so that nothing is decided on
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
}

/// The blackboard of one project.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    folder: Folder,
    /// How long to wait for the lock; nothing where the blackboard's own `config.lock_timeout` says it.
    patience: Option<Patience>,
}

/// What the rules ask of the disk: worktrees and specifications below the project root.
#[derive(Debug, Clone)]
pub struct Disk {
    root: PathBuf,
    skip_specs: bool,
}

impl Disk {
    /// Looks below a project root. `SKIP_SPEC_FILE_CHECK=true` takes every specification for granted.
    pub fn below(root: &Path) -> Self {
        let skip_specs = std::env::var_os("SKIP_SPEC_FILE_CHECK").is_some_and(|value| value == "true");
        Self { root: root.to_owned(), skip_specs }
    }
}

impl DiskFacts for Disk {
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
    /// The blackboard of the project at `root`.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let store = Self::at(root);
        if store.folder.state().exists() {
            Ok(store)
        } else {
            Err(StoreError::Missing { path: store.folder.state() })
        }
    }

    fn at(root: &Path) -> Self {
        let folder = Folder::new(root.join(".liza"));
        Self { root: root.to_owned(), folder, patience: None }
    }

    /// Makes a new blackboard in a folder that has none.
    ///
    /// # Errors
    /// When there is one already, or the folder cannot be written.
    pub fn create(root: &Path, state: &State, log: &LogEntry) -> Result<Self, StoreError> {
        let store = Self::at(root);
        let path = store.folder.path();
        if store.folder.state().exists() {
            return Err(StoreError::Exists { path: store.folder.state() });
        }
        fs::create_dir_all(path).map_err(StoreError::io("create", path))?;
        let sections = wire::document_of(state).map_err(|error| store.unfaithful(error.to_string()))?;
        let text = yaml::document(&sections);
        let read = View::full(&store.folder.state(), &text)?.state()?;
        store.same(state, &read)?;
        let revision = state.board.revision;
        let mut held = store.acquire()?;
        if store.folder.state().exists() {
            return Err(StoreError::Exists { path: store.folder.state() });
        }
        held.commit(&Write {
            before: Imprint::of(b""),
            after: text.as_bytes(),
            edits: &[],
            revision_before: 0,
            revision: revision.0,
            simple: true,
            log: Some(store.log_text(log, revision)?),
        })?;
        Ok(store)
    }

    /// How long to wait for the lock instead of what the config says.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = Some(Patience(patience));
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

    /// The whole blackboard as it stands, without a lock.
    ///
    /// # Errors
    /// When the file cannot be read as one.
    pub fn snapshot(&self) -> Result<State, StoreError> {
        let bytes = self.folder.read()?;
        self.whole(&bytes, self.folder.is_as_written(&bytes))
    }

    /// The whole blackboard in these bytes, block by block where they are as we wrote them.
    pub(crate) fn whole(&self, bytes: &[u8], as_written: bool) -> Result<State, StoreError> {
        let path = self.folder.state();
        let (text, _) = body_of(&path, bytes)?;
        if as_written { View::lazy(&path, text)?.state() } else { View::full(&path, text)?.state() }
    }

    /// Parts of the blackboard as it stands, without a lock: these sections, and these tasks whole.
    ///
    /// Costs what it looks at, where the file is as we wrote it.
    ///
    /// # Errors
    /// When the file cannot be read as one.
    pub fn glance(&self, sections: &[Section], tasks: &[TaskId]) -> Result<Board, StoreError> {
        let bytes = self.folder.read()?;
        let path = self.folder.state();
        let (text, _) = body_of(&path, &bytes)?;
        if self.folder.is_as_written(&bytes) {
            let mut view = View::lazy(&path, text)?;
            let mut board = view.board()?;
            view.load_sections(&mut board, sections);
            view.load_heads(&mut board, Some(tasks))?;
            if view.tree.is_none() {
                view.load_bodies(&mut board, tasks)?;
                return Ok(board);
            }
        }
        Ok(View::full(&path, text)?.state()?.board)
    }

    /// Everything that is wrong with the blackboard.
    ///
    /// # Errors
    /// When the file cannot be read as one.
    pub fn validate(&self, now: Timestamp) -> Result<Vec<Violation>, StoreError> {
        Ok(invariants::validate(&self.snapshot()?, &Disk::below(&self.root), now))
    }

    /// Settles what a crash or a stale save has left, and says what it was.
    ///
    /// # Errors
    /// When the lock or the files cannot be had.
    pub fn settle(&self) -> Result<Vec<Notice>, StoreError> {
        Ok(self.acquire()?.current()?.notices)
    }

    /// Decides a command and writes what it changes.
    ///
    /// # Errors
    /// When the rules refuse it, the lock is not to be had, or the files cannot be read or written. In every case
    /// the blackboard is as it was.
    pub fn submit<C: Operation>(
        &self,
        call: Call<C>,
        host: &dyn Host,
    ) -> Result<Outcome<C::Reply>, StoreError> {
        let mut held = self.acquire()?;
        let Call { actor, if_revision, command } = call;
        let (now, stop_files) = (host.now(), host.stop_files());
        let mut pending = (Request { actor, now, stop_files, if_revision, command }, None);
        let written = self.submit_held(&mut held, &mut pending, host)?;
        match pending.1 {
            Some(answer) => Ok(Outcome { answer, written }),
            None => Err(self.unfaithful("the answer of the rules".to_owned())),
        }
    }

    /// Decides a request on the blackboard as it is, without a lock, and writes nothing.
    ///
    /// # Errors
    /// When the rules refuse it, or the file cannot be read.
    pub fn check<C: Operation>(&self, request: &Request<C>) -> Result<C::Reply, StoreError> {
        let bytes = self.folder.read()?;
        let path = self.folder.state();
        let (text, _) = body_of(&path, &bytes)?;
        let board = match self.folder.is_as_written(&bytes) {
            true => {
                let mut view = View::lazy(&path, text)?;
                let mut board = view.board()?;
                view.load_sections(&mut board, &request.sections());
                let only = request.summaries(&board);
                view.load_heads(&mut board, only.as_deref())?;
                let bodies = request.bodies(&board);
                view.load_bodies(&mut board, &bodies)?;
                if view.tree.is_none() { board } else { View::full(&path, text)?.state()?.board }
            }
            false => View::full(&path, text)?.state()?.board,
        };
        Ok(apply(&board, request)?.answer?)
    }

    fn submit_held(
        &self,
        held: &mut Held,
        pending: &mut dyn Pending,
        host: &dyn Host,
    ) -> Result<Written, StoreError> {
        let current = held.current()?;
        let path = self.folder.state();
        let (text, bom) = body_of(&path, &current.bytes)?;
        match current.origin {
            Origin::Ours { simple: true } => self.submit_lazily(held, &current, (text, bom), pending, host),
            Origin::Ours { simple: false } | Origin::Edited => {
                self.submit_carefully(held, &current, (text, bom), pending, host)
            }
        }
    }

    /// On a version that we wrote: heads by a line scan, and only what the command needs is parsed.
    fn submit_lazily(
        &self,
        held: &mut Held,
        current: &Current,
        (text, bom): (&str, usize),
        pending: &mut dyn Pending,
        host: &dyn Host,
    ) -> Result<Written, StoreError> {
        let path = self.folder.state();
        let mut view = View::lazy(&path, text)?;
        view.check_version()?;
        let mut board = view.board()?;
        board.revision = board.revision.max(Revision(current.revision));
        view.load_sections(&mut board, &pending.sections());
        let only = pending.summaries(&board);
        view.load_heads(&mut board, only.as_deref())?;
        if view.tree.is_some() {
            return self.submit_carefully(held, current, (text, bom), pending, host);
        }
        let bodies = pending.bodies(&board);
        view.load_bodies(&mut board, &bodies)?;
        let change = self.decide(&board, pending)?;
        self.prepare(&change, pending, host)?;
        if change.is_empty() {
            return Ok(unwritten(board.revision, change, current, held));
        }
        let ops = wire::operations(&board, &change).map_err(|error| self.unfaithful(error.to_string()))?;
        let Ok(spliced) = wire::splice(&view, &ops) else {
            return self.submit_carefully(held, current, (text, bom), pending, host);
        };
        if wire::verify(&view, &spliced, &ops).is_err() {
            return self.submit_carefully(held, current, (text, bom), pending, host);
        }
        archive::store(self.folder.path(), &view, &board, &change)?;
        self.write(held, current, bom, spliced, true, change)
    }

    /// On a version that somebody else wrote: parsed in full before and after.
    fn submit_carefully(
        &self,
        held: &mut Held,
        current: &Current,
        (text, bom): (&str, usize),
        pending: &mut dyn Pending,
        host: &dyn Host,
    ) -> Result<Written, StoreError> {
        let path = self.folder.state();
        let mut view = View::full(&path, text)?;
        view.check_version()?;
        let mut state = view.state()?;
        state.board.revision = state.board.revision.max(Revision(current.revision));
        let change = self.decide(&state.board, pending)?;
        self.prepare(&change, pending, host)?;
        if change.is_empty() {
            return Ok(unwritten(state.board.revision, change, current, held));
        }
        let ops =
            wire::operations(&state.board, &change).map_err(|error| self.unfaithful(error.to_string()))?;
        let mut meant = state.clone();
        meant.apply(&change);
        let (spliced, simple) = self.faithful(&view, &ops, &meant)?;
        archive::store(self.folder.path(), &view, &state.board, &change)?;
        self.write(held, current, bom, spliced, simple, change)
    }

    /// Has the stop files created that must exist before the change is written.
    fn prepare(&self, change: &Change, pending: &dyn Pending, host: &dyn Host) -> Result<(), StoreError> {
        let create = host.create_stop_files(&change.stop_files, pending.now());
        create.map_err(StoreError::io("create a stop file in", self.folder.path()))
    }

    fn decide(&self, board: &Board, pending: &mut dyn Pending) -> Result<Change, StoreError> {
        let change = pending.decide(board)?;
        let wrong = invariants::introduced(board, &change, &Disk::below(&self.root), pending.now());
        if wrong.is_empty() { Ok(change) } else { Err(StoreError::Violates(wrong)) }
    }

    /// A new text that reads back as the state that is meant: spliced if possible, else written anew.
    pub(crate) fn faithful(
        &self,
        view: &View<'_>,
        ops: &[wire::Op],
        meant: &State,
    ) -> Result<(Spliced, bool), StoreError> {
        if let Ok(spliced) = wire::splice(view, ops)
            && let Ok(simple) = self.reads_as(&spliced.text, meant, view, ops)
        {
            return Ok((spliced, simple));
        }
        let text = wire::rewrite(view, ops).ok_or_else(|| self.unfaithful("the file".to_owned()))?;
        let simple = self.reads_as(&text, meant, view, ops)?;
        Ok((Spliced { text, edits: Vec::new() }, simple))
    }

    /// Whether a text means this state, and leaves alone what the operations do not touch.
    fn reads_as(
        &self,
        text: &str,
        meant: &State,
        before: &View<'_>,
        ops: &[wire::Op],
    ) -> Result<bool, StoreError> {
        let path = self.folder.state();
        let mut view = View::full(&path, text)?;
        let state = view.state()?;
        self.same(meant, &state)?;
        let untouched = wire::untouched(before, ops);
        let same = |name: &&String| {
            let value = |view: &View<'_>| view.with_section(name, |node| Ok(untyped(node))).ok().flatten();
            value(before).map(|value| wire::flat(&value)) == value(&view).map(|value| wire::flat(&value))
        };
        match untouched.iter().find(|name| !same(name)) {
            Some(name) => Err(self.unfaithful(name.clone())),
            None => Ok(view.simple),
        }
    }

    fn same(&self, meant: &State, read: &State) -> Result<(), StoreError> {
        let document = |state: &State| wire::document_of(state).map(|file| wire::flat(&Value::Map(file)));
        let (meant, read) = (document(meant), document(read));
        match (meant, read) {
            (Ok(meant), Ok(read)) if meant == read => Ok(()),
            (Ok(Value::Map(meant)), Ok(Value::Map(read))) => {
                let differs = |key: &&String| meant.get(*key) != read.get(*key);
                let what = meant.keys().find(differs).cloned().unwrap_or_else(|| "a section".to_owned());
                Err(self.unfaithful(what))
            }
            (Err(error), _) | (_, Err(error)) => Err(self.unfaithful(error.to_string())),
            (Ok(_), Ok(_)) => Err(self.unfaithful("the file".to_owned())),
        }
    }

    fn write(
        &self,
        held: &mut Held,
        current: &Current,
        bom: usize,
        spliced: Spliced,
        simple: bool,
        change: Change,
    ) -> Result<Written, StoreError> {
        let log = match &change.log {
            Some(entry) => Some(self.log_text(entry, change.revision)?),
            None => None,
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
        let notice = held.commit(&Write {
            before: current.imprint,
            after: &after,
            edits: &edits,
            revision_before: current.revision,
            revision: change.revision.0,
            simple,
            log,
        })?;
        Ok(Written {
            revision: change.revision,
            changed: true,
            effects: change.effects,
            notices: current.notices.iter().cloned().chain(notice).collect(),
            waited: held.waited(),
        })
    }

    pub(crate) fn log_text(&self, entry: &LogEntry, revision: Revision) -> Result<String, StoreError> {
        // It has to fit into a record, whoever wrote it.
        let entry = LogEntry { detail: one_line(&entry.detail, DETAIL_LIMIT), ..entry.clone() };
        let mut value = to_value(&entry).map_err(|error| self.unfaithful(error.to_string()))?;
        if let Value::Map(fields) = &mut value {
            fields.insert("revision".to_owned(), Value::Int(i64::try_from(revision.0).unwrap_or(i64::MAX)));
        }
        Ok(yaml::item(&value, 0))
    }

    fn unfaithful(&self, what: String) -> StoreError {
        StoreError::Unfaithful { path: self.folder.state(), what }
    }

    pub(crate) fn files(&self) -> &Folder {
        &self.folder
    }

    /// Takes the lock, waiting as long as the caller or the config says.
    pub(crate) fn acquire(&self) -> Result<Held, StoreError> {
        Held::acquire(&self.folder, &|| self.patience.unwrap_or_else(|| self.configured_patience()))
    }

    fn configured_patience(&self) -> Patience {
        let path = self.folder.state();
        let config = || {
            let bytes = self.folder.read().ok()?;
            let (text, _) = body_of(&path, &bytes).ok()?;
            let view = View::lazy(&path, text).ok()?;
            view.with_section("config", |node| yaml::decode::<Config>(node)).ok()?
        };
        config().map_or_else(Patience::default, |config| Patience(Duration::from_secs(config.lock_timeout.0)))
    }
}

fn unwritten(revision: Revision, change: Change, current: &Current, held: &Held) -> Written {
    Written {
        revision,
        changed: false,
        effects: change.effects,
        notices: current.notices.clone(),
        waited: held.waited(),
    }
}

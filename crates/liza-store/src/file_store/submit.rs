//! Commands: decided on what they need of the file, and written.
//!
//! Commands of one process that wait for each other are written together (`batch.rs`).
//!
//! A version that we wrote is scanned by lines, one that a person edited is parsed in full before and after. `verify.rs`
//! checks what is written.

use std::time::Instant;

use liza_core::model::{Board, Change, LogEntry, Revision, Timestamp};
use liza_core::protocol::{Operation, Pending, PendingRequest, Request};
use liza_core::rules::invariants;

use super::batch::{Batch, Turn};
use super::{FileStore, OVERTAKEN_LIMIT};
use crate::archive;
use crate::call::{Call, Host, Outcome, Written};
use crate::codec::{self, Spliced, StateView, text_without_bom};
use crate::direct_edit;
use crate::disk::ProjectDisk;
use crate::document::plain_value;
use crate::error::StoreError;
use crate::file::{CurrentFile, LockedFolder, NewVersion, Origin};
use crate::text_edit::shifted;
use crate::verify::verified_text;

/// Where a decided command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Among those that wait to be written.
    Waiting,
    /// Written, or nothing was to be written.
    Done,
}

/// A checked text, ready to be written.
struct NewText {
    /// The length of the byte order mark before it.
    bom: usize,
    spliced: Spliced,
    /// Whether a line scan finds all its blocks.
    scannable: bool,
}

impl FileStore {
    /// Decides a command and writes what it changes.
    ///
    /// # Errors
    /// When the rules refuse it, the lock is not free, or the files cannot be read or written. The blackboard is
    /// unchanged then.
    pub(crate) fn submit<C: Operation>(
        &self,
        call: Call<C>,
        host: &dyn Host,
    ) -> Result<Outcome<C::Reply>, StoreError> {
        let started = Instant::now();
        let Call { actor, if_revision, command } = call;
        let mut turn = self.queue.enter();
        self.lock_for(&mut turn, started)?;
        let waited = started.elapsed();
        let (now, stop_files) = (host.now(), host.stop_files());
        let mut pending = PendingRequest::from(Request { actor, now, stop_files, if_revision, command });
        let mut attempts = 0;
        let written = loop {
            attempts += 1;
            match self.submit_in_turn(turn, &mut pending, host) {
                // A person saved the file meanwhile: decide again, on what they saved.
                Err(StoreError::Overtaken { .. }) if attempts < OVERTAKEN_LIMIT => {
                    turn = self.queue.enter();
                    self.lock_for(&mut turn, started)?;
                }
                other => break other?,
            }
        };
        let answer = pending.answer.ok_or_else(|| self.mismatch("the answer of the rules"))?;
        Ok(Outcome { answer, written: Written { waited, ..written } })
    }

    /// Takes the lock, unless commands that wait to be written hold it already.
    fn lock_for(&self, turn: &mut Turn<'_>, since: Instant) -> Result<(), StoreError> {
        if turn.batch.is_none() {
            let mut locked = self.lock_since(since)?;
            let current = locked.current()?;
            *turn.batch = Some(Batch::new(locked, current));
        }
        Ok(())
    }

    /// Decides a request without a lock, and writes nothing.
    ///
    /// # Errors
    /// When the rules refuse it, or the file is not a valid blackboard.
    pub(crate) fn check<C: Operation>(&self, request: Request<C>) -> Result<C::Reply, StoreError> {
        let bytes = self.folder.read()?;
        let path = self.folder.state();
        let (text, _) = text_without_bom(&path, &bytes)?;
        let mut pending = PendingRequest::from(request);
        let scanned = match self.folder.is_own_version(&bytes) {
            true => load(&mut StateView::lazy(&path, text)?, &pending)?,
            false => None,
        };
        let board = match scanned {
            Some(board) => board,
            None => StateView::full(&path, text)?.state()?.board,
        };
        let _ = pending.decide(&board)?;
        Ok(pending.answer.ok_or_else(|| self.mismatch("the answer of the rules"))??)
    }

    /// Decides a command on the newest version. Writes it, with those that wait, or leaves it to the commands that follow.
    fn submit_in_turn(
        &self,
        mut turn: Turn<'_>,
        pending: &mut dyn Pending,
        host: &dyn Host,
    ) -> Result<Written, StoreError> {
        let decided = self.decide_in_turn(&mut turn, pending, host);
        let waits = matches!(decided, Ok((_, Place::Waiting)));
        let decided = decided.map(|(written, _)| written);
        let others_write =
            turn.batch.as_ref().is_some_and(|batch| batch.commands() > 0) && !turn.must_write();
        let notice = match (others_write, waits) {
            (true, false) => None,
            (true, true) => turn.wait(&self.folder.state())?,
            (false, true) => turn.write()?,
            (false, false) => {
                // The others learn how their write went; it does not concern this command.
                let _ = turn.write();
                None
            }
        };
        let mut written = decided?;
        written.notices.extend(notice);
        Ok(written)
    }

    fn decide_in_turn(
        &self,
        turn: &mut Turn<'_>,
        pending: &mut dyn Pending,
        host: &dyn Host,
    ) -> Result<(Written, Place), StoreError> {
        let Some(batch) = turn.batch.as_mut() else { return Err(self.mismatch("the lock")) };
        if batch.on_disk.origin == (Origin::Ours { scannable: true })
            && let Some(written) = self.submit_lazily(batch, pending, host)?
        {
            let place = if written.changed { Place::Waiting } else { Place::Done };
            return Ok((written, place));
        }
        // It is written alone, after those that wait.
        if batch.commands() > 0 {
            let _ = turn.write();
            self.lock_for(turn, Instant::now())?;
        }
        let Some(mut batch) = turn.batch.take() else { return Err(self.mismatch("the lock")) };
        let written = self.submit_carefully(&mut batch.locked, &batch.on_disk, pending, host)?;
        Ok((written, Place::Done))
    }

    /// For a version that we wrote: scans lines for the summaries, and parses only what the command needs. `None` if the
    /// whole file has to be parsed.
    fn submit_lazily(
        &self,
        batch: &mut Batch,
        pending: &mut dyn Pending,
        host: &dyn Host,
    ) -> Result<Option<Written>, StoreError> {
        let path = self.folder.state();
        let (bytes, revision) = batch.newest();
        let (text, bom) = text_without_bom(&path, bytes)?;
        let mut view = StateView::lazy(&path, text)?;
        view.check_version()?;
        let Some(mut board) = load(&mut view, pending)? else { return Ok(None) };
        board.revision = board.revision.max(Revision(revision));
        let mut change = self.decide(&board, pending, host)?;
        let notices = if batch.commands() == 0 { batch.on_disk.notices.clone() } else { Vec::new() };
        if change.is_empty() {
            return Ok(Some(Written::new(board.revision, false, change.effects, notices)));
        }
        add_missing_sprint(&mut change, &view, pending.now());
        let ops = codec::operations(&board, &change).map_err(|error| self.not_encoded(error))?;
        let spliced =
            codec::splice(&view, &ops).ok().filter(|spliced| codec::reads_back(&view, spliced, &ops));
        let Some(spliced) = spliced.filter(|spliced| !spliced.rewritten) else { return Ok(None) };
        archive::store(self.folder.path(), &view, &board, &change)?;
        let log = self.log_texts(&change.log, change.revision)?;
        let after = with_bom(&bytes[..bom], spliced.text);
        batch.add(after, change.revision.0, &shifted(&spliced.edits, bom), log);
        Ok(Some(Written::new(change.revision, true, change.effects, notices)))
    }

    /// For a version that a person edited: parses the whole file before and after.
    fn submit_carefully(
        &self,
        locked: &mut LockedFolder,
        current: &CurrentFile,
        pending: &mut dyn Pending,
        host: &dyn Host,
    ) -> Result<Written, StoreError> {
        let path = self.folder.state();
        let (text, bom) = text_without_bom(&path, &current.bytes)?;
        let mut view = StateView::full(&path, text)?;
        view.check_version()?;
        let mut state = view.state()?;
        state.board.revision = state.board.revision.max(Revision(current.revision));
        let mut change = self.decide(&state.board, pending, host)?;
        if change.is_empty() {
            let notices = current.notices.clone();
            return Ok(Written::new(state.board.revision, false, change.effects, notices));
        }
        add_missing_sprint(&mut change, &view, pending.now());
        let value = view.tree.as_ref().map(plain_value);
        let edit = direct_edit::find(&path, current, value.as_ref());
        let edit = direct_edit::record(edit, &state.board, &mut change, pending.now());
        let ops = codec::operations(&state.board, &change).map_err(|error| self.not_encoded(error))?;
        let mut intended = state.clone();
        intended.apply(&change);
        let (spliced, scannable) = verified_text(&path, &view, &ops, &intended)?;
        archive::store(self.folder.path(), &view, &state.board, &change)?;
        let text = NewText { bom, spliced, scannable };
        self.write(locked, current, text, (change, edit), pending.now())
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

    fn write(
        &self,
        locked: &mut LockedFolder,
        current: &CurrentFile,
        NewText { bom, spliced, scannable }: NewText,
        (change, edit): (Change, Option<LogEntry>),
        now: Timestamp,
    ) -> Result<Written, StoreError> {
        let mut log = self.log_texts(edit.iter().chain(&change.log), change.revision)?;
        let rewritten = match spliced.rewritten {
            true => Some(self.keep_before_rewrite(locked, &current.bytes, now, change.revision, &mut log)?),
            false => None,
        };
        let after = with_bom(&current.bytes[..bom], spliced.text);
        let edits = shifted(&spliced.edits, bom);
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
        let notices = current.notices.iter().cloned().chain(rewritten).chain(notice).collect();
        Ok(Written::new(change.revision, true, change.effects, notices))
    }
}

/// A text with the byte order mark of the version before it.
fn with_bom(bom: &[u8], text: String) -> Vec<u8> {
    if bom.is_empty() { text.into_bytes() } else { [bom, text.as_bytes()].concat() }
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

//! Commands: decided under the lock on the project, on the rows that they need, and committed.
//!
//! Two round trips hold the lock: one takes it and reads, one writes and commits. A command that turns out to need more
//! rows than it asked for lets the lock go and begins again.

use std::thread;
use std::time::Instant;

use liza_core::model::{Actor, AgentId, Board, Change, Revision, StopFiles, TaskId, Timestamp};
use liza_core::protocol::{Operation, Pending, PendingRequest, Request};
use liza_core::rules::invariants;

use super::DatabaseStore;
use super::batch::{Batch, CommitOutcome, Turn};
use super::board::{board_of, overlay, wanted_by};
use super::fault::{is_conflict, may_be_committed};
use super::load::{self, ProjectRow};
use super::lost_answer::{FIRST_PAUSE, LONGEST_PAUSE};
use super::request::{self, RequestId};
use super::rows::{EntryRow, LISTS, Rows, TASKS, list_entry};
use super::write::Statements;
use crate::archive;
use crate::call::{Call, Host, Outcome, Written};
use crate::codec::{self, Op, StateView};
use crate::database_error::{DatabaseError, DatabaseReason};
use crate::disk::ProjectDisk;
use crate::error::StoreError;
use crate::file_store::entry_text;
use crate::verify::{mismatch, not_encoded};
use crate::yaml::to_value;

/// How often a command begins again because it needs other rows, or because others were in the way.
const RESTARTS: usize = 20;

/// How many requests are written between two clean-ups of old ones.
const CLEAN_UP_EVERY: u64 = 256;

/// A command on its way, whatever its type.
pub(super) trait Job: Pending {
    /// Sets what is known only under the lock.
    fn set_facts(&mut self, now: Timestamp, stop_files: StopFiles);
    /// What distinguishes the command from another one under the same request ID.
    fn fingerprint(&self) -> String;
    /// The answer as text, for one who asks again.
    fn answer(&self) -> String;
    /// The agent that sends it.
    fn sender(&self) -> Option<AgentId>;
}

/// A command on its way; time and stop files are set under the lock.
pub(super) fn job<C: Operation>(call: Call<C>) -> PendingRequest<C> {
    let Call { actor, if_revision, command } = call;
    let (now, stop_files) = (Timestamp::from_unix(0), StopFiles::default());
    PendingRequest::from(Request { actor, now, stop_files, if_revision, command })
}

impl<C: Operation> Job for PendingRequest<C> {
    fn set_facts(&mut self, now: Timestamp, stop_files: StopFiles) {
        (self.request.now, self.request.stop_files) = (now, stop_files);
    }

    fn fingerprint(&self) -> String {
        let Request { actor, if_revision, command, .. } = &self.request;
        let text = format!("{actor:?} {if_revision:?} {command:?}");
        format!("{} {:016x}", command.verb(), xxhash_rust::xxh3::xxh3_64(text.as_bytes()))
    }

    fn answer(&self) -> String {
        match &self.answer {
            Some(Ok(reply)) => to_value(reply).map(|value| value.to_string()).unwrap_or_default(),
            Some(Err(refusal)) => refusal.to_string(),
            None => String::new(),
        }
    }

    fn sender(&self) -> Option<AgentId> {
        Actor::agent(&self.request.actor)
    }
}

/// The request that a job carries out.
pub(super) struct RequestMark {
    id: String,
    fingerprint: String,
}

/// Why an attempt did not succeed.
enum Setback {
    /// It needs other rows, or others were in the way: at once again.
    Again,
    /// It may have been written.
    Unknown(Box<(DatabaseError, Written)>),
    /// It failed for good, or until the database is well again.
    Failed(StoreError),
}

impl From<StoreError> for Setback {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl From<DatabaseError> for Setback {
    fn from(error: DatabaseError) -> Self {
        Self::Failed(error.into())
    }
}

impl DatabaseStore {
    /// Decides a command and writes what it changes.
    pub(crate) fn submit<C: Operation>(
        &self,
        call: Call<C>,
        host: &dyn Host,
    ) -> Result<Outcome<C::Reply>, StoreError> {
        let mut job = job(call);
        if job.request.command.verb() == "heartbeat"
            && let Some(written) = self.renew(&mut job)?
        {
            return self.outcome(job, written);
        }
        self.submit_as(&RequestId::new(), job, host)
    }

    /// Decides a command under a request ID that may have been used before.
    pub(crate) fn submit_request<C: Operation>(
        &self,
        id: &RequestId,
        call: Call<C>,
        host: &dyn Host,
    ) -> Result<Outcome<C::Reply>, StoreError> {
        let job = job(call);
        self.check_request(id, &job.fingerprint())?;
        self.submit_as(id, job, host)
    }

    fn submit_as<C: Operation>(
        &self,
        id: &RequestId,
        mut job: PendingRequest<C>,
        host: &dyn Host,
    ) -> Result<Outcome<C::Reply>, StoreError> {
        let started = Instant::now();
        let mark = RequestMark { id: id.to_string(), fingerprint: job.fingerprint() };
        let written = self.submit_job(&mut job, &mark, host)?;
        self.outcome(job, Written { waited: started.elapsed(), ..written })
    }

    fn outcome<C: Operation>(
        &self,
        job: PendingRequest<C>,
        written: Written,
    ) -> Result<Outcome<C::Reply>, StoreError> {
        let answer = job.answer.ok_or_else(|| mismatch(self.path(), "the answer of the rules"))?;
        Ok(Outcome { answer, written })
    }

    /// Tries until it is written, refused, or the time for retries is over.
    fn submit_job(
        &self,
        job: &mut dyn Job,
        mark: &RequestMark,
        host: &dyn Host,
    ) -> Result<Written, StoreError> {
        let deadline = Instant::now() + self.retry_limit();
        let (mut restarts, mut pause) = (0, FIRST_PAUSE);
        loop {
            match self.try_submit(job, mark, host) {
                Ok(written) => return Ok(written),
                Err(Setback::Again) if restarts < RESTARTS => {
                    restarts += 1;
                    continue;
                }
                Err(Setback::Again) => {
                    let reason = DatabaseReason::Slow;
                    return Err(self.error(reason, "other writes were always faster").into());
                }
                Err(Setback::Unknown(lost)) => {
                    let (error, written) = *lost;
                    if self.was_committed(&mark.id, deadline, &error)? {
                        return Ok(written);
                    }
                    if Instant::now() >= deadline {
                        return Err(error.into());
                    }
                }
                Err(Setback::Failed(StoreError::Database(error)))
                    if error.reason.is_passing() && Instant::now() < deadline => {}
                Err(Setback::Failed(error)) => return Err(error),
            }
            thread::sleep(pause.min(deadline.saturating_duration_since(Instant::now())));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn try_submit(&self, job: &mut dyn Job, mark: &RequestMark, host: &dyn Host) -> Result<Written, Setback> {
        let wanted = wanted_by(job, &self.known_board());
        let mut turn = self.queue().enter(&wanted);
        if turn.batch.as_ref().is_some_and(|batch| !batch.wanted.covers(&wanted)) {
            // It came after the rows were read. Those before it are committed; it begins the next transaction.
            turn.finish(|batch| self.commit(batch));
        }
        if turn.batch.is_none() {
            let wanted = turn.wanted(wanted);
            *turn.batch = Some(self.begin(wanted)?);
        }
        let decided = self.decide_in_turn(&mut turn, job, mark, host);
        let waits = matches!(&decided, Ok(written) if written.changed);
        let has_commands = turn.batch.as_ref().is_some_and(|batch| batch.commands > 0);
        let outcome = match (has_commands, turn.must_commit()) {
            (true, false) if waits => Some(turn.wait(|batch| self.commit(batch))),
            (true, false) => None,
            (true, true) => Some(turn.finish(|batch| self.commit(batch))),
            (false, _) => {
                turn.finish(|batch| self.roll_back(batch));
                None
            }
        };
        // How the write of the others went does not concern a command that wrote nothing.
        let written = decided?;
        match outcome.filter(|_| waits) {
            None | Some(CommitOutcome::Committed) => Ok(written),
            Some(CommitOutcome::RolledBack) => Err(Setback::Again),
            Some(CommitOutcome::Unknown(error)) => Err(Setback::Unknown(Box::new((error, written)))),
            Some(CommitOutcome::Failed(error)) => Err(error.into()),
        }
    }

    /// Takes the lock on the project and reads what is wanted.
    fn begin(&self, wanted: load::Wanted) -> Result<Batch, Setback> {
        let (project, mut connection) = self.connect()?;
        let sql = load::lock_statements(project, &wanted, connection.timeline());
        let results = match connection.begin(&sql) {
            Ok(results) => results,
            Err(error) => {
                connection.roll_back();
                let setback = if is_conflict(&error) { Setback::Again } else { self.fault(&error).into() };
                self.pool().put(connection);
                return Err(setback);
            }
        };
        let loaded = self.checked(results.get(load::LOCK_LEAD..).unwrap_or_default(), load::LOCK_GAP);
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                connection.roll_back();
                self.pool().put(connection);
                return Err(error.into());
            }
        };
        let server = connection.server(&loaded.timeline);
        let clock = self.clock_of(&loaded, &server);
        Ok(Batch::new(connection, loaded, wanted, clock, Statements::new(project)))
    }

    fn decide_in_turn(
        &self,
        turn: &mut Turn<'_>,
        job: &mut dyn Job,
        mark: &RequestMark,
        host: &dyn Host,
    ) -> Result<Written, Setback> {
        let Some(batch) = turn.batch.as_mut() else { return Err(Setback::Again) };
        let revision = batch.loaded.project.revision;
        let text = batch.loaded.rows.text(revision);
        let mut view = StateView::lazy(self.path(), &text)?;
        view.check_version()?;
        job.set_facts(batch.clock.now(), union(batch.loaded.stop_files, host.stop_files()));
        let mut board = board_of(self.path(), &mut view, job)?;
        board.revision = Revision(revision);
        overlay(&mut board, &batch.loaded.heartbeats, &batch.clock);
        if !batch.wanted.covers(&wanted_by(job, &board)) {
            self.remember(board);
            return Err(Setback::Again);
        }
        let mut change = self.decide(&board, job, host)?;
        if change.is_empty() {
            return Ok(Written::new(board.revision, false, change.effects, Vec::new()));
        }
        if change.sprint.is_none() {
            change.sprint = view.missing_sprint(job.now());
        }
        board.tasks.retain(|_, slot| slot.body.is_some());
        self.write_rows(batch, &board, &change)?;
        let now = job.now();
        let statements = &mut batch.statements;
        statements.leases(&change, job.sender(), now);
        statements.add_stop_files(&change.stop_files, now);
        let log = change.log.iter().map(|entry| entry_text(entry, change.revision));
        let log = log.collect::<Result<Vec<_>, _>>().map_err(|error| not_encoded(self.path(), error))?;
        statements.log(&log, change.revision);
        statements.request(&mark.id, &mark.fingerprint, &job.answer(), change.revision, now);
        if change.revision.0.is_multiple_of(CLEAN_UP_EVERY) {
            // A day more than they are promised.
            statements.forget_requests(now - request::KEPT - liza_core::model::Seconds(86_400));
        }
        let layout = if change.archived.is_empty() { batch.loaded.project.layout } else { change.revision.0 };
        batch.loaded.project = ProjectRow { revision: change.revision.0, layout, clock: batch.clock.clone() };
        update_heartbeats(&mut batch.loaded, &change);
        batch.commands += 1;
        Ok(Written::new(change.revision, true, change.effects, Vec::new()))
    }

    fn decide(&self, board: &Board, job: &mut dyn Job, host: &dyn Host) -> Result<Change, StoreError> {
        let mut change = job.decide(board)?;
        if let Some(entry) = &mut change.log {
            entry.detail = host.masked(&entry.detail);
        }
        let disk = ProjectDisk::of_several_machines(self.root());
        let violations = invariants::introduced(board, &change, &disk, job.now());
        if violations.is_empty() { Ok(change) } else { Err(StoreError::Violates(violations)) }
    }

    /// Adds the statements of a change: for the rows that it changes, and for what it archives. `board` has only the tasks
    /// that were loaded in full.
    fn write_rows(&self, batch: &mut Batch, board: &Board, change: &Change) -> Result<(), StoreError> {
        let is_loaded = |key: &str| key.parse().is_ok_and(|id: TaskId| board.tasks.contains_key(&id));
        let before = batch.loaded.rows.with_tasks(is_loaded);
        let text = before.text(batch.loaded.project.revision);
        let mut view = StateView::lazy(self.path(), &text)?;
        view.load_summaries(&mut Board::default(), None)?;
        let ops = codec::operations(board, change).map_err(|error| not_encoded(self.path(), error))?;
        // New and removed rows need no text around them.
        let (own, in_text): (Vec<Op>, Vec<Op>) = ops.into_iter().partition(is_whole_row);
        let spliced = codec::splice(&view, &in_text).ok();
        let spliced = spliced.filter(|spliced| codec::reads_back(&view, spliced, &in_text));
        let changed = match spliced {
            Some(spliced) => spliced.text,
            None => {
                let full = StateView::full(self.path(), &text)?;
                codec::rewrite(&full, &in_text).ok_or_else(|| mismatch(self.path(), "a section"))?
            }
        };
        let after = Rows::split(&changed).ok_or_else(|| mismatch(self.path(), "the rows"))?;
        batch.statements.rows(&before, &after, change.revision);
        batch.statements.archive(&archive::texts(&view, board, change), change.revision);
        batch.loaded.rows.update(after);
        for (n, op) in own.iter().enumerate() {
            write_whole_row(&mut batch.statements, &mut batch.loaded.rows, op, change.revision, n);
        }
        Ok(())
    }

    /// Sends the statements of all commands, and commits.
    fn commit(&self, batch: Batch) -> CommitOutcome {
        let Batch { mut connection, loaded, mut statements, .. } = batch;
        statements.project(&loaded.project);
        let sent = connection.end(&format!("{}COMMIT", statements.sql()));
        match sent {
            Ok(_) => {
                self.announce(&mut connection, loaded.project.revision);
                self.pool().put(connection);
                CommitOutcome::Committed
            }
            Err(error) if may_be_committed(&error) => CommitOutcome::Unknown(self.fault(&error)),
            Err(error) => {
                connection.roll_back();
                self.pool().put(connection);
                match is_conflict(&error) {
                    true => CommitOutcome::RolledBack,
                    false => CommitOutcome::Failed(self.fault(&error)),
                }
            }
        }
    }

    fn roll_back(&self, batch: Batch) -> CommitOutcome {
        self.pool().put(batch.connection);
        CommitOutcome::RolledBack
    }

    /// Refuses a request ID that was used before, or that is too old.
    fn check_request(&self, id: &RequestId, fingerprint: &str) -> Result<(), StoreError> {
        let found = self.request_row(&id.to_string())?;
        let now = self.now()?;
        let reason = match found {
            Some((command, _, _)) if command != fingerprint => DatabaseReason::RequestReused,
            Some((_, revision, answer)) => {
                let detail = format!("revision {revision}, answer: {answer}");
                return Err(self.error(DatabaseReason::RequestRepeated, detail).into());
            }
            None if id.is_too_old(now) => DatabaseReason::RequestTooOld,
            None => return Ok(()),
        };
        Err(self.error(reason, String::new()).into())
    }
}

/// Stop files that are rows, and those in the folder that are not yet.
pub(super) fn union(one: StopFiles, other: StopFiles) -> StopFiles {
    StopFiles {
        pause: one.pause || other.pause,
        checkpoint: one.checkpoint || other.checkpoint,
        abort: one.abort || other.abort,
    }
}

/// Whether an operation adds or removes whole rows.
fn is_whole_row(op: &Op) -> bool {
    match op {
        Op::AddTask { .. } | Op::RemoveTask { .. } => true,
        Op::Append { section, key: None, .. } => LISTS.contains(section),
        Op::Append { .. } | Op::ChangeTask { .. } | Op::Change { .. } | Op::Replace { .. } => false,
    }
}

fn write_whole_row(statements: &mut Statements, rows: &mut Rows, op: &Op, revision: Revision, n: usize) {
    let mut put = |section: &str, entry: EntryRow, n: usize| {
        statements.entry(section, &entry, Statements::position(revision, n), revision);
        // Lists are not loaded.
        if let Some(section) = rows.0.iter_mut().find(|known| known.name == section && section == TASKS) {
            section.entries.push(entry);
        }
    };
    match op {
        Op::AddTask { id, new } => {
            put(TASKS, EntryRow { key: id.to_string(), text: list_entry(new), whole: true }, n);
        }
        Op::RemoveTask { id, .. } => {
            statements.remove_entry(TASKS, id.as_str());
            if let Some(section) = rows.0.iter_mut().find(|section| section.name == TASKS) {
                section.entries.retain(|entry| entry.key != id.as_str());
            }
        }
        Op::Append { section, new, .. } => {
            for (item, value) in new.iter().enumerate() {
                let key = format!("{revision}.{n}.{item}");
                put(section, EntryRow { key, text: list_entry(value), whole: true }, n + item);
            }
        }
        Op::ChangeTask { .. } | Op::Change { .. } | Op::Replace { .. } => {}
    }
}

/// The leases as the next command of the batch has to see them.
fn update_heartbeats(loaded: &mut load::LoadedRows, change: &Change) {
    for (id, entry) in &change.agents {
        let name = id.to_string();
        loaded.heartbeats.retain(|row| row.agent != name);
        if let Some(entry) = entry
            && let Some(expires) = entry.lease_expires
        {
            loaded.heartbeats.push(load::HeartbeatRow {
                agent: name,
                generation: i64::try_from(entry.generation.unwrap_or_default().0).unwrap_or(0),
                lease_expires: expires.unix(),
                heartbeat: entry.heartbeat.map_or(0, Timestamp::unix),
            });
        }
    }
}

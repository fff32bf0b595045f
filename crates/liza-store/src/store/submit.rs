//! Commands: decided under the lock on the parts that they need, and written; the same for every back end. A
//! version that we wrote is scanned by lines, one that a person edited is parsed in full. A command that
//! conflicts with others, or needs more than was loaded, begins again.

use std::thread;
use std::time::{Duration, Instant};

use liza_core::model::{Board, Change, State};
use liza_core::protocol::{Operation, Pending as _, PendingRequest, Request};
use liza_core::rules::invariants;

use super::Store;
use super::queue::{Batch, Turn};
use crate::backend::{Decided, Job, LoadScope, Setback, pending};
use crate::call::{Call, Host, Outcome, Written};
use crate::codec::verify::mismatch;
use crate::codec::{StateView, load, text_without_bom};
use crate::database::RequestId;
use crate::error::StoreError;

/// The most attempts of a command that conflicts with others, or needs other parts.
pub(super) const RESTARTS: usize = 20;

/// The first pause before a retry, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

struct Submission<'s> {
    job: &'s mut dyn Job,
    request: &'s RequestId,
    host: &'s dyn Host,
    started: Instant,
    waited: Option<Duration>,
    /// The outcome of the last attempt, if its write may have succeeded.
    decided: Option<Written>,
}

impl Store {
    /// Decides a command and writes what it changes. In a database the time is the database's.
    pub fn submit<C: Operation>(
        &self,
        call: Call<C>,
        host: &dyn Host,
    ) -> Result<Outcome<C::Reply>, StoreError> {
        let mut job = pending(call);
        if let Some(database) = self.backend.database()
            && job.is_heartbeat()
            && let Some(written) = database.renew(&mut job)?
        {
            return Ok(Outcome { answer: self.answer(job)?, written });
        }
        self.submit_as(&RequestId::new(), job, host)
    }

    /// Decides a command under an ID that is repeated if the answer was lost. In a database, a second call
    /// with the same ID and command fails with the first answer; another command is refused. A file has no
    /// request IDs.
    pub fn submit_request<C: Operation>(
        &self,
        id: &RequestId,
        call: Call<C>,
        host: &dyn Host,
    ) -> Result<Outcome<C::Reply>, StoreError> {
        let job = pending(call);
        if let Some(database) = self.backend.database() {
            database.check_request(id, &job.fingerprint())?;
        }
        self.submit_as(id, job, host)
    }

    /// Decides a request without a lock, and writes nothing.
    pub fn check<C: Operation>(&self, request: Request<C>) -> Result<C::Reply, StoreError> {
        let mut job = PendingRequest::from(request);
        let board = self.backend.board_for(&mut job)?;
        let _ = job.decide(&board)?;
        Ok(self.answer(job)??)
    }

    fn submit_as<C: Operation>(
        &self,
        request: &RequestId,
        mut job: PendingRequest<C>,
        host: &dyn Host,
    ) -> Result<Outcome<C::Reply>, StoreError> {
        let started = Instant::now();
        let mut submission =
            Submission { job: &mut job, request, host, started, waited: None, decided: None };
        let written = self.submit_until_written(&mut submission)?;
        let waited = submission.waited.unwrap_or_default();
        Ok(Outcome { answer: self.answer(job)?, written: Written { waited, ..written } })
    }

    fn answer<C: Operation>(
        &self,
        job: PendingRequest<C>,
    ) -> Result<Result<C::Reply, liza_core::model::Refusal>, StoreError> {
        job.answer.ok_or_else(|| mismatch(&self.backend.path(), "the answer of the rules"))
    }

    /// Tries until it is written, refused, or the time for retries is over.
    fn submit_until_written(&self, submission: &mut Submission<'_>) -> Result<Written, StoreError> {
        let database = self.backend.database();
        let deadline =
            submission.started + database.map(|database| database.retry_limit()).unwrap_or_default();
        let (mut restarts, mut pause) = (0, FIRST_PAUSE);
        loop {
            match self.try_submit(submission) {
                Ok(written) => return Ok(written),
                Err(Setback::Again) => {
                    restarts += 1;
                    if restarts >= RESTARTS {
                        return Err(self.backend.overtaken());
                    }
                    continue;
                }
                Err(Setback::Unknown(error)) => {
                    let is_written = match database {
                        Some(database) => database.was_committed(submission.request, deadline, &error)?,
                        None => false,
                    };
                    if let Some(written) = submission.decided.take().filter(|_| is_written) {
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

    /// Decides a command on the newest version. Writes it with the waiting ones, or leaves that to the next
    /// ones.
    fn try_submit(&self, submission: &mut Submission<'_>) -> Result<Written, Setback> {
        let scope = self.backend.scope(submission.job);
        let mut turn = self.queue.enter(&scope);
        if turn.batch.as_ref().is_some_and(|batch| !batch.scope.covers(&scope)) {
            // It came after the parts were loaded. Those before it are written; it begins the next transaction.
            let _ = turn.write();
        }
        let decided = self
            .lock_for(&mut turn, scope, submission.started)
            .and_then(|()| self.decide_in_turn(&mut turn, submission));
        let waits = matches!(&decided, Ok(written) if written.changed);
        let outcome = match (turn.commands() > 0 && !turn.must_write(), waits) {
            (true, true) => turn.wait(),
            (true, false) => Ok(None),
            // A command that wrote nothing ignores the result of the others' write.
            (false, false) => turn.write().or(Ok(None)),
            (false, true) => turn.write(),
        };
        let mut written = decided?;
        match outcome {
            Ok(notice) => {
                written.notices.extend(notice);
                Ok(written)
            }
            Err(setback) => {
                submission.decided = Some(written);
                Err(setback)
            }
        }
    }

    /// Takes the lock, unless commands that wait to be written hold it already.
    fn lock_for(&self, turn: &mut Turn<'_>, scope: LoadScope, since: Instant) -> Result<(), Setback> {
        if turn.batch.is_none() {
            let scope = turn.scope(scope);
            *turn.batch = Some(Batch::new(self.backend.lock(&scope, since)?, scope, self.backend.path()));
        }
        Ok(())
    }

    fn decide_in_turn(
        &self,
        turn: &mut Turn<'_>,
        submission: &mut Submission<'_>,
    ) -> Result<Written, Setback> {
        submission.waited.get_or_insert_with(|| submission.started.elapsed());
        let Some(batch) = turn.batch.as_mut() else { return Err(Setback::Again) };
        if let Some(written) = self.decide(batch, submission, false)? {
            return Ok(written);
        }
        // It needs the whole version, and is written alone, after those that wait.
        if !batch.scope.is_whole() {
            return Err(mismatch(&self.backend.path(), "what was loaded").into());
        }
        if batch.commands > 0 {
            let _ = turn.write();
            self.lock_for(turn, LoadScope::everything(), Instant::now())?;
        }
        let Some(batch) = turn.batch.as_mut() else { return Err(Setback::Again) };
        let decided = self.decide(batch, submission, true)?;
        decided.ok_or_else(|| mismatch(&self.backend.path(), "the file").into())
    }

    /// Decides a command on the newest version, or a part of it, and adds its change. `None` if it needs more.
    fn decide(
        &self,
        batch: &mut Batch,
        Submission { job, request, host, .. }: &mut Submission<'_>,
        is_whole: bool,
    ) -> Result<Option<Written>, Setback> {
        let (path, version) = (self.backend.path(), batch.transaction.version());
        if !version.scannable && !is_whole {
            return Ok(None);
        }
        let (text, mark) = text_without_bom(&path, &version.bytes)?;
        let mut view = if is_whole { StateView::full(&path, text)? } else { StateView::lazy(&path, text)? };
        view.check_version()?;
        let (now, stop_files) = batch.transaction.facts(*host);
        job.set_facts(now, stop_files);
        let loaded = match is_whole {
            true => Some(view.state()?),
            false => load(&mut view, *job)?.map(|board| State { board, ..State::default() }),
        };
        let Some(mut state) = loaded else { return Ok(None) };
        batch.transaction.complete(&mut state.board);
        let is_enough =
            batch.scope.is_whole() || batch.scope.covers(&LoadScope::needed_by(*job, &state.board));
        if !is_enough {
            batch.transaction.remember(state.board);
            return Err(Setback::Again);
        }
        let mut change = self.allowed_change(&state.board, *job, *host)?;
        batch.transaction.create_stop_files(*host, &change.stop_files, now)?;
        let mut notices = if batch.commands == 0 { batch.transaction.notices() } else { Vec::new() };
        if change.is_empty() {
            return Ok(Some(Written::new(state.board.revision, false, change.effects, notices)));
        }
        if change.sprint.is_none() {
            change.sprint = view.missing_sprint(now);
        }
        let (revision, effects) = (change.revision, std::mem::take(&mut change.effects));
        let mark = &version.bytes[..mark];
        let decided = Decided { state, change, job: *job, request, view: &view, mark, is_whole };
        let Some(added) = batch.transaction.add(decided)? else { return Ok(None) };
        batch.commands += 1;
        notices.extend(added);
        Ok(Some(Written::new(revision, true, effects, notices)))
    }

    /// The change that the rules decide on, if it breaks no invariant.
    fn allowed_change(
        &self,
        board: &Board,
        job: &mut dyn Job,
        host: &dyn Host,
    ) -> Result<Change, StoreError> {
        let mut change = job.decide(board)?;
        if let Some(entry) = &mut change.log {
            entry.detail = host.masked(&entry.detail);
        }
        let violations = invariants::introduced(board, &change, &self.backend.disk(), job.now());
        if violations.is_empty() { Ok(change) } else { Err(StoreError::Violates(violations)) }
    }
}

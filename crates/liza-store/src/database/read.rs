//! Reads without the lock: the whole blackboard, parts of it, its text, and repeated reads.

use std::sync::Arc;

use liza_core::model::{Board, Revision, Section, State, TaskId, Value};
use liza_core::protocol::{Operation, Request};
use liza_core::rules::misspelled::{MisspelledKey, misspelled_keys};

use super::DatabaseStore;
use super::board::{board_of, overlay, state_of, wanted_by};
use super::load::{self, HeartbeatRow, LoadedRows, ProjectRow, TaskExtent, Wanted};
use super::submit::{Job as _, job};
use super::time::Clock;
use crate::call::Call;
use crate::codec::{self, StateView};
use crate::document::plain_value;
use crate::error::StoreError;
use crate::value_path::ValuePath;
use crate::verify::{mismatch, not_encoded};

/// How often a read follows what a command needs.
const STEPS: usize = 5;

impl DatabaseStore {
    /// The rows, all of one moment.
    pub(super) fn load(&self, wanted: &Wanted) -> Result<LoadedRows, StoreError> {
        let results = self.query(|project| load::snapshot_statements(project, wanted))?;
        Ok(self.checked(results.get(load::SNAPSHOT_LEAD..).unwrap_or_default(), 0)?)
    }

    /// The whole blackboard.
    pub(crate) fn snapshot(&self) -> Result<State, StoreError> {
        let loaded = self.load(&Wanted::everything())?;
        let state = state_of(self.path(), &loaded, &self.clock_of(&loaded, ""))?;
        self.remember(state.board.clone());
        Ok(state)
    }

    /// The whole blackboard, if a command could write it, and its keys that are probably misspelled.
    pub(crate) fn writable_snapshot(&self) -> Result<(State, Vec<MisspelledKey>), StoreError> {
        let loaded = self.load(&Wanted::everything())?;
        let text = loaded.rows.text(loaded.project.revision);
        let view = StateView::full(self.path(), &text)?;
        view.check_version()?;
        let misspelled = view.tree.as_ref().map(|tree| misspelled_keys(&plain_value(tree)));
        let state = state_of(self.path(), &loaded, &self.clock_of(&loaded, ""))?;
        Ok((state, misspelled.unwrap_or_default()))
    }

    /// The blackboard as the file would have it, with the leases as they are now.
    pub(crate) fn text(&self) -> Result<String, StoreError> {
        Ok(self.text_and_revision()?.0)
    }

    pub(super) fn text_and_revision(&self) -> Result<(String, Revision), StoreError> {
        let loaded = self.load(&Wanted::everything())?;
        let revision = Revision(loaded.project.revision);
        let text = loaded.rows.text(revision.0);
        let renewed = self.with_leases(&text, &loaded, &self.clock_of(&loaded, ""))?;
        Ok((renewed.unwrap_or(text), revision))
    }

    /// The text with the leases that heartbeats have renewed; none if it cannot be changed in place.
    fn with_leases(
        &self,
        text: &str,
        loaded: &LoadedRows,
        clock: &Clock,
    ) -> Result<Option<String>, StoreError> {
        let mut view = StateView::lazy(self.path(), text)?;
        let before = view.state()?.board;
        let mut after = before.clone();
        overlay(&mut after, &loaded.heartbeats, clock);
        let mut change = liza_core::model::Change { revision: before.revision, ..Default::default() };
        let (old, new) = (before.agents.ready(), after.agents.ready());
        for (id, entry) in new.into_iter().flatten() {
            if old.and_then(|old| old.get(id)) != Some(entry) {
                change.agents.insert(*id, Some(entry.clone()));
            }
        }
        for (id, slot) in &after.tasks {
            let record =
                |slot: &liza_core::model::TaskSlot| slot.body.as_ref().map(|body| body.record().clone());
            if before.tasks.get(id).map(record) != Some(record(slot)) {
                change.tasks.extend(record(slot).map(|record| (id.clone(), record)));
            }
        }
        let ops = codec::operations(&before, &change).map_err(|error| not_encoded(self.path(), error))?;
        Ok(codec::splice(&view, &ops).ok().map(|spliced| spliced.text))
    }

    /// Parts of the blackboard: these sections, and these tasks in full.
    pub(crate) fn read_parts(&self, sections: &[Section], tasks: &[TaskId]) -> Result<Board, StoreError> {
        let names = sections.iter().map(|section| section.key());
        let loaded = self.load(&Wanted::of(names, TaskExtent::Named, tasks.iter().cloned()))?;
        let text = loaded.rows.text(loaded.project.revision);
        let mut view = StateView::lazy(self.path(), &text)?;
        let mut board = view.board()?;
        view.load_sections(&mut board, sections);
        // The agents have the leases of the tasks.
        view.load_sections(&mut board, &[Section::Agents]);
        view.load_summaries(&mut board, Some(tasks))?;
        view.load_bodies(&mut board, tasks)?;
        board.revision = Revision(loaded.project.revision);
        overlay(&mut board, &loaded.heartbeats, &self.clock_of(&loaded, ""));
        if !sections.contains(&Section::Agents) {
            board.agents = Default::default();
        }
        Ok(board)
    }

    /// The values that match a path.
    pub(crate) fn read_path(&self, path: &str) -> Result<Vec<Value>, StoreError> {
        let path: ValuePath = path.parse()?;
        let text = self.text()?;
        let view = StateView::own_tree(self.path(), &text)?;
        let root = view.tree.as_ref().map(plain_value).unwrap_or(Value::Null);
        Ok(path.find(&root).into_iter().cloned().collect())
    }

    /// Decides a request without a lock, and writes nothing.
    pub(crate) fn check<C: Operation>(&self, request: Request<C>) -> Result<C::Reply, StoreError> {
        let Request { actor, stop_files, if_revision, command, .. } = request;
        let mut job = job(Call { actor, if_revision, command });
        let (board, loaded, clock) = self.board_for(&mut job)?;
        job.set_facts(clock.now(), super::submit::union(loaded.stop_files, stop_files));
        let _ = liza_core::protocol::Pending::decide(&mut job, &board)?;
        Ok(job.answer.ok_or_else(|| mismatch(self.path(), "the answer of the rules"))??)
    }

    /// The board that a command needs, read without the lock.
    pub(super) fn board_for(
        &self,
        job: &mut dyn super::submit::Job,
    ) -> Result<(Board, LoadedRows, Clock), StoreError> {
        let mut wanted = wanted_by(job, &self.known_board());
        for _ in 0..STEPS {
            let loaded = self.load(&wanted)?;
            let clock = self.clock_of(&loaded, "");
            job.set_facts(clock.now(), loaded.stop_files);
            let text = loaded.rows.text(loaded.project.revision);
            let mut view = StateView::lazy(self.path(), &text)?;
            let mut board = board_of(self.path(), &mut view, job)?;
            board.revision = Revision(loaded.project.revision);
            overlay(&mut board, &loaded.heartbeats, &clock);
            let needed = wanted_by(job, &board);
            if wanted.covers(&needed) {
                return Ok((board, loaded, clock));
            }
            wanted = wanted.and(needed);
        }
        Err(mismatch(self.path(), "what the command needs"))
    }

    /// A reader that keeps the last state.
    pub(crate) fn incremental_reader(&self) -> DatabaseReader {
        DatabaseReader { store: self.clone(), last: None }
    }
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

impl DatabaseReader {
    /// The same state as [`DatabaseStore::snapshot`], and the same `Arc` as before if nothing has changed.
    pub(crate) fn read(&mut self) -> Result<Arc<State>, StoreError> {
        if let Some(last) = &self.last {
            let wanted = Wanted::of([], TaskExtent::Named, []);
            let now = self.store.load(&wanted)?;
            // Notes how far this machine's clock is off.
            let _ = self.store.clock_of(&now, "");
            if now.project == last.project && now.heartbeats == last.heartbeats && !last.held {
                return Ok(last.state.clone());
            }
        }
        let loaded = self.store.load(&Wanted::everything())?;
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

//! The tasks of a sprint, with facts from each task's history.

use std::collections::BTreeSet;

use liza_core::model::{
    EventName, HistoryEvent, Seconds, Sprint, State, Status, TaskId, TaskRecord, Timestamp, Usage, Value,
};
use liza_core::rules::sprint::planned_with_replacements;

#[derive(Debug, Clone)]
pub(crate) struct SprintTask<'a> {
    pub id: TaskId,
    pub status: Option<Status>,
    /// `None` if it is in the archive.
    pub record: Option<&'a TaskRecord>,
    /// True if it counts: planned, or the replacement of a planned task.
    pub planned: bool,
    pub stretch: bool,
}

/// The tasks of the current sprint: planned, replacements, stretch, and every other open task.
pub(super) fn sprint_tasks<'a>(state: &'a State, sprint: &Sprint) -> Vec<SprintTask<'a>> {
    let planned = planned_with_replacements(&state.board, sprint);
    let stretch: BTreeSet<&TaskId> = sprint.scope.stretch.iter().collect();
    let of = |id: &TaskId| {
        let status = state.board.status(id);
        let record = state.board.body(id).ok().map(|body| body.record());
        let (planned, stretch) = (planned.contains(id), stretch.contains(id));
        SprintTask { id: id.clone(), status, record, planned, stretch: stretch && !planned }
    };
    let live = state.board.tasks.keys().map(&of);
    let archived = state.board.archived.keys().filter(|id| !state.board.tasks.contains_key(*id)).map(&of);
    let belongs = |task: &SprintTask<'_>| {
        task.planned || task.stretch || (task.record.is_some() && !task.is_finished())
    };
    live.chain(archived).filter(belongs).collect()
}

impl<'a> SprintTask<'a> {
    pub(crate) fn is_finished(&self) -> bool {
        self.status.is_some_and(Status::is_terminal)
    }

    pub(crate) fn history(&self) -> impl Iterator<Item = &'a HistoryEvent> + use<'a> {
        self.record.and_then(|record| record.history.as_deref()).unwrap_or_default().iter()
    }

    pub(crate) fn events(&self, name: EventName) -> impl Iterator<Item = &'a HistoryEvent> + use<'a> {
        self.history().filter(move |event| event.is(name))
    }

    pub(crate) fn iterations(&self) -> usize {
        self.history().filter(|event| event.is_claim()).count()
    }

    pub(crate) fn rejections(&self) -> u32 {
        self.record.map_or(0, |record| record.past().rejections)
    }

    /// The number of commits by which the integration branch had moved when it was merged.
    pub(crate) fn drift(&self) -> Option<i64> {
        let merged = self.events(EventName::Merged).last()?;
        match merged.more.get("drift_commits")? {
            Value::Int(commits) => Some(*commits),
            Value::Null
            | Value::Bool(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Time(_)
            | Value::List(_)
            | Value::Map(_) => None,
        }
    }

    /// Tokens and cost, if its provider reports them.
    pub(crate) fn usage(&self) -> Option<&'a Usage> {
        self.record?.usage.as_ref().filter(|usage| !usage.is_none())
    }

    pub(crate) fn entered(&self, start: Timestamp) -> Timestamp {
        self.record.and_then(|record| record.created).map_or(start, |created| created.max(start))
    }

    /// The time of its merge, replacement or abandonment.
    pub(crate) fn ended(&self) -> Option<Timestamp> {
        self.record?.ended()
    }

    /// From the first claim to the end, or to now.
    pub(crate) fn duration(&self, now: Timestamp) -> Option<Seconds> {
        self.record?.work_time(now)
    }
}

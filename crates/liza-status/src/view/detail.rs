//! Everything about one task: the output of `show`, and the page of a task in the browser.

use serde::Serialize;

use liza_core::model::{AgentId, Anomaly, Discovery, Handoff, HumanNote, State, TaskId, TaskRecord};
use liza_core::rules::notes::{reaches, read_by};

use super::task::TaskView;

#[derive(Debug, Clone, Serialize)]
pub struct TaskDetail<'a> {
    /// As every screen shows it.
    pub task: &'a TaskView,
    /// As the file has it.
    pub record: &'a TaskRecord,
    /// The tasks that depend on it.
    pub needed_by: Vec<&'a TaskId>,
    /// The human's notes about it, and those for all agents.
    pub notes: Vec<NoteDetail<'a>>,
    /// The notes of an earlier session for the next one.
    pub handoff: Option<&'a Handoff>,
    pub anomalies: Vec<&'a Anomaly>,
    /// The findings of agents during it.
    pub discoveries: Vec<Discovery>,
}

/// A note, and who has read it.
#[derive(Debug, Clone, Serialize)]
pub struct NoteDetail<'a> {
    #[serde(flatten)]
    pub note: &'a HumanNote,
    pub read_by: Vec<AgentId>,
}

impl NoteDetail<'_> {
    /// Whom it is for, and who has read it.
    pub fn readers(&self) -> String {
        let whom = if self.note.to.is_none() { "to all agents, " } else { "" };
        let names: Vec<String> = self.read_by.iter().map(ToString::to_string).collect();
        match names.as_slice() {
            [] => format!("{whom}not read yet"),
            names => format!("{whom}read by {}", names.join(", ")),
        }
    }
}

/// Everything about a task of the view; `None` if the state does not have it.
pub fn task_detail<'a>(state: &'a State, task: &'a TaskView) -> Option<TaskDetail<'a>> {
    let (board, journal, id) = (&state.board, &state.journal, &task.id);
    let about = |subject: &Option<TaskId>| subject.as_ref() == Some(id);
    let found = board.discovered.entries();
    Some(TaskDetail {
        task,
        record: board.body(id).ok()?.record(),
        needed_by: board
            .summaries()
            .filter(|head| head.depends_on.contains(id))
            .map(|head| &head.id)
            .collect(),
        notes: journal
            .human_notes
            .iter()
            .enumerate()
            .filter(|(_, note)| note.to.as_ref().is_none_or(|to| reaches(board, to, id)))
            .map(|(place, note)| NoteDetail { note, read_by: read_by(state, place, note.to.as_ref()) })
            .collect(),
        handoff: board.handoff.ready().and_then(|handoff| handoff.get(id)),
        anomalies: journal.anomalies.iter().filter(|anomaly| about(&anomaly.task)).collect(),
        discoveries: found.filter(|discovery| about(&discovery.during)).map(Discovery::bounded).collect(),
    })
}

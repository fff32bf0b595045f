//! The next readers of a human's note, and those that have read it.
//!
//! The list of notes only grows, and no command loads it. So a reading is recorded with the session's
//! subject: its task, or the sprint for a session that plans.

use serde::Serialize;

use crate::model::{
    AgentId, AgentRecord, Board, HumanNote, Role, State, Status, TaskId, TaskSummary, Timestamp,
};
use crate::rules::sprint::with_replacements;

/// The notes for a session of this agent, oldest first: those for all agents and for its task; a planner
/// reads those for every open task.
pub fn notes_for<'s>(state: &'s State, agent: AgentId, task: Option<&TaskId>) -> Vec<&'s HumanNote> {
    after(state, 0, agent, task)
}

/// Those that no session of this agent has received, about this task or, without one, about the plan.
pub fn unread<'s>(state: &'s State, agent: AgentId, task: Option<&TaskId>) -> Vec<&'s HumanNote> {
    let read = match task {
        Some(task) => state.board.body(task).ok().and_then(|body| body.record().notes_read.as_ref()),
        None => state.board.sprint.ready().map(|sprint| &sprint.notes_read),
    };
    after(state, read.and_then(|read| read.get(&agent).copied()).unwrap_or(0), agent, task)
}

fn after<'s>(state: &'s State, read: usize, agent: AgentId, task: Option<&TaskId>) -> Vec<&'s HumanNote> {
    let is_meant = |note: &&HumanNote| match (&note.to, agent.role()) {
        (None, _) => true,
        (Some(to), Role::Planner) => !open_heirs(&state.board, to).is_empty(),
        (Some(to), Role::Coder | Role::CodeReviewer) => {
            task.is_some_and(|task| reaches(&state.board, to, task))
        }
    };
    state.journal.human_notes.iter().skip(read).filter(is_meant).collect()
}

/// True if a note for `to` is for this task: it is the task, or the task replaces it.
pub fn reaches(board: &Board, to: &TaskId, task: &TaskId) -> bool {
    to == task || with_replacements(board, [to]).contains(task)
}

/// The open tasks that a note for this one is for.
fn open_heirs(board: &Board, to: &TaskId) -> Vec<TaskId> {
    let is_open = |id: &TaskId| board.status(id).is_some_and(|status| !status.is_terminal());
    with_replacements(board, [to]).into_iter().filter(is_open).collect()
}

/// The agents that have read the note at this place of the list, in the order of their names.
pub fn read_by(state: &State, place: usize, to: Option<&TaskId>) -> Vec<AgentId> {
    let tasks = state.bodies().filter(|(id, _)| to.is_none_or(|to| reaches(&state.board, to, id)));
    let tasks = tasks.filter_map(|(_, body)| body.record().notes_read.as_ref());
    let all = tasks.chain(state.board.sprint.ready().map(|sprint| &sprint.notes_read)).flatten();
    let mut agents: Vec<AgentId> = all.filter(|(_, read)| place < **read).map(|(agent, _)| *agent).collect();
    agents.sort_unstable();
    agents.dedup();
    agents
}

/// An agent that will read a note, or the role of one that is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteReader {
    /// The answer to its next command includes the note.
    InSession(AgentId),
    /// In the prompt of its next session.
    Next(AgentId),
    /// The agent of this role that has the next session about it.
    NextOf(Role),
}

/// The agents that read a new note next. No agent reads one for a task on which no session follows; one for a task that
/// was replaced is read by those of its replacements.
pub fn next_readers(board: &Board, to: Option<&TaskId>, now: Timestamp) -> Vec<NoteReader> {
    let mut readers: Vec<NoteReader> = match to {
        Some(to) => {
            let heirs = open_heirs(board, to);
            heirs.iter().flat_map(|task| readers_of(board, Some(task), now)).collect()
        }
        None => readers_of(board, None, now),
    };
    let mut seen = Vec::new();
    readers.retain(|reader| {
        !seen.contains(reader) && {
            seen.push(*reader);
            true
        }
    });
    readers
}

fn readers_of(board: &Board, to: Option<&TaskId>, now: Timestamp) -> Vec<NoteReader> {
    let present = || board.agents.entries().filter(|(_, entry)| entry.holds(now));
    let reader = |(agent, entry): (&AgentId, &AgentRecord)| {
        let is_about = agent.role() == Role::Planner || to.is_none() || entry.current_task.as_ref() == to;
        match entry.session.is_some() && entry.status.is_in_session() && is_about {
            true => NoteReader::InSession(*agent),
            false => NoteReader::Next(*agent),
        }
    };
    let Some(task) = to else {
        let mut all: Vec<NoteReader> = present().map(reader).collect();
        if all.is_empty() {
            all.extend([Role::Planner, Role::Coder, Role::CodeReviewer].map(NoteReader::NextOf));
        }
        return all;
    };
    let named = |agent: Option<AgentId>, role: Role| {
        let entry = present().find(|(id, _)| Some(**id) == agent);
        entry.map_or(NoteReader::NextOf(role), reader)
    };
    let planner = named(present().map(|(id, _)| *id).find(|id| id.role() == Role::Planner), Role::Planner);
    let Some(task) = board.summary(task) else { return Vec::new() };
    let readers = sessions_on(task).into_iter().map(|(agent, role)| named(agent, role));
    match task.status {
        Some(Status::Merged | Status::Superseded | Status::Abandoned | Status::Approved) => Vec::new(),
        Some(Status::Blocked | Status::Draft) | None => std::iter::once(planner).chain(readers).collect(),
        Some(_) => readers.chain([planner]).collect(),
    }
}

/// The next sessions on a task: their agent if it is known, and their role.
fn sessions_on(task: &TaskSummary) -> Vec<(Option<AgentId>, Role)> {
    let (coder, reviewer) = ((task.assigned_to, Role::Coder), (task.reviewing_by, Role::CodeReviewer));
    match task.status {
        Some(Status::ReadyForReview) => vec![reviewer],
        Some(Status::Claimed | Status::Rejected | Status::IntegrationFailed) => vec![coder, reviewer],
        Some(Status::Unclaimed | Status::Draft | Status::Blocked) => vec![(None, Role::Coder), reviewer],
        Some(Status::Approved | Status::Merged | Status::Superseded | Status::Abandoned) | None => Vec::new(),
    }
}

//! The task that a person means: its ID, or the beginning of it if no other task begins so.
//!
//! For the verbs that people type. The commands of agents take whole IDs only.

use liza_core::model::{Board, Refusal, TaskId};
use liza_core::rules::misspelled::distance;
use liza_host::columns::list;

use super::ui::error::CommandError;

/// The most tasks that an ambiguous name lists.
const MOST_NAMED: usize = 8;

/// The task with this ID, else the only one whose ID begins so; the given one if there is none.
pub(crate) fn meant_task(board: &Board, given: TaskId) -> Result<TaskId, CommandError> {
    if is_known(board, &given) {
        return Ok(given);
    }
    let all = board.tasks.keys().chain(board.archived.keys());
    let mut candidates: Vec<&TaskId> = all.filter(|id| id.as_str().starts_with(given.as_str())).collect();
    candidates.dedup();
    match candidates.as_slice() {
        [] => match similar(board, &given) {
            Some(meant) => {
                let hint = format!("did you mean {meant}? liza status lists the tasks");
                Err(CommandError::from(Refusal::UnknownTask { task: given }).hint(hint))
            }
            None => Ok(given),
        },
        [only] => Ok((*only).clone()),
        several => {
            let more = several.len().saturating_sub(MOST_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let names = list(&several[..several.len().min(MOST_NAMED)]);
            let message = format!("{given} is the beginning of {} tasks: {names}{more}", several.len());
            Err(CommandError::refused("ambiguous_task", message).hint("type more of the ID"))
        }
    }
}

/// The task whose ID, or the beginning of it, differs only in its spelling.
fn similar<'b>(board: &'b Board, given: &TaskId) -> Option<&'b TaskId> {
    let typed = given.as_str();
    let allowed = match typed.len() {
        0..4 => return None,
        4..8 => 1,
        _ => 2,
    };
    let typos = |id: &TaskId| {
        let beginning = id.as_str().get(..typed.len()).unwrap_or(id.as_str());
        distance(typed, id.as_str()).min(distance(typed, beginning))
    };
    let all = board.tasks.keys().chain(board.archived.keys());
    all.filter(|id| typos(id) <= allowed).min_by_key(|id| typos(id))
}

pub(crate) fn is_known(board: &Board, id: &TaskId) -> bool {
    board.tasks.contains_key(id) || board.archived.contains_key(id)
}

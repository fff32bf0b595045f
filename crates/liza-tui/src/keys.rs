//! The keys of the board and of a task's page, each with its action.

use liza_core::watch::action::{Action, ActionName, ActionSubject};

/// The keys, with what they do.
pub(crate) const KEYS: [(char, ActionName, &str); 14] = [
    ('p', ActionName::Pause, "pause: no new work starts"),
    (
        'r',
        ActionName::Resume,
        "resume after a pause or a checkpoint; HELD: try it now; a budget is used up: raise it",
    ),
    ('c', ActionName::Checkpoint, "checkpoint: stop all agents for a review"),
    ('X', ActionName::Abort, "abort the goal"),
    ('n', ActionName::Note, "note for the agents of the selected task"),
    ('N', ActionName::NoteAll, "note for all agents"),
    ('a', ActionName::Answer, "answer the selected task"),
    ('v', ActionName::Approve, "approve the selected submission"),
    ('x', ActionName::Reject, "reject the selected submission"),
    ('u', ActionName::Release, "release the claim on the selected task"),
    ('b', ActionName::Replan, "block the selected task, so that it is planned again"),
    ('i', ActionName::Add, "add a task; the planner completes it"),
    ('s', ActionName::StartAgent, "start an agent in the background"),
    ('S', ActionName::StopAgent, "stop the selected agent"),
];

/// The action of a key while this is selected.
pub(crate) fn action_of(key: char, selected: ActionSubject<'_>) -> Result<Action, &'static str> {
    let known = KEYS.iter().find(|(of, ..)| *of == key);
    known.map_or(Err(""), |(_, name, _)| Action::new(*name, selected))
}

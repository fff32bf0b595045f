//! The keys of the board and of a task's page, each with its action.

use liza_core::model::AgentId;
use liza_core::watch::action::{Action, ActionName};
use liza_core::watch::view::TaskView;

/// The keys, with what they do.
pub(super) const KEYS: [(char, ActionName, &str); 12] = [
    ('p', ActionName::Pause, "pause: no new work starts"),
    ('r', ActionName::Resume, "resume after a pause or a checkpoint"),
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
];

/// The keys that are about agents.
pub(super) const AGENT_KEYS: [(char, &str); 2] =
    [('s', "start an agent in the background"), ('S', "stop the selected agent")];

/// The action of a key while this task, or this agent, is selected.
///
/// # Errors
/// Why there is none now; empty if the key means nothing.
pub(super) fn action_of(
    key: char,
    selected: Option<&TaskView>,
    agent: Option<AgentId>,
) -> Result<Action, &'static str> {
    match key {
        's' => return Ok(Action::StartAgent),
        'S' => return agent.map(Action::StopAgent).ok_or("select an agent first"),
        _ => {}
    }
    let known = KEYS.iter().find(|(of, ..)| *of == key);
    known.map_or(Err(""), |(_, name, _)| Action::new(*name, selected))
}

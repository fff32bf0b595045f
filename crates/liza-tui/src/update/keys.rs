//! The keys of the screen and their actions.

use liza_host::columns::wrap;
use liza_status::action::{Action, ActionName, ActionSubject};

/// The keys that run a command.
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

/// The keys of the screen itself.
pub(crate) const SCREEN_KEYS: [(&str, &str); 14] = [
    ("↑ ↓ j k", "select, or scroll"),
    ("PgUp PgDn", "a page up or down"),
    ("g G", "first, last"),
    ("Tab ← →", "next panel, or next tab of a page"),
    ("1 2 3 4", "tab of a page"),
    ("Enter", "open a task or an agent; answer what needs you"),
    ("/", "search in the panel or the page; / and Enter: the next place"),
    ("d", "the diff of the selected task"),
    ("e", "the selected task in your editor; in liza run: shows the command"),
    ("y", "copy the command of what is selected"),
    ("Esc q", "back; q on the board leaves the screen, and the team goes on; in liza run it asks first"),
    ("Ctrl-C", "leave the screen; in liza run: stop the team, a second time kills its sessions"),
    ("Ctrl-L", "paint the screen again"),
    ("?", "this page"),
];

/// The action of a key while this is selected.
pub(crate) fn action_of(key: char, selected: ActionSubject<'_>) -> Result<Action, &'static str> {
    let known = KEYS.iter().find(|(of, ..)| *of == key);
    known.map_or(Err(""), |(_, name, _)| Action::new(*name, selected))
}

/// The column at which the texts of the keys begin.
const KEY_COLUMNS: usize = 14;

/// The page of the keys, folded at words.
pub(crate) fn keys_page(columns: usize) -> String {
    let line = |key: &str, what: &str| {
        let folded = wrap(what, columns.saturating_sub(KEY_COLUMNS).max(1));
        format!("  {key:<12}{}", folded.join(&format!("\n{}", " ".repeat(KEY_COLUMNS))))
    };
    let at_once =
        "p, r and an answer that only resumes or reads run at once; the others show their command first.";
    let mut lines = wrap(at_once, columns);
    lines.extend(["A command that runs is shown at the bottom.".to_owned(), String::new()]);
    lines.extend(KEYS.iter().map(|(key, _, what)| line(&key.to_string(), what)));
    lines.push(String::new());
    lines.extend(SCREEN_KEYS.iter().map(|(key, what)| line(key, what)));
    lines.join("\n")
}

//! Runs a person's actions: those of the terminal screen, and the commands that answer decisions. A request
//! names an action, never a command.

use std::sync::Arc;
use std::time::Duration;

use liza_core::model::{AgentId, Generation, Revision, TaskId};
use liza_core::text::shell_word;
use liza_status::action::{Action, ActionLane, ActionName, ActionSubject, AgentSubject};
use liza_status::needs_you::NeedsYou;
use serde::Deserialize;
use strum::IntoEnumIterator as _;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

use crate::region::hash;
use crate::seat::{CommandResult, Seat};
use crate::snapshot::Snapshot;

/// The time for which a page waits for a command. The command itself continues.
const COMMAND_TIME: Duration = Duration::from_secs(120);

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ActionForm {
    action: Option<String>,
    /// The key of a decision that waits for the human.
    need: Option<String>,
    task: Option<String>,
    agent: Option<String>,
    /// The registration of the agent that the person has seen.
    generation: Option<u64>,
    /// The revision of the task that the person has seen.
    seen: Option<u64>,
    text: Option<String>,
}

pub(crate) struct ActionResult {
    pub(crate) command: String,
    pub(crate) outcome: ActionOutcome,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActionOutcome {
    Done,
    Running,
    /// It was refused, or its command reported an error.
    NotDone,
    Failed,
}

impl ActionResult {
    fn refused(text: impl Into<String>) -> Self {
        Self { command: String::new(), outcome: ActionOutcome::NotDone, text: text.into() }
    }
}

/// Names a decision that waits for the human; ages in its text do not change the name.
pub(crate) fn need_key(need: &NeedsYou) -> String {
    let task = need.task.as_ref().map(TaskId::as_str).unwrap_or_default();
    // Without figures, which may be ages.
    let text: String = need.text.chars().filter(|c| c.is_alphabetic()).collect();
    let text = if need.task.is_some() { text } else { String::new() };
    let seen = need.seen.map(|seen| seen.to_string()).unwrap_or_default();
    hash(&[&need.kind.to_string(), task, &need.command, &seen, &text])
}

/// The turns: in each lane, actions run one at a time and in their order.
#[derive(Default)]
pub(crate) struct ActionTurns {
    team: Arc<Mutex<()>>,
    stop: Arc<Mutex<()>>,
    other: Arc<Mutex<()>>,
}

impl ActionTurns {
    /// Waits until all earlier actions of that lane have run.
    async fn next(&self, lane: ActionLane) -> OwnedMutexGuard<()> {
        let turn = match lane {
            ActionLane::Team => &self.team,
            ActionLane::Stop => &self.stop,
            ActionLane::Other => &self.other,
        };
        Arc::clone(turn).lock_owned().await
    }

    /// Waits until no action runs, and lets no other one begin.
    pub(crate) async fn close(&self) {
        let lanes = ActionLane::iter().map(|lane| async move { std::mem::forget(self.next(lane).await) });
        futures_util::future::join_all(lanes).await;
    }
}

pub(crate) async fn perform(
    seat: Arc<dyn Seat>,
    snapshot: &Snapshot,
    turns: &ActionTurns,
    form: &ActionForm,
) -> ActionResult {
    let words = match command(snapshot, form) {
        Ok(words) => words,
        Err(why) => return ActionResult::refused(why),
    };
    let shown = shown_command(&words);
    let place = turns.next(ActionLane::of(&words)).await;
    let running = tokio::task::spawn_blocking(move || {
        let result = seat.execute(&words);
        drop(place);
        result
    });
    let (outcome, text) = match timeout(COMMAND_TIME, running).await {
        Ok(Ok(CommandResult { succeeded: true, text })) => (ActionOutcome::Done, text),
        Ok(Ok(CommandResult { succeeded: false, text })) => (ActionOutcome::NotDone, text),
        Ok(Err(_)) => (ActionOutcome::Failed, "The command crashed.".to_owned()),
        Err(_) => (ActionOutcome::Running, "This page shows what it changes.".to_owned()),
    };
    ActionResult { command: shown, outcome, text }
}

/// The words of the command that a form asks for.
fn command(snapshot: &Snapshot, form: &ActionForm) -> Result<Vec<String>, String> {
    let text = form.text.as_deref().unwrap_or_default();
    // Line breaks are kept; other control characters are of no use to anyone.
    let text: String = text.replace("\r\n", "\n").chars().filter(|c| *c == '\n' || !c.is_control()).collect();
    let action = match (&form.need, &form.action) {
        (Some(key), _) => {
            let needs = snapshot.view().map(|view| view.needs_you.as_slice()).unwrap_or_default();
            let need = needs.iter().find(|need| need_key(need) == *key);
            let need = need.ok_or("This no longer needs you: it was answered, or it changed.")?;
            Action::answering(need)
        }
        (None, Some(name)) => {
            let name: ActionName = name.parse().map_err(|_| "There is no such action.".to_owned())?;
            Action::requested(name, subject(snapshot, form)?, form.seen.map(Revision))?
        }
        (None, None) => return Err("The form names no action.".to_owned()),
    };
    if action.needs_terminal() {
        return Err(format!("This needs a terminal: {}", action.title));
    }
    let missing = action.fields.iter().any(|field| !field.optional) && text.trim().is_empty();
    if missing {
        return Err("Type a text first.".to_owned());
    }
    Ok(action.words(&[&text]))
}

/// The subject of a form: a task or an agent of the view.
fn subject<'v>(snapshot: &'v Snapshot, form: &ActionForm) -> Result<ActionSubject<'v>, String> {
    let task = form.task.as_deref().map(str::parse::<TaskId>).transpose().map_err(|e| e.to_string())?;
    let task = task.map(|id| snapshot.task(&id).ok_or("This task no longer exists.")).transpose()?;
    let agent = form.agent.as_deref().map(str::parse::<AgentId>).transpose().map_err(|e| e.to_string())?;
    let agent = agent.map(|id| snapshot.agent(id).ok_or("This agent no longer exists.")).transpose()?;
    let agent = agent.map(|agent| AgentSubject {
        id: agent.id,
        generation: form.generation.map(Generation).or(agent.generation),
    });
    Ok(ActionSubject { task, agent })
}

fn shown_command(words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| shell_word(word)).collect();
    format!("liza {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// Covers: UI-02
    #[test]
    fn the_end_waits_for_the_action_that_runs_and_lets_no_other_begin() {
        let turns = ActionTurns::default();
        let running = turns.next(ActionLane::Stop).now_or_never().unwrap();
        assert!(turns.close().now_or_never().is_none(), "an action runs");
        drop(running);
        let turns = ActionTurns::default();
        turns.close().now_or_never().unwrap();
        for lane in ActionLane::iter() {
            assert!(turns.next(lane).now_or_never().is_none(), "{lane:?} is still open");
        }
    }
}

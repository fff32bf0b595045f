//! Follows bare stop files and the sprint's deadline: what stands for a moment is brought to the blackboard.
//!
//! What is to be done is decided in `liza_core::reconcile`; here is only the patience. Commands write state and file one
//! after the other, so a mismatch counts when it has stood for about a second.

use std::time::Duration;

use liza_core::model::{Actor, Seconds, State, StopFile, Timestamp};
use liza_core::protocol::{Command, FollowStopFile, Request};
use liza_core::watch::stop_files::{next_deadline, reconcile};
use liza_store::StoreError;

use crate::effects::run_halts_at;
use crate::project::Project;
use crate::sightings::standing;

/// How long a mismatch has to stand. The clock counts whole seconds, so this is more than one and less than two.
const PATIENCE: Seconds = Seconds(2);

/// When to ask again while a mismatch stands.
const SOON: Duration = Duration::from_secs(1);

/// What stands out between the stop files and the blackboard, and since when.
#[derive(Debug, Default)]
pub struct Reconciler {
    seen: Option<(Command, Timestamp)>,
    /// The last failure, so that it is told once.
    failed: Option<String>,
}

impl Reconciler {
    /// Brings the blackboard into line where a mismatch has stood long enough; says in words what was done. Several
    /// processes may do this at once: whoever is second finds nothing to do.
    pub fn settle(&mut self, project: &Project, state: &State, now: Timestamp) -> Option<String> {
        let Some(command) = reconcile(state, standing(project), now) else {
            self.seen = None;
            return None;
        };
        let first = match self.seen.take() {
            // A clock that was set back must not make this wait for hours.
            Some((seen, first)) if seen == command && first <= now => first,
            Some(_) | None => now,
        };
        let at_once = matches!(command, Command::Checkpoint(_));
        if !at_once && now.since(first) < PATIENCE {
            self.seen = Some((command, first));
            return None;
        }
        let words = in_words(&command);
        match follow(project, command.clone(), now) {
            Ok(true) => {
                self.failed = None;
                Some(words.to_owned())
            }
            Ok(false) => None,
            Err(why) => {
                self.seen = Some((command, first));
                let told = format!("{words}: but the blackboard could not follow: {why}");
                let news = self.failed.as_ref() != Some(&told);
                self.failed = Some(told.clone());
                news.then_some(told)
            }
        }
    }

    /// Whether a mismatch stands that does not count yet.
    pub fn is_waiting(&self) -> bool {
        self.seen.is_some()
    }

    /// How soon it wants to be asked again: while a mismatch stands, and when the deadline comes.
    pub fn again(&self, state: &State, now: Timestamp) -> Option<Duration> {
        let deadline = next_deadline(state, now).map(|due| Duration::from_secs(due.since(now).0));
        let soon = self.is_waiting().then_some(SOON);
        deadline.into_iter().chain(soon).min()
    }
}

/// Submits it as the human's word; false where somebody else was first.
fn follow(project: &Project, command: Command, now: Timestamp) -> Result<bool, String> {
    let request = Request { actor: Actor::Human, now, halt: project.halt(), if_revision: None, command };
    let outcome = match project.submit_request(&request) {
        Ok(outcome) => outcome,
        Err(StoreError::Refused(_)) => return Ok(false),
        Err(error) => return Err(error.to_string()),
    };
    run_halts_at(project, &outcome.effects, now).map_err(|error| error.to_string())?;
    Ok(outcome.refusal.is_none())
}

#[allow(clippy::wildcard_enum_match_arm, reason = "reconcile gives three commands only")]
fn in_words(command: &Command) -> &'static str {
    match command {
        Command::FollowStopFile(FollowStopFile { file, since }) => match (file, since) {
            (StopFile::Abort, _) => "ABORT stands: goal and sprint are aborted",
            (StopFile::Checkpoint, Some(_)) => "CHECKPOINT stands: the sprint waits for liza resume",
            (StopFile::Checkpoint, None) => "CHECKPOINT is gone: the sprint goes on",
            (StopFile::Pause, Some(_)) => "PAUSE stands: nobody starts anything until liza resume",
            (StopFile::Pause, None) => "PAUSE is gone: work goes on",
        },
        Command::CompleteSprint(_) => "every task of the sprint is over: the sprint is complete",
        _ => "the sprint's deadline has come: the sprint waits for liza resume",
    }
}

//! Makes the blackboard agree with stop files that a person created or removed, and with the sprint's
//! deadline. `liza_core::supervise::stop_files` decides the changes; here is only the waiting. Commands write
//! state and file one after the other, so a mismatch counts when it has lasted for about a second.

use std::time::Duration;

use liza_core::model::{Actor, Seconds, State, StopFile, Timestamp};
use liza_core::protocol::{Checkpoint, CheckpointCause, Command, FollowStopFile};
use liza_core::supervise::stop_files::{next_deadline, reconcile};

use crate::engine::{Engine, EngineError};
use crate::observe::stop_file_times;
use crate::project::Project;

/// The time that a mismatch has to last: with a clock of whole seconds, more than one and less than two.
const STABLE: Seconds = Seconds(2);

/// The pause before the next check during a mismatch.
const SOON: Duration = Duration::from_secs(1);

/// The mismatch between the stop files and the blackboard, and its start.
#[derive(Debug, Default)]
pub struct Reconciler {
    pending: Option<(Command, Timestamp)>,
    /// The last failure, so that it is reported once.
    failed: Option<String>,
}

impl Reconciler {
    /// Makes the blackboard agree once a mismatch has lasted long enough; returns a report. Several processes
    /// may do this at once: the second finds nothing to do.
    pub fn reconcile(&mut self, project: &Project, state: &State, now: Timestamp) -> Option<String> {
        // Tried again at the next call; until then the file counts on this machine.
        let _ = project.share_stop_files();
        let Some(command) = reconcile(state, stop_file_times(project), now) else {
            self.pending = None;
            return None;
        };
        let first = match self.pending.take() {
            // A clock that was set back must not make this wait for hours.
            Some((pending, first)) if pending == command && first <= now => first,
            Some(_) | None => now,
        };
        let at_once = matches!(command, Command::Checkpoint(_));
        if !at_once && now.since(first) < STABLE {
            self.pending = Some((command, first));
            return None;
        }
        let report = report(&command);
        match Engine::new(project, Actor::Human).at(now).execute(command.clone()) {
            Ok(_) => {
                self.failed = None;
                Some(report.to_owned())
            }
            // Another process was first.
            Err(EngineError::Refused(_)) => None,
            Err(error) => {
                self.pending = Some((command, first));
                let failure = format!("{report}: but the blackboard could not be updated: {error}");
                let news = self.failed.as_ref() != Some(&failure);
                self.failed = Some(failure.clone());
                news.then_some(failure)
            }
        }
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// The time to the next check: during a mismatch, or at the deadline.
    pub fn next_check(&self, state: &State, now: Timestamp) -> Option<Duration> {
        let deadline = next_deadline(state, now).map(|due| Duration::from_secs(due.since(now).0));
        let soon = self.is_pending().then_some(SOON);
        deadline.into_iter().chain(soon).min()
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "`reconcile` gives few commands")]
fn report(command: &Command) -> &'static str {
    match command {
        Command::FollowStopFile(FollowStopFile { file, since }) => match (file, since) {
            (StopFile::Abort, _) => "ABORT was created: goal and sprint are aborted",
            (StopFile::Checkpoint, Some(_)) => "CHECKPOINT was created: the sprint waits for liza resume",
            (StopFile::Checkpoint, None) => "CHECKPOINT was removed: the sprint continues",
            (StopFile::Pause, Some(_)) => "PAUSE was created: nothing new starts until liza resume",
            (StopFile::Pause, None) => "PAUSE was removed: work continues",
        },
        Command::Checkpoint(Checkpoint { cause: CheckpointCause::Budget }) => {
            "a budget is used up: the sprint waits until you raise it"
        }
        Command::CompleteSprint(_) => "every task of the sprint has ended: the sprint is complete",
        _ => "the sprint's deadline has passed: the sprint waits for liza resume",
    }
}

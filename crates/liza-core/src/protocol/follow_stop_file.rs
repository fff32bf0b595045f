//! The blackboard follows a stop file that a person created or removed without a command.

use crate::model::{LogAction, Refusal, Section, SprintStatus, StopFile, Timestamp};

use super::checkpoint::{enter_checkpoint, leave_checkpoint, record_decision};
use super::goal::abort;
use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights};
use super::reply::Nothing;
use super::tx::Tx;

/// Follows one file. Several processes may send this; the second finds nothing to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FollowStopFile {
    pub file: StopFile,
    /// The time of its creation; `None` if it is gone.
    pub since: Option<Timestamp>,
}

impl Rule for FollowStopFile {
    type Reply = Nothing;
    const VERB: &'static str = "follow-stop-file";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::all(&[Section::Goal, Section::Sprint]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<Nothing, Refusal> {
        let sprint = tx.board.sprint()?;
        let (status, paused, present) = (sprint.status, sprint.timeline.paused_at.is_some(), tx.stop_files);
        let started = sprint.timeline.started;
        let since = self.since.map(|since| since.min(tx.now).max(started.unwrap_or(since)));
        match (self.file, since) {
            (StopFile::Abort, Some(_)) => drop(abort(tx)?),
            (StopFile::Checkpoint, Some(since)) if status == SprintStatus::InProgress => {
                enter_checkpoint(tx)?;
                tx.sprint()?.timeline.checkpoint_at = Some(since);
                tx.log(LogAction::Checkpoint, None, "CHECKPOINT was created by hand");
            }
            // It may have been created again since it was missed.
            (StopFile::Checkpoint, None) if status == SprintStatus::Checkpoint && !present.checkpoint => {
                leave_checkpoint(tx)?;
                record_decision(tx, "continue", Some("CHECKPOINT was removed by hand"))?;
                tx.log(LogAction::Resumed, None, "CHECKPOINT was removed by hand");
            }
            (StopFile::Pause, Some(since)) if !paused => {
                tx.sprint()?.timeline.paused_at = Some(since);
                tx.log(LogAction::Paused, None, "PAUSE was created by hand");
            }
            (StopFile::Pause, None) if paused && !present.pause => {
                tx.sprint()?.timeline.paused_at = None;
                tx.log(LogAction::Resumed, None, "PAUSE was removed by hand");
            }
            (StopFile::Abort | StopFile::Checkpoint | StopFile::Pause, _) => {
                return Err(Refusal::NothingToDo { what: "follow: the blackboard agrees with the file" });
            }
        }
        Ok(Nothing {})
    }
}

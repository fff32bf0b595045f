//! The stop files are the human's word: what the blackboard has to do to agree with them, and with the clock.
//!
//! Says which command that is; does not know how long a mismatch has stood, which is for the caller to wait out.

use crate::agent::{AgentRecord, AgentStatus};
use crate::board::State;
use crate::command::{CheckpointCause, Command};
use crate::effect::HaltFile;
use crate::goal::GoalStatus;
use crate::sprint::{SprintStatus, is_complete};
use crate::time::Timestamp;

/// Since when each stop file stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// `.liza/PAUSE`
    pub pause: Option<Timestamp>,
    /// `.liza/CHECKPOINT`
    pub checkpoint: Option<Timestamp>,
    /// `.liza/ABORT`
    pub abort: Option<Timestamp>,
}

/// The command that brings the blackboard into line with the files, the deadline, or a sprint whose last task a person
/// has ended; nothing where it is. The heaviest file comes first, the others when they still stand after it.
pub fn by_files(state: &State, files: Standing, now: Timestamp) -> Option<Command> {
    let sprint = state.board.sprint.ready()?;
    let open = state.board.goal.ready().is_some_and(|goal| goal.status == GoalStatus::InProgress);
    if open && files.abort.is_some() {
        return Some(Command::FollowFile { file: HaltFile::Abort, since: files.abort });
    }
    match (sprint.status, files.checkpoint) {
        (SprintStatus::InProgress, Some(_)) | (SprintStatus::Checkpoint, None) => {
            return Some(Command::FollowFile { file: HaltFile::Checkpoint, since: files.checkpoint });
        }
        (SprintStatus::InProgress, None) if sprint.deadline_due(now) => {
            return Some(Command::Checkpoint { cause: CheckpointCause::Deadline });
        }
        (SprintStatus::InProgress, None) if is_complete(&state.board, sprint, is_planned(state, now)) => {
            return Some(Command::CompleteSprint);
        }
        (
            SprintStatus::InProgress
            | SprintStatus::Checkpoint
            | SprintStatus::Completed
            | SprintStatus::Aborted,
            _,
        ) => {}
    }
    let known = sprint.timeline.paused_at.is_some();
    (known != files.pause.is_some())
        .then_some(Command::FollowFile { file: HaltFile::Pause, since: files.pause })
}

/// Whether a planning session runs, which may have more in mind.
fn is_planned(state: &State, now: Timestamp) -> bool {
    let planning = |entry: &AgentRecord| entry.status == AgentStatus::Planning && entry.holds(now);
    state.board.agents.ready().is_none_or(|agents| agents.values().any(planning))
}

/// When the sprint's deadline will ask for a checkpoint by itself.
pub fn next_deadline(state: &State, now: Timestamp) -> Option<Timestamp> {
    let sprint = state.board.sprint.ready().filter(|sprint| sprint.status == SprintStatus::InProgress)?;
    sprint.timeline.deadline.filter(|deadline| *deadline > now)
}

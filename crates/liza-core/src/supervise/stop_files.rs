//! The commands that make the blackboard follow the stop files, the human's instruction, and the clock.
//!
//! Does not know the age of a mismatch; the caller waits that out.

use crate::model::{GoalStatus, SprintStatus, State, StopFile, StopFileTimes, Timestamp};
use crate::protocol::{Checkpoint, CheckpointCause, Command, CompleteSprint, FollowStopFile};
use crate::rules::spending::used_up;
use crate::rules::sprint::{is_complete, is_planning};

/// The command that makes the blackboard agree with the files, the deadline, the budgets, or a sprint whose
/// last task a person has ended; `None` if it agrees. The strongest file comes first.
pub fn reconcile(state: &State, files: StopFileTimes, now: Timestamp) -> Option<Command> {
    let sprint = state.board.sprint.ready()?;
    let follow = |file, since| Some(FollowStopFile { file, since }.into());
    let open = state.board.goal.ready().is_some_and(|goal| goal.status == GoalStatus::InProgress);
    if open && files.abort.is_some() {
        return follow(StopFile::Abort, files.abort);
    }
    match (sprint.status, files.checkpoint) {
        (SprintStatus::InProgress, Some(_)) | (SprintStatus::Checkpoint, None) => {
            return follow(StopFile::Checkpoint, files.checkpoint);
        }
        (SprintStatus::InProgress, None) if sprint.deadline_due(now) => {
            return Some(Checkpoint { cause: CheckpointCause::Deadline }.into());
        }
        (SprintStatus::InProgress, None)
            if is_complete(&state.board, sprint, is_planning(&state.board, now)) =>
        {
            return Some(CompleteSprint.into());
        }
        (SprintStatus::InProgress, None) if open && used_up(&state.board, now).is_some() => {
            return Some(Checkpoint { cause: CheckpointCause::Budget }.into());
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
    if known == files.pause.is_some() { None } else { follow(StopFile::Pause, files.pause) }
}

/// The time at which the sprint's deadline asks for a checkpoint.
pub fn next_deadline(state: &State, now: Timestamp) -> Option<Timestamp> {
    let sprint = state.board.sprint.ready().filter(|sprint| sprint.status == SprintStatus::InProgress)?;
    sprint.timeline.deadline.filter(|deadline| *deadline > now)
}

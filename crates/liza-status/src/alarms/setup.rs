//! New checkouts that cannot be set up, so that no session starts in them.

use liza_core::model::{State, TaskId, TaskStatus};
use liza_core::text::count;

use super::{Alarm, AlarmKind, FailedReviewSetup, Moment, tried_again};
use crate::command_line::{OPEN, liza};

/// One for each task whose review cannot be set up, and one for any other checkout.
pub(super) fn alarms(at: Moment<'_>) -> Vec<Alarm> {
    let Some(config) = at.config().filter(|config| config.setup.is_some() || !config.copy.is_empty()) else {
        return Vec::new();
    };
    let reviews: Vec<_> =
        at.seen.review_setups.iter().filter(|(task, failed)| is_open(at.state, task, failed)).collect();
    let other = at.seen.setup_failure.as_ref().map(|why| {
        let text = format!("{why}. {}; no task is blamed", tried_again(at));
        let setting = if config.setup.is_some() { "setup" } else { "copy" };
        Alarm::new(AlarmKind::SetupFailed, "setup", text).answered(liza!("config", setting, OPEN))
    });
    let of_task = |(task, failed): &(&TaskId, &FailedReviewSetup)| {
        let text = format!(
            "{task} cannot be reviewed: {} (failed {}). Other tasks come first; if it fails {} times and succeeds on the \
             integration branch, {task} goes back to its coder",
            failed.message,
            count(failed.count as usize, "time"),
            FailedReviewSetup::LIMIT,
        );
        Alarm::new(AlarmKind::SetupFailed, task, text).about(*task).answered(liza!("show", task))
    };
    reviews.iter().map(of_task).chain(other).collect()
}

/// True if the commit that could not be set up still waits for its review.
fn is_open(state: &State, task: &TaskId, failed: &FailedReviewSetup) -> bool {
    let status = state.board.task(task).map(|task| task.status);
    matches!(status, Ok(TaskStatus::ReadyForReview { commit, .. }) if commit == failed.commit)
}

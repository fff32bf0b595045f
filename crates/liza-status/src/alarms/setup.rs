//! New checkouts that cannot be set up, so that no session starts in them.

use liza_core::model::{State, TaskId, TaskStatus};
use liza_core::text::count;

use super::{Alarm, AlarmKind, AlarmSubject, FailedReviewSetup, Observations};
use crate::command_line::{CommandLine, OPEN, liza};

/// One for each task whose review cannot be set up, and one for any other checkout.
pub(super) fn alarms(state: &State, seen: &Observations) -> Vec<Alarm> {
    let config = state.board.config.ready();
    if !config.is_some_and(|config| config.setup.is_some() || !config.copy.is_empty()) {
        return Vec::new();
    }
    let reviews: Vec<_> =
        seen.review_setups.iter().filter(|(task, failed)| is_open(state, task, failed)).collect();
    let is_named = |why: &&String| reviews.iter().any(|(_, failed)| failed.message == **why);
    let other = seen.setup_failure.as_ref().filter(|why| !is_named(why)).map(|why| {
        let text = format!("{why}. Liza tries again by itself; no task is blamed");
        Alarm::critical(AlarmKind::SetupFailed, "setup", text)
    });
    let of_task = |(task, failed): &(&TaskId, &FailedReviewSetup)| {
        let text = format!(
            "{task} cannot be reviewed: {} (failed {}). Other tasks come first; if it fails {} times and succeeds on the \
             integration branch, {task} goes back to its coder",
            failed.message,
            count(failed.count as usize, "time"),
            FailedReviewSetup::LIMIT,
        );
        Alarm::critical(AlarmKind::SetupFailed, *task, text)
    };
    reviews.iter().map(of_task).chain(other).collect()
}

/// True if the commit that could not be set up still waits for its review.
fn is_open(state: &State, task: &TaskId, failed: &FailedReviewSetup) -> bool {
    let status = state.board.task(task).map(|task| task.status);
    matches!(status, Ok(TaskStatus::ReadyForReview { commit, .. }) if commit == failed.commit)
}

/// The command that answers such an alarm.
pub(crate) fn command(state: &State, subject: &AlarmSubject) -> CommandLine {
    if let Some(task) = subject.task() {
        return liza!("show", task);
    }
    let has_setup = state.board.config.ready().is_some_and(|config| config.setup.is_some());
    liza!("config", if has_setup { "setup" } else { "copy" }, OPEN)
}

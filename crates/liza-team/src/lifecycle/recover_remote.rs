//! The part of `recover` that concerns the git remote: merges and work that are only there, or only here.

use std::collections::BTreeSet;

use liza_core::model::{Sha, Status, TaskId, TaskStatus};

use crate::engine::{Engine, EngineError, Exchange};

use super::recovery_report::{FindingKind, RecoveryReport};
use super::shared_merge::record_found_merges;
use super::take_work::generation_of;

/// Moves the integration branch to the remote's, and records merges that are only there.
pub(super) fn follow_remote(
    engine: &Engine<'_>,
    exchange: &Exchange<'_>,
    may_record: bool,
    report: &mut RecoveryReport,
) -> Result<(), EngineError> {
    let result = exchange.follow().and_then(|followed| match may_record {
        true => record_found_merges(engine, &followed.head),
        false => Ok(Vec::new()),
    });
    match result {
        Ok(tasks) => {
            let found = "APPROVED, but its merge is on the remote";
            tasks
                .into_iter()
                .for_each(|task| report.repaired(FindingKind::Merge, task, found, "recorded as MERGED"));
        }
        Err(error @ EngineError::Store(_)) => return Err(error),
        Err(error) => report.left(FindingKind::Remote, exchange.remote(), "work cannot be exchanged", error),
    }
    Ok(())
}

/// Removes references of tasks that are over from the remote, and sends submitted work that it lacks.
pub(super) fn repair_remote(
    engine: &Engine<'_>,
    exchange: &Exchange<'_>,
    report: &mut RecoveryReport,
) -> Result<(), EngineError> {
    let board = engine.snapshot()?.board;
    // A remote that does not answer is reported already.
    let Ok(listed) = exchange.tasks_on_remote() else { return Ok(()) };
    let tasks: BTreeSet<&TaskId> = listed.iter().map(|(task, _)| task).collect();
    for task in tasks.into_iter().filter(|task| board.status(task).is_some_and(Status::is_terminal)) {
        if let Err(error) = exchange.clear_task(task) {
            report.left(FindingKind::Remote, task, "its references are on the remote", error);
        }
    }
    let is_there = |commit: &Sha| listed.iter().any(|(_, at)| at == commit);
    for task in board.tasks.keys() {
        let Ok(status) = board.task(task).map(|task| task.status) else { continue };
        let (TaskStatus::ReadyForReview { commit, .. } | TaskStatus::Approved { commit, .. }) = status else {
            continue;
        };
        if is_there(&commit) || !engine.repo()?.has_commit(&commit)? {
            continue;
        }
        let found = "its submitted commit is not on the remote";
        let sent = match exchange.has_submission(task, &commit) {
            Ok(true) => continue,
            Ok(false) => {
                exchange.sender(task).and_then(|sender| sender.restore(generation_of(&board, task), &commit))
            }
            Err(error) => Err(error),
        };
        match sent {
            Ok(true) => report.repaired(FindingKind::Remote, task, found, "sent"),
            Ok(false) => {
                let why = "its reference there has other work, which is kept; submit the commit again";
                report.left(FindingKind::Remote, task, found, why);
            }
            Err(error) => report.left(FindingKind::Remote, task, found, error),
        }
    }
    Ok(())
}

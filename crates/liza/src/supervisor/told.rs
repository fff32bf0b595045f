//! What a session came to, in words for people.

use liza_core::State;
use liza_core::agent::Role;
use liza_core::event::one_line;
use liza_core::goal::GoalStatus;
use liza_core::ids::TaskId;
use liza_core::record::{Status, TaskRecord};
use liza_core::supervise::Session;

/// As much of a reason as a line holds.
const REASON_MAX: usize = 100;

/// What came of it, where something did.
pub(super) fn of_session(state: &State, session: &Session, progress: bool) -> Option<String> {
    match &session.task {
        None => of_planning(state, session),
        Some(task) if progress => {
            let record = &state.board.body(task).ok()?.record;
            Some(of_work(task, record, session.agent.role()))
        }
        Some(_) => None,
    }
}

fn of_planning(state: &State, session: &Session) -> Option<String> {
    if state.board.revision <= session.began_at {
        return None;
    }
    let open = state.board.heads().filter(|head| !head.status.is_some_and(Status::is_terminal)).count();
    let all = state.board.tasks.len();
    match state.board.goal.ready().map(|goal| goal.status) {
        Some(GoalStatus::Completed) => Some("the goal is reached".to_owned()),
        Some(GoalStatus::Aborted) => Some("the goal was aborted".to_owned()),
        Some(GoalStatus::InProgress) | None => Some(format!("the plan has {all} tasks, {open} of them open")),
    }
}

fn of_work(task: &TaskId, record: &TaskRecord, role: Role) -> String {
    let commit = record.review_commit.as_ref().map_or("?", |commit| commit.short());
    let text = |text: &Option<String>| one_line(text.as_deref().unwrap_or("?"), REASON_MAX);
    match (role, record.status) {
        (_, Some(Status::Claimed)) => format!("{task} handed over to its next session"),
        (_, Some(Status::Blocked)) => format!("{task} BLOCKED: {}", text(&record.blocked_reason)),
        (Role::CodeReviewer, Some(Status::Approved)) => format!("{task} APPROVED at {commit}"),
        (Role::CodeReviewer, Some(Status::Rejected)) => {
            format!("{task} REJECTED: {}", one_line(blocker(record), REASON_MAX))
        }
        (Role::Coder, Some(Status::ReadyForReview)) => format!("{task} submitted for review at {commit}"),
        (_, Some(status)) => format!("{task} is {status} by now"),
        (_, None) => format!("{task} has left its hands"),
    }
}

/// The first thing that stands in the way, where the rejection has the proper format.
fn blocker(record: &TaskRecord) -> &str {
    let reason = record.rejection_reason.as_deref().unwrap_or("?");
    let line = reason.lines().find_map(|line| line.split_once("[blocker] "));
    line.map_or(reason, |(_, issue)| issue)
}

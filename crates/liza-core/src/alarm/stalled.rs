//! The alarm that nothing moves, with the reason as far as the blackboard tells.

use crate::agent::Role;
use crate::board::State;
use crate::goal::GoalStatus;
use crate::record::Status;
use crate::time::Timestamp;

use super::{Alarm, STALE, Sightings};

/// Nothing has happened for half an hour, although there is work and nobody asked everybody to stop.
pub(super) fn alarm(state: &State, seen: &Sightings, now: Timestamp) -> Option<Alarm> {
    let goal = state.board.goal.ready()?;
    let stopped = seen.pause_since.is_some() || seen.checkpoint_since.is_some();
    if goal.status != GoalStatus::InProgress || stopped {
        return None;
    }
    let since = seen.last_progress.or(goal.created)?;
    let idle = now.since(since);
    if idle <= STALE {
        return None;
    }
    let text = format!("no progress for {idle} — {}", reason(state, now)?);
    Some(Alarm::warning("STALLED", since, text))
}

/// Why nothing moves; nothing where there is nothing to do.
fn reason(state: &State, now: Timestamp) -> Option<String> {
    let count = |status: Status| state.board.heads().filter(|head| head.is(status)).count();
    let here = |role: Role| {
        let mut agents = state.board.agents.ready().into_iter().flatten();
        agents.any(|(_, entry)| entry.role == role && entry.holds(now))
    };
    let open = state.board.heads().filter(|head| !head.status.is_some_and(Status::is_terminal)).count();
    if open == 0 && state.board.tasks.is_empty() {
        let planner =
            if here(Role::Planner) { "the planner has not planned yet" } else { "no planner is running" };
        return Some(planner.to_owned());
    }
    if open == 0 {
        return None;
    }
    let to_review = count(Status::ReadyForReview) + count(Status::Approved);
    let to_code = count(Status::Unclaimed) + count(Status::Rejected) + count(Status::IntegrationFailed);
    let to_plan = count(Status::Draft) + count(Status::Blocked);
    Some(if to_review > 0 && !here(Role::CodeReviewer) {
        format!("{to_review} task(s) wait for review or merge and no code reviewer is running")
    } else if to_code > 0 && !here(Role::Coder) {
        format!("{to_code} task(s) wait for a coder and none is running")
    } else if to_plan > 0 && !here(Role::Planner) {
        format!("{to_plan} task(s) wait for the planner and none is running")
    } else if count(Status::Blocked) == open {
        "every open task is blocked".to_owned()
    } else if to_review > 0 {
        format!("{to_review} task(s) wait for review or merge")
    } else {
        format!("{open} open task(s); see liza status")
    })
}

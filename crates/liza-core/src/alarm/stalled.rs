//! The alarm that nothing moves, with the reason as far as the blackboard tells.

use crate::agent::Role;
use crate::board::{Head, State};
use crate::claimable::claimable;
use crate::goal::{Goal, GoalStatus};
use crate::record::Status;
use crate::sprint::SprintStatus;
use crate::time::Timestamp;

use super::{Alarm, STALE, Sightings};

/// Nothing has happened for half an hour, although there is work and nobody asked everybody to stop.
pub(super) fn alarm(state: &State, seen: &Sightings, now: Timestamp) -> Option<Alarm> {
    let goal = state.board.goal.ready()?;
    // A stop that has just been taken away by hand may still stand on the blackboard: that it is over is not logged yet.
    let known = state.board.sprint.ready().is_some_and(|sprint| {
        sprint.status == SprintStatus::Checkpoint || sprint.timeline.paused_at.is_some()
    });
    let stopped = known || seen.pause_since.is_some() || seen.checkpoint_since.is_some();
    if goal.status != GoalStatus::InProgress || stopped {
        return None;
    }
    let since = seen.last_progress.or(goal.created)?;
    let idle = now.since(since);
    if idle <= STALE {
        return None;
    }
    let text = format!("no progress for {idle} — {}", reason(state, goal, now));
    Some(Alarm::warning("STALLED", &goal.id, text).since(since))
}

/// Why nothing moves: who is missing, else what everybody waits for.
fn reason(state: &State, goal: &Goal, now: Timestamp) -> String {
    let count = |status: Status| state.board.heads().filter(|head| head.is(status)).count();
    let open = state.board.heads().filter(|head| !head.status.is_some_and(Status::is_terminal)).count();
    if open == 0 {
        return nothing_open(state, goal, now);
    }
    let to_code = claimable(&state.board, now).len();
    let to_review = count(Status::ReadyForReview) + count(Status::Approved);
    let to_plan = count(Status::Draft) + count(Status::Blocked);
    let missing = [
        (to_review, Role::CodeReviewer, "wait for review or merge and no code reviewer is running"),
        (to_code, Role::Coder, "wait for a coder and none is running"),
        (to_plan, Role::Planner, "wait for the planner and none is running"),
    ];
    let missing = missing.into_iter().filter(|(count, role, _)| *count > 0 && !is_here(state, *role, now));
    let missing: Vec<String> = missing.map(|(count, _, what)| format!("{count} task(s) {what}")).collect();
    if !missing.is_empty() {
        return missing.join("; ");
    }
    if count(Status::Blocked) == open {
        return "every open task is blocked; the planner or you must decide: liza status".to_owned();
    }
    match in_work(state, now) {
        Some(work) => work,
        None if to_review > 0 => format!("{to_review} task(s) wait for review or merge"),
        None if to_code > 0 => format!("{to_code} task(s) can be claimed and no coder takes them"),
        None if to_plan > 0 => format!("{to_plan} task(s) wait for the planner"),
        None => format!("{open} open task(s) wait for others that are not merged"),
    }
}

/// With no open task it is for the planner to plan or judge, or for the human to say what is wanted.
fn nothing_open(state: &State, goal: &Goal, now: Timestamp) -> String {
    let planner = is_here(state, Role::Planner, now);
    let reason = match (goal.description.trim().is_empty(), state.board.tasks.is_empty(), planner) {
        (true, _, _) => "waiting for a human: no goal is stated; liza goal new \"GOAL\"",
        (false, true, true) => "the planner has not planned yet",
        (false, true, false) => "nothing is planned and no planner is running",
        (false, false, true) => "every task is over and the planner has not judged the goal",
        (false, false, false) => {
            "waiting for a human: every task is over, no planner is running; liza goal complete, or add tasks"
        }
    };
    reason.to_owned()
}

fn is_here(state: &State, role: Role, now: Timestamp) -> bool {
    let mut agents = state.board.agents.ready().into_iter().flatten();
    agents.any(|(_, entry)| entry.role == role && entry.holds(now))
}

/// Who is at what, where somebody is at something.
fn in_work(state: &State, now: Timestamp) -> Option<String> {
    let live = |lease: Option<Timestamp>| lease.is_some_and(|lease| now <= lease);
    let holder = |head: &Head| match head.status {
        Some(Status::Claimed) => head.assigned_to.filter(|_| live(head.lease_expires)),
        Some(Status::ReadyForReview) => head.reviewing_by.filter(|_| live(head.review_lease_expires)),
        Some(
            Status::Draft
            | Status::Unclaimed
            | Status::Rejected
            | Status::Approved
            | Status::Merged
            | Status::Blocked
            | Status::Abandoned
            | Status::Superseded
            | Status::IntegrationFailed,
        )
        | None => None,
    };
    let work: Vec<String> =
        state.board.heads().filter_map(|head| Some(format!("{} by {}", head.id, holder(head)?))).collect();
    let first = work.first()?;
    let more = if work.len() > 1 { format!(" and {} more", work.len() - 1) } else { String::new() };
    Some(format!("in work without a result: {first}{more}"))
}

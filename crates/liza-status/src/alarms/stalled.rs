//! The alarm that nothing moves, with the reason as far as the blackboard shows it.

use liza_core::model::{
    AgentId, Goal, Role, SprintStatus, State, Status, TaskStatus, Timestamp, lease_is_live,
};
use liza_core::rules::claimable::claimable;
use liza_core::rules::presence::Presence;
use liza_core::text::count;

use super::stops::STALE;
use super::{Alarm, AlarmKind, Moment};

/// Nothing has happened for half an hour, although there is work and nothing stops it.
pub(super) fn alarm(at: Moment<'_>) -> Option<Alarm> {
    let goal = at.open_goal()?;
    // A stop file that was just removed by hand may still be on the blackboard: its end is not logged yet.
    let known = at.sprint().is_some_and(|sprint| {
        sprint.status == SprintStatus::Checkpoint || sprint.timeline.paused_at.is_some()
    });
    if known || at.seen.stop_files.pause.is_some() || at.seen.stop_files.checkpoint.is_some() {
        return None;
    }
    let since = at.seen.last_progress.or(goal.created)?;
    let idle = at.now.since(since);
    let text = || format!("no progress for {idle} — {}", reason(at, goal));
    (idle > STALE).then(|| Alarm::new(AlarmKind::Stalled, &goal.id, text()).since(since))
}

/// The reason that nothing moves: the missing role, else the work that everything waits for.
fn reason(at: Moment<'_>, goal: &Goal) -> String {
    let Moment { state, seen, now } = at;
    let here = at.here();
    let in_status = |status: Status| state.board.in_status(status).count();
    let ended = |status: Option<Status>| status.is_some_and(Status::is_terminal);
    let open = state.board.summaries().filter(|summary| !ended(summary.status)).count();
    if open == 0 {
        return nothing_open(state, goal, here).to_owned();
    }
    let to_code = seen.found_merges().without_waiting(claimable(&state.board, now)).len();
    let to_review = in_status(Status::ReadyForReview) + in_status(Status::Approved);
    let to_plan = in_status(Status::Draft) + in_status(Status::Blocked);
    let missing = [
        (to_review, Role::CodeReviewer, "for review or merge, and no code reviewer is running"),
        (to_code, Role::Coder, "for a coder, and none is running"),
        (to_plan, Role::Planner, "for the planner, and none is running"),
    ];
    let missing = missing.into_iter().filter(|(tasks, role, _)| *tasks > 0 && !here.has_role(*role));
    let missing: Vec<String> = missing.map(|(tasks, _, what)| waiting(tasks, what)).collect();
    if !missing.is_empty() {
        return missing.join("; ");
    }
    if in_status(Status::Blocked) == open {
        return "every open task is blocked; the planner or you must decide: liza status".to_owned();
    }
    match in_work(state, now) {
        Some(work) => work,
        None if !seen.found_merges().is_empty() => {
            let found = seen.found_merges().tasks().count();
            waiting(found, "for you, merged before and not recorded: liza accept-integration")
        }
        None if to_review > 0 => waiting(to_review, "for review or merge"),
        None if to_code > 0 => waiting(to_code, "to be claimed, and no coder takes it"),
        None if to_plan > 0 => waiting(to_plan, "for the planner"),
        None => waiting(open, "for others that are not merged"),
    }
}

fn waiting(tasks: usize, what: &str) -> String {
    let verb = if tasks == 1 { "waits" } else { "wait" };
    format!("{} {verb} {what}", count(tasks, "task"))
}

/// With no open task, the planner has to plan or to judge the goal, or the human has to state one.
fn nothing_open(state: &State, goal: &Goal, here: Presence<'_>) -> &'static str {
    let planner = here.has_role(Role::Planner);
    match (goal.description.trim().is_empty(), state.board.tasks.is_empty(), planner) {
        (true, _, _) => "waiting for a human: there is no goal; liza goal new \"GOAL\"",
        (false, true, true) => "the planner has not planned yet",
        (false, true, false) => "nothing is planned and no planner is running",
        (false, false, true) => "every task has ended and the planner has not judged the goal",
        (false, false, false) => {
            "waiting for a human: every task has ended, no planner is running; liza goal complete, or add tasks"
        }
    }
}

/// The agents at work and their tasks, if there are any.
fn in_work(state: &State, now: Timestamp) -> Option<String> {
    let holder = |status: &TaskStatus| -> Option<AgentId> {
        let claim =
            status.claim().filter(|(_, lease)| lease_is_live(*lease, now)).map(|(work, _)| work.coder);
        claim.or(status.review().filter(|review| review.is_live(now)).map(|review| review.by))
    };
    let work =
        state.bodies().filter_map(|(id, body)| Some(format!("{id} by {}", holder(body.status().ok()?)?)));
    let work: Vec<String> = work.collect();
    let first = work.first()?;
    let more = if work.len() > 1 { format!(" and {} more", work.len() - 1) } else { String::new() };
    Some(format!("in progress without a result: {first}{more}"))
}

//! What a session came to, in words for people.

use liza_core::model::{AgentId, GoalStatus, HistoryEvent, State, Status, TaskId, TaskRecord};
use liza_core::text::one_line;
use liza_core::watch::supervise::EndedSession;

/// As much of a reason as a line holds.
const REASON_MAX: usize = 100;

/// What came of it, where something did.
pub(super) fn of_session(state: &State, session: &EndedSession, progress: bool) -> Option<String> {
    match &session.task {
        None => of_planning(state, session),
        Some(task) if progress => {
            let record = &state.board.body(task).ok()?.record;
            Some(of_work(task, record, session.agent))
        }
        Some(_) => None,
    }
}

fn of_planning(state: &State, session: &EndedSession) -> Option<String> {
    if state.board.revision <= session.began_at {
        return None;
    }
    let open = state.board.summaries().filter(|head| !head.status.is_some_and(Status::is_terminal)).count();
    let all = state.board.tasks.len();
    match state.board.goal.ready().map(|goal| goal.status) {
        Some(GoalStatus::Completed) => Some("the goal is reached".to_owned()),
        Some(GoalStatus::Aborted) => Some("the goal was aborted".to_owned()),
        Some(GoalStatus::InProgress) | None => Some(plan_in_words(all, open)),
    }
}

fn plan_in_words(all: usize, open: usize) -> String {
    match (all, open) {
        (0, _) => "there are no tasks yet".to_owned(),
        (1, 1) => "the plan has 1 task, which is open".to_owned(),
        (1, _) => "the plan has 1 task, which is over".to_owned(),
        _ => format!("the plan has {all} tasks, {open} of them open"),
    }
}

/// The last thing that the agent did to the task, whatever others have done to it since.
fn of_work(task: &TaskId, record: &TaskRecord, agent: AgentId) -> String {
    let name = agent.to_string();
    let own = |event: &&HistoryEvent| event.agent.as_deref() == Some(&name);
    let Some(event) = record.history.iter().flatten().rev().find(own) else {
        return format!("{task} has left its hands");
    };
    let word = |key: &str| event.more.get(key).map(ToString::to_string).unwrap_or_default();
    let commit = || word("commit").chars().take(8).collect::<String>();
    let reason = || one_line(blocker(&word("reason")), REASON_MAX);
    match event.event.as_str() {
        "ready_for_review" => format!("{task} submitted for review at {}", commit()),
        "approved" => format!("{task} APPROVED at {}", commit()),
        "rejected" => format!("{task} REJECTED: {}", reason()),
        "blocked" => format!("{task} BLOCKED: {}", reason()),
        "handoff" => format!("{task} handed over to its next session"),
        other => format!("{task}: {other}"),
    }
}

/// The first thing that stands in the way, where a rejection has the proper format.
fn blocker(reason: &str) -> &str {
    let line = reason.lines().find_map(|line| line.split_once("[blocker] "));
    line.map_or(reason, |(_, issue)| issue)
}

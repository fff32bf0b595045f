//! The end and the achievement of a session, in one line.

use std::path::PathBuf;

use liza_agents::providers::guard::GuardStop;
use liza_agents::providers::stream::ClientOutcome;
use liza_core::model::FIRST_OF;
use liza_core::model::{
    AgentId, AgentRecord, EventName, GoalStatus, HistoryEvent, Repair, Revision, Role, Sha, State, Status,
    TaskId, TaskRecord, Timestamp,
};
use liza_core::rules::sessions::{decided_since, ending_session};
use liza_core::rules::triggers::{Trigger, TriggerKind, lacks_plan};
use liza_core::supervise::{EXIT_RESTART, EndedSession, SessionEnd};
use liza_core::text::{count, one_line};

use super::file_modes::FileModes;
use super::member::UsageToRecord;
use super::session::Session;

const REASON_MAX: usize = 100;

#[derive(Debug, Clone)]
pub(super) struct EndedRun {
    pub session: EndedSession,
    pub end: SessionEnd,
    /// True if approved work is merged at once, because its agent ends now.
    pub merges: bool,
    /// The commit of a coder's worktree when it began.
    pub head: Option<Sha>,
    pub output: Option<PathBuf>,
    /// The project's own checkout when it began, if the session must not change it.
    pub checkout: Option<String>,
    /// The modes of Liza's files when it began.
    pub modes: FileModes,
    pub usage: UsageToRecord,
    pub client: String,
    /// The human's next step if the client is not logged in.
    pub login: Option<Repair>,
    pub started: Timestamp,
    /// The commit of a coder, if it is known.
    pub unsubmitted: Option<Sha>,
    pub exit: SessionEnd,
    pub guard: Option<GuardStop>,
    /// Its login was refused, and the person has another one now.
    pub has_new_login: bool,
    /// The end that the client itself reported.
    pub outcome: ClientOutcome,
}

/// The end of a session, for a line that begins with its client: `exited 1`.
fn end_text(end: SessionEnd, exit: SessionEnd) -> String {
    match (end, exit) {
        (SessionEnd::OverTime, _) => "was stopped because it ran too long".to_owned(),
        (SessionEnd::Stopped, _) => "was stopped".to_owned(),
        // The code by which an agent says that its turn is over.
        (_, SessionEnd::Code(EXIT_RESTART)) => "ended".to_owned(),
        (_, SessionEnd::Code(code)) => format!("exited {code}"),
        (_, SessionEnd::Signal(signal)) => format!("was killed by signal {signal}"),
        (_, SessionEnd::Stopped | SessionEnd::OverTime) => "ended".to_owned(),
    }
}

/// The session continues with another login, which is not its task's fault.
const NEW_LOGIN: &str = " and starts again with your present login";

impl EndedRun {
    /// The end and its gaps, for a line that begins with the client.
    pub(super) fn end_text(&self, progress: bool) -> String {
        if let Some(guard) = self.guard {
            return format!("was stopped: {}", guard.reason());
        }
        let more = match self.has_new_login && !progress {
            true => NEW_LOGIN,
            false => lacking(&self.session, progress, self.end),
        };
        end_text(self.end, self.exit) + more
    }
}

/// The missing result of a planner's session that ended by itself.
fn lacking(session: &EndedSession, progress: bool, end: SessionEnd) -> &'static str {
    let is_planner = session.task.is_none() && session.agent.role() == Role::Planner;
    if progress || !is_planner || session.triggers.is_empty() || end != SessionEnd::Code(0) {
        return "";
    }
    match session.triggers.iter().any(|trigger| trigger.kind == TriggerKind::InitialPlanning) {
        true => " and left no plan",
        false => " and decided nothing",
    }
}

/// The session's achievement and its time, if the blackboard has them; `None` if there is none.
pub(super) fn session_result(
    state: &State,
    session: &EndedSession,
    progress: bool,
) -> Option<(Option<Timestamp>, String)> {
    match &session.task {
        None => plan_result(state, session.began_at, &session.triggers).map(|text| (None, text)),
        Some(task) if progress => {
            let record = state.board.body(task).ok()?.record();
            Some(task_result(task, record, session.agent))
        }
        Some(_) => None,
    }
}

/// The achievement of a running session that only has to end.
pub(super) fn early_result(
    state: &State,
    agent: AgentId,
    session: &Session,
    now: Timestamp,
) -> Option<(Option<Timestamp>, String)> {
    let entry = state.board.agents.ready()?.get(&agent)?;
    let Some(task) = &session.task else {
        return early_plan(state, entry, (session.began_at, &session.triggers), now);
    };
    let (done, _) = ending_session(&state.board, agent, entry).filter(|(done, _)| done == task)?;
    Some(task_result(&done, state.board.body(&done).ok()?.record(), agent))
}

/// The decision of a planner's session that has not ended yet, and its time.
fn early_plan(
    state: &State,
    entry: &AgentRecord,
    (began_at, triggers): (Revision, &[Trigger]),
    now: Timestamp,
) -> Option<(Option<Timestamp>, String)> {
    let decided = decided_since(state, entry, now)?;
    plan_result(state, began_at, triggers).map(|text| (Some(decided), text))
}

fn plan_result(state: &State, began_at: Revision, triggers: &[Trigger]) -> Option<String> {
    if state.board.revision <= began_at {
        return None;
    }
    let is_open = |status: Option<Status>| !status.is_some_and(Status::is_terminal);
    let open = state.board.summaries().filter(|summary| is_open(summary.status)).count();
    match state.board.goal.ready().map(|goal| goal.status) {
        Some(GoalStatus::Completed) => Some("goal COMPLETED".to_owned()),
        Some(GoalStatus::Aborted) => Some("goal ABORTED".to_owned()),
        Some(GoalStatus::InProgress) | None => {
            if let Some(said) = looked_at(state, triggers) {
                return Some(said);
            }
            let drafts = state.board.in_status(Status::Draft).count();
            Some(match state.board.tasks.len() {
                0 => "no tasks yet".to_owned(),
                _ if drafts > 0 && lacks_plan(state) => {
                    format!("{} so far; the plan is not finished", count(drafts, "draft"))
                }
                all => format!("the plan has {}, {open} open", count(all, "task")),
            })
        }
    }
}

/// The fate of the tasks that the planner was woken to look at; `None` if it was woken for something else too.
fn looked_at(state: &State, triggers: &[Trigger]) -> Option<String> {
    if triggers.is_empty() || triggers.iter().any(|trigger| trigger.kind != TriggerKind::BlockedTasks) {
        return None;
    }
    let status = |trigger: &Trigger| state.board.status(&trigger.subject.parse().ok()?);
    // The one who ended the block: since then others may have taken the task.
    let by_human = |trigger: &Trigger| {
        let task: Option<TaskId> = trigger.subject.parse().ok();
        let body = task.and_then(|task| state.board.body(&task).ok());
        let events = body.into_iter().flat_map(|body| body.record().events().rev());
        let since: Vec<&HistoryEvent> = events.take_while(|event| !event.is(EventName::Blocked)).collect();
        since.last().is_some_and(|event| event.agent.as_deref() == Some("human"))
    };
    let named = |trigger: &Trigger| {
        let task = &trigger.subject;
        Some(match status(trigger)? {
            // The human's decision is in the log already.
            status if status != Status::Blocked && by_human(trigger) => return None,
            Status::Blocked => format!("leaves {task} to you"),
            Status::Superseded => format!("replaces {task}"),
            Status::Abandoned => format!("abandons {task}"),
            Status::Draft
            | Status::Unclaimed
            | Status::Claimed
            | Status::ReadyForReview
            | Status::Rejected
            | Status::Approved
            | Status::Merged
            | Status::IntegrationFailed => format!("lets {task} continue"),
        })
    };
    let said: Vec<String> = triggers.iter().filter_map(named).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// The agent's last action on the task; later actions of others don't matter.
fn task_result(task: &TaskId, record: &TaskRecord, agent: AgentId) -> (Option<Timestamp>, String) {
    let name = agent.to_string();
    let own =
        |event: &&HistoryEvent| event.agent.as_deref() == Some(&name) && !event.is(EventName::SessionEnded);
    let Some(event) = record.events().rev().find(own) else {
        return (None, format!("{task} belongs to another agent now"));
    };
    let field = |key: &str| event.more.get(key).map(ToString::to_string).unwrap_or_default();
    let commit = || field("commit").chars().take(8).collect::<String>();
    let reason = || one_line(first_blocker(&field("reason")), REASON_MAX);
    let text = match event.name() {
        Some(EventName::ReadyForReview) => format!("{task} submitted for review at {}", commit()),
        Some(EventName::Approved) if event.more.contains_key(FIRST_OF) => {
            format!("{task} approved at {}, by the first of two code reviewers", commit())
        }
        Some(EventName::Approved) => format!("{task} APPROVED at {}", commit()),
        Some(EventName::Rejected) => format!("{task} REJECTED: {}", reason()),
        Some(EventName::Blocked) => format!("{task} BLOCKED: {}", reason()),
        Some(EventName::Handoff) => format!("{task} handed off to its next session"),
        // It says something about now, not about the time of that event.
        Some(_) | None if agent.role() == Role::CodeReviewer => {
            return (None, format!("{task}: no verdict yet"));
        }
        Some(_) | None => return (None, format!("{task}: not submitted yet, its work is kept")),
    };
    (Some(event.time), text)
}

/// The first blocker of a rejection that has the expected format.
fn first_blocker(reason: &str) -> &str {
    let line = reason.lines().find_map(|line| line.split_once("[blocker] "));
    line.map_or(reason, |(_, issue)| issue)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: UI-03
    #[test]
    fn a_planner_that_has_looked_at_a_question_says_what_became_of_it() {
        let mut state = State::default();
        let about = |task: &str| Trigger {
            kind: TriggerKind::BlockedTasks,
            subject: task.to_owned(),
            detail: String::new(),
            key: String::new(),
        };
        let id = |task: &str| task.parse::<TaskId>().unwrap();
        let put = |state: &mut State, task: &str, status: Status| {
            state.board.put(id(task), TaskRecord { status: Some(status), ..TaskRecord::default() });
        };
        put(&mut state, "csv", Status::Blocked);
        put(&mut state, "page", Status::Unclaimed);
        assert_eq!(looked_at(&state, &[about("csv")]).as_deref(), Some("leaves csv to you"));
        assert_eq!(
            looked_at(&state, &[about("page"), about("csv")]).as_deref(),
            Some("lets page continue; leaves csv to you")
        );
        let initial = Trigger { kind: TriggerKind::InitialPlanning, ..about("goal-1") };
        assert_eq!(looked_at(&state, &[initial, about("csv")]), None);
        // The human's answers are not the planner's, even if a coder has taken the task since.
        let answered = |by: &str| {
            let event = |name: &str, by: &str| {
                format!(r#"{{"time": "2026-01-17T14:00:00Z", "event": "{name}", "agent": "{by}"}}"#)
            };
            let events = [event("blocked", "coder-1"), event("unblocked", by), event("claimed", "coder-2")];
            let history = serde_json::from_str(&format!("[{}]", events.join(","))).unwrap();
            let status = Some(Status::Claimed);
            TaskRecord { status, history, ..TaskRecord::default() }
        };
        state.board.put(id("page"), answered("human"));
        assert_eq!(looked_at(&state, &[about("page")]), None);
        state.board.put(id("page"), answered("planner-1"));
        assert_eq!(looked_at(&state, &[about("page")]).as_deref(), Some("lets page continue"));
    }

    /// Covers: UI-03
    #[test]
    fn what_a_planner_has_decided_is_known_before_its_session_ends() {
        let entry = |session: &str| -> AgentRecord {
            let entry = format!(r#"{{"role": "planner", "status": "PLANNING", "session": {session}}}"#);
            serde_json::from_str(&entry).unwrap()
        };
        let now: Timestamp = "2026-01-17T14:00:40Z".parse().unwrap();
        let mut state = State::default();
        state.board.revision = Revision(9);
        let early = |entry: &AgentRecord| early_plan(&state, entry, (Revision(5), &[]), now);
        assert_eq!(early(&entry(r#"{"began": "2026-01-17T14:00:00Z"}"#)), None);
        let decided = entry(r#"{"began": "2026-01-17T14:00:00Z", "result": "2026-01-17T14:00:09Z"}"#);
        let (happened, text) = early(&decided).unwrap();
        assert_eq!(happened.map(|time| time.to_string()).as_deref(), Some("2026-01-17T14:00:09Z"));
        assert_eq!(text, "no tasks yet");
    }

    /// Covers: UI-03
    #[test]
    fn a_session_that_submitted_nothing_is_described_in_words() {
        let history = |agent: &str| {
            let event =
                r#"{"time": "2026-01-17T14:00:00Z", "event": "pre_execution_checkpoint", "agent": "AGENT"}"#;
            serde_json::from_str(&format!("[{}]", event.replace("AGENT", agent))).unwrap()
        };
        let said = |agent: &str| {
            let record = TaskRecord { history: history(agent), ..TaskRecord::default() };
            task_result(&"t".parse().unwrap(), &record, agent.parse().unwrap()).1
        };
        assert_eq!(said("coder-1"), "t: not submitted yet, its work is kept");
        assert_eq!(said("code-reviewer-1"), "t: no verdict yet");
    }

    /// Covers: UI-03
    #[test]
    fn a_result_has_the_time_at_which_it_happened() {
        let history = r#"[{"time": "2026-01-17T14:00:00Z", "event": "rejected", "agent": "code-reviewer-1", "reason": "no"},
            {"time": "2026-01-17T14:00:09Z", "event": "session_ended", "agent": "code-reviewer-1"}]"#;
        let record = TaskRecord { history: serde_json::from_str(history).unwrap(), ..TaskRecord::default() };
        let (happened, text) =
            task_result(&"t".parse().unwrap(), &record, "code-reviewer-1".parse().unwrap());
        assert_eq!(happened.map(|time| time.to_string()).as_deref(), Some("2026-01-17T14:00:00Z"));
        assert_eq!(text, "t REJECTED: no");
    }
}

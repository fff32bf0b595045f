//! The next step after an agent's session has ended.

use crate::model::{
    AgentId, AgentStatus, FaultKind, GoalStatus, ModelEnd, ModelPart, RefusedResult, Revision, Role, Seconds,
    State, TaskBody, TaskId,
};
use crate::protocol::{
    Command, CountExit, CountPlannerExit, MarkTriggersSeen, RefundSession, ReleaseReview, SetStatus,
    UnproductiveExit,
};
use crate::rules::questions::open_questions;
use crate::rules::triggers::{Trigger, TriggerKind, in_words, lacks_plan};

use super::failed_planning;
use super::running::is_done;

/// The ending of a session, as the operating system and the supervisor report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    Code(i32),
    /// By this signal, which the supervisor did not send.
    Signal(i32),
    /// The supervisor stopped it, for PAUSE, CHECKPOINT or its own end.
    Stopped,
    /// The supervisor stopped it because it ran too long.
    OverTime,
}

/// The exit code by which an agent asks to be started again.
pub const EXIT_RESTART: i32 = 42;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedSession {
    pub agent: AgentId,
    /// `None` for a planner.
    pub task: Option<TaskId>,
    /// The revision of the blackboard when it began.
    pub began_at: Revision,
    /// Crashes in a row before this one, of a code reviewer; others are on the blackboard.
    pub crashes_before: u32,
    /// The triggers that woke a planner, and those that also waited for it.
    pub triggers: Vec<Trigger>,
    /// True if a stop file was present when it ended.
    pub halted: bool,
    /// True if the git remote failed when it tried to submit.
    pub remote_failed: bool,
    pub has_commits: bool,
    /// The last result that it tried to record, if that was refused.
    pub refusal: Option<RefusedResult>,
    /// The reason it ended: a guard, a refusal, or the last lines that it printed.
    pub last_words: Option<String>,
    /// True if it failed by the fault of its client, which is held now.
    pub is_clients_fault: bool,
    pub model: ModelPart,
    /// The error that its client reported.
    pub fault: Option<FaultKind>,
}

impl EndedSession {
    /// One without crashes before it, work, refusals and faults.
    pub fn new(agent: AgentId, task: Option<TaskId>, began_at: Revision) -> Self {
        Self {
            agent,
            task,
            began_at,
            crashes_before: 0,
            triggers: Vec::new(),
            halted: false,
            remote_failed: false,
            has_commits: false,
            refusal: None,
            last_words: None,
            is_clients_fault: false,
            model: ModelPart::Unknown,
            fault: None,
        }
    }

    /// The behaviour of the model because of which it has no result; `None` if it ended for another reason.
    pub fn model_end(&self, end: SessionEnd) -> Option<ModelEnd> {
        let clean = matches!(end, SessionEnd::Code(0 | EXIT_RESTART));
        match (self.fault, self.model) {
            (Some(FaultKind::ContextFull), _) => Some(ModelEnd::ContextFull),
            (Some(FaultKind::Refused), _) => Some(ModelEnd::Refused),
            (Some(FaultKind::Crashed), _) => None,
            (_, ModelPart::Words) if clean => Some(ModelEnd::NoToolCall),
            (_, ModelPart::Tools) if clean => Some(ModelEnd::NothingRecorded),
            (_, ModelPart::Unknown | ModelPart::Silent | ModelPart::Words | ModelPart::Tools) => None,
        }
    }
}

/// The next step of the supervisor.
#[derive(Debug, Clone, PartialEq)]
pub struct AfterSession {
    /// The commands for the blackboard, sent first.
    pub record: Vec<Command>,
    /// The wait before it looks for work again.
    pub pause: Seconds,
    pub progress: bool,
}

/// The pause after exit 42, and after a clean exit without a result.
const BRIEF: Seconds = Seconds(2);
const FIRST_CRASH: Seconds = Seconds(5);
const LONGEST: Seconds = Seconds(300);

/// The pause after that many crashes in a row: 5 s, doubling, at most 5 min.
pub fn backoff(crashes: u32) -> Seconds {
    let doubled = FIRST_CRASH.0.checked_shl(crashes.saturating_sub(1).min(16)).unwrap_or(LONGEST.0);
    Seconds(doubled.min(LONGEST.0))
}

/// Judges a session: by the blackboard first, by its end last.
pub fn after_session(state: &State, session: &EndedSession, end: SessionEnd) -> AfterSession {
    let restarts = end == SessionEnd::Code(EXIT_RESTART);
    if has_result(state, session) {
        let pause = if restarts { BRIEF } else { Seconds(0) };
        return AfterSession { record: keep_result(state, session), pause, progress: true };
    }
    if session.is_clients_fault {
        return AfterSession { record: excused(state, session), pause: Seconds(0), progress: false };
    }
    // A program that could not record its result may say so by its exit code; it works.
    let refused = session.refusal.is_some() && matches!(end, SessionEnd::Code(_));
    let by_model = session.model_end(end);
    let clean = matches!(end, SessionEnd::Code(0 | EXIT_RESTART)) || refused || by_model.is_some();
    if end == SessionEnd::Stopped || session.remote_failed || (session.halted && clean) {
        return AfterSession { record: stopped(state, session), pause: Seconds(0), progress: false };
    }
    let exit = match (refused, by_model) {
        (true, _) => UnproductiveExit::Refused,
        (false, Some(cause)) => UnproductiveExit::ByModel(cause),
        (false, None) if clean => UnproductiveExit::Idle,
        (false, None) => UnproductiveExit::Crash,
    };
    let pause = match exit {
        UnproductiveExit::Crash => crash_pause(state, session),
        UnproductiveExit::Idle | UnproductiveExit::Refused | UnproductiveExit::ByModel(_) => {
            match session.agent.role() {
                Role::Planner if !restarts => crash_pause(state, session),
                Role::Planner | Role::Coder | Role::CodeReviewer => BRIEF,
            }
        }
    };
    // The next session continues from the commits, within the budget of the task. A refusal may come again.
    let is_counted = !clean || !session.has_commits || refused;
    let record = if is_counted { count(session, exit, pause) } else { Vec::new() };
    AfterSession { record, pause, progress: false }
}

/// A session that failed by the fault of its client is not charged to its budget, and counts against no
/// agent. A code reviewer gives the review back: one with another client can take it.
fn excused(state: &State, session: &EndedSession) -> Vec<Command> {
    let (agent, task) = (session.agent, session.task.clone());
    let mut record: Vec<Command> = vec![RefundSession { agent, task: task.clone() }.into()];
    match task {
        Some(task) if agent.role() == Role::CodeReviewer => {
            record.push(ReleaseReview { task, reviewer: agent }.into());
        }
        Some(_) | None => record.extend(release(state, session)),
    }
    record
}

/// A session that obeyed a stop file, or could not push its work, is not charged to its budget.
fn stopped(state: &State, session: &EndedSession) -> Vec<Command> {
    let refund = RefundSession { agent: session.agent, task: session.task.clone() };
    let refund = (session.halted || session.remote_failed).then(|| refund.into());
    refund.into_iter().chain(release(state, session)).collect()
}

/// The remaining steps after a session with a result.
fn keep_result(state: &State, session: &EndedSession) -> Vec<Command> {
    match &session.task {
        None => vec![MarkTriggersSeen { keys: seen_keys(state, session) }.into()],
        Some(task) => {
            let reviewer = session.agent;
            let reviews = |body: &TaskBody| body.record().reviewing_by == Some(reviewer);
            let keeps = state.board.body(task).is_ok_and(reviews) && !is_done(state, reviewer, Some(task));
            // A code reviewer that has asked the human gives the review back.
            let back = keeps.then(|| ReleaseReview { task: task.clone(), reviewer }.into());
            back.into_iter().chain(release(state, session)).collect()
        }
    }
}

/// The triggers that need not wake the planner again. One that handed off continues with all of them; those
/// that need a decision remain, unless the planner waits for the human.
fn seen_keys(state: &State, session: &EndedSession) -> Vec<String> {
    let entry = state.board.agents.ready().and_then(|agents| agents.get(&session.agent));
    let asked = open_questions(state).iter().any(|question| question.is_from(session.agent));
    if entry.is_some_and(|entry| entry.status == AgentStatus::Handoff) {
        return Vec::new();
    }
    let seen = session.triggers.iter().filter(|trigger| asked || !trigger.kind.needs_decision());
    seen.map(|trigger| trigger.key.clone()).collect()
}

/// Frees an agent whose entry still names the task although it was taken away, as an edit of the file does.
fn release(state: &State, session: &EndedSession) -> Vec<Command> {
    let agent = session.agent;
    let Some(task) = &session.task else { return Vec::new() };
    let named = state.board.held_by(agent) == Some(task);
    let held = state.board.summary(task).is_some_and(|summary| summary.is_held_by(agent));
    let free = SetStatus::new(agent, AgentStatus::Idle);
    if named && !held { vec![free.into()] } else { Vec::new() }
}

/// The pause after another crash. The last one blocks the task, so the agent waits only briefly.
fn crash_pause(state: &State, session: &EndedSession) -> Seconds {
    let crashes = exits_so_far(state, session) + 1;
    let limit = state.board.config.ready().map(|config| config.max_crashes);
    let is_last = session.task.is_some() && limit.is_some_and(|limit| crashes >= limit);
    if is_last { FIRST_CRASH } else { backoff(crashes) }
}

fn exits_so_far(state: &State, session: &EndedSession) -> u32 {
    let planner = || Some(failed_planning(state.board.sprint.ready()?, &session.triggers));
    let counted = match &session.task {
        None => planner(),
        Some(task) => state.board.body(task).ok().and_then(|body| body.record().crashes),
    };
    counted.unwrap_or(session.crashes_before)
}

/// Counts a session without a result. A code reviewer loses the review as well.
fn count(session: &EndedSession, exit: UnproductiveExit, pause: Seconds) -> Vec<Command> {
    let (agent, last_words) = (session.agent, session.last_words.clone());
    let Some(task) = session.task.clone() else {
        let woken_because = (!session.triggers.is_empty()).then(|| in_words(&session.triggers));
        let woken_for = session.triggers.iter().map(Trigger::matter).collect();
        return vec![CountPlannerExit { agent, last_words, woken_because, woken_for, pause }.into()];
    };
    vec![CountExit { task, agent, exit, last_words, pause }.into()]
}

/// True if the session did its work: the agent no longer holds the task, handed off, recorded a decision of
/// the planner, or asked the human.
pub fn has_result(state: &State, session: &EndedSession) -> bool {
    let entry = state.board.agents.ready().and_then(|agents| agents.get(&session.agent));
    let recorded = entry.and_then(|entry| entry.last_result).is_some_and(|last| last > session.began_at);
    let decided = || state.board.goal.ready().is_some_and(|goal| goal.status != GoalStatus::InProgress);
    match &session.task {
        None => (recorded && !leaves_no_plan(state, session)) || decided(),
        task => recorded || is_done(state, session.agent, task.as_ref()),
    }
}

/// True if a planner left the goal without a plan: no new draft, no question, and no next session continues.
fn leaves_no_plan(state: &State, session: &EndedSession) -> bool {
    let was_to_plan = session.triggers.iter().any(|trigger| trigger.kind == TriggerKind::InitialPlanning);
    let is_new = |body: &TaskBody| body.record().revision.is_some_and(|written| written > session.began_at);
    let entry = state.board.agents.ready().and_then(|agents| agents.get(&session.agent));
    let hands_off = entry.is_some_and(|entry| entry.status == AgentStatus::Handoff);
    let asks = || open_questions(state).iter().any(|question| question.is_from(session.agent));
    was_to_plan && lacks_plan(state) && !hands_off && !state.bodies().any(|(_, body)| is_new(body)) && !asks()
}

//! The next step of a supervisor: pure decisions over the blackboard, the stop files and `now`.
//!
//! The loop that waits, starts and stops processes carries these out; it decides nothing itself. An agent is
//! judged by the blackboard first, by its exit code last.

mod ended;
mod running;
pub mod stop_files;
mod work;

pub use ended::{AfterSession, EXIT_RESTART, EndedSession, SessionEnd, after_session, backoff, has_result};
pub use running::{
    SessionFacts, SessionPhase, SessionStep, Shutdown, StopCause, can_be_renewed, frozen_time, is_done,
    renewal_interval, still_owns, still_registered, stops_session,
};
pub use work::{Backoffs, Work, WorkKind, WorkSubject};

use crate::model::{
    AgentId, AgentRecord, AgentStatus, ClientHold, GoalStatus, PlannerExits, Role, Seconds, Sprint, State,
    Status, StopFile, StopFiles, Timestamp,
};
use crate::rules::clients::{ClientChoice, choose_client};
use crate::rules::found_merges::FoundMerges;
use crate::rules::session_budget::SessionBudget;
use crate::rules::sessions::is_between_sessions;
use crate::rules::spending::{Spending, used_up};
use crate::rules::triggers::Trigger;

pub use crate::rules::triggers::unseen_triggers;
pub use work::work_of;

/// The time after which a supervisor looks at a broken blackboard again.
const RETRY: Seconds = Seconds(5);

/// The input of a supervisor's decision.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    pub state: &'a State,
    pub agent: AgentId,
    pub stop_files: StopFiles,
    /// Tasks whose merge is on the integration branch and not on the blackboard.
    pub found_merges: &'a FoundMerges,
    pub now: Timestamp,
    pub idle_since: Timestamp,
    /// If true, it runs inside a team, which keeps waiting when a lone supervisor would end.
    pub in_team: bool,
    /// Its clients, the preferred one first; empty if none can be held.
    pub clients: &'a [String],
    /// Work that failed here a moment ago.
    pub backoffs: &'a Backoffs,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// ABORT is present, or the goal was aborted.
    Aborted,
    /// The role has no work now or later.
    RoleComplete,
    /// A lone supervisor has waited long enough.
    WaitedLongEnough,
    /// Its client cannot be used until the human has done something.
    ClientHeld {
        client: String,
        /// The reason and the remedy.
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitReason {
    /// Drafts wait for the planner.
    Drafts(usize),
    /// There is no goal yet.
    NoGoal,
    /// There is nothing for this role now.
    NoWork,
    /// The settings cannot be read.
    BrokenConfig(String),
    /// All that it could do failed a moment ago.
    PutOff,
    /// A budget is used up; the amount in words.
    BudgetUsedUp(String),
    /// All of its clients are held; this one is free first.
    ClientHeld { client: String, hold: ClientHold },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Stop(StopReason),
    /// Keep renewing leases and start nothing until the file is gone.
    Hold(StopFile),
    /// Do the first of these that can be done, the best first; never empty.
    Work(Vec<Work>),
    /// Wait for a change of the blackboard, at most until then.
    Wait {
        why: WaitReason,
        /// The time to look again without a change.
        until: Timestamp,
    },
}

/// Decides: ABORT, then CHECKPOINT and PAUSE, then merges, then work, then waiting. Work that cannot go on
/// now is left out, and never keeps the agent from the rest.
pub fn next_step(situation: &Situation<'_>) -> Step {
    let goal = situation.state.board.goal.ready();
    match situation.stop_files.strongest() {
        Some(StopFile::Abort) => return Step::Stop(StopReason::Aborted),
        _ if goal.is_some_and(|goal| goal.status == GoalStatus::Aborted) => {
            return Step::Stop(StopReason::Aborted);
        }
        Some(file @ (StopFile::Checkpoint | StopFile::Pause)) => return Step::Hold(file),
        None => {}
    }
    let Situation { state, agent, now, found_merges, backoffs, .. } = *situation;
    let all = work_of(state, agent, found_merges, now);
    if all.is_empty() {
        return wait_or_stop(situation);
    }
    let (mut possible, mut put_off) = (Vec::new(), None);
    for work in all {
        match backoffs.until(agent, &work, now) {
            None => possible.push(work),
            Some(until) => put_off = put_off.map_or(Some(until), |first: Timestamp| Some(first.min(until))),
        }
    }
    let no_session = possible.iter().any(Work::needs_session).then(|| no_session(situation)).flatten();
    if no_session.is_some() {
        possible.retain(|work| !work.needs_session());
    }
    match (possible.is_empty(), no_session, put_off) {
        (false, _, _) => Step::Work(possible),
        // It does not end while something is only put off.
        (true, Some(step @ (Step::Hold(_) | Step::Work(_) | Step::Wait { .. })), _) => step,
        (true, Some(step @ Step::Stop(_)), None) => step,
        (true, Some(Step::Stop(_)) | None, put_off) => {
            Step::Wait { why: WaitReason::PutOff, until: put_off.unwrap_or(now + RETRY) }
        }
    }
}

/// The step of the agent if no session can start: a budget is used up, or all of its clients are held.
fn no_session(situation: &Situation<'_>) -> Option<Step> {
    let spent = used_up(&situation.state.board, situation.now);
    spent.map(|spent| over_budget(&spent, situation.now)).or_else(|| held_clients(situation))
}

/// Waits for the checkpoint that follows from a budget that is used up, or for the human to raise it.
fn over_budget(spent: &Spending, now: Timestamp) -> Step {
    Step::Wait { why: WaitReason::BudgetUsedUp(spent.to_string()), until: now + RETRY }
}

/// Waits or ends, if all clients of the agent are held.
fn held_clients(situation: &Situation<'_>) -> Option<Step> {
    let Situation { state, clients, now, in_team, .. } = *situation;
    let sprint = state.board.sprint.ready()?;
    let ClientChoice::Held { client, hold } = choose_client(sprint, clients, now) else { return None };
    Some(match hold.until {
        None if !in_team => {
            let repair = hold.repair.map(|repair| format!(". {repair}")).unwrap_or_default();
            Step::Stop(StopReason::ClientHeld { client, why: format!("{}{repair}", hold.message) })
        }
        until => {
            let until = until.unwrap_or(now + RETRY);
            Step::Wait { why: WaitReason::ClientHeld { client, hold }, until }
        }
    })
}

/// True if the agent's next work needs a session.
pub fn needs_session(state: &State, agent: AgentId, found_merges: &FoundMerges, now: Timestamp) -> bool {
    work_of(state, agent, found_merges, now).first().is_some_and(Work::needs_session)
}

/// The reason that only the human can let the planner continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannerStop {
    /// Too many of its sessions in a row had no result.
    NoResult,
    SessionsUsedUp,
}

pub fn planner_stop(state: &State, now: Timestamp) -> Option<PlannerStop> {
    let (sprint, config) = (state.board.sprint.ready()?, state.board.config.ready()?);
    let may_be_stuck = sprint.planner_exits.count >= config.max_crashes;
    if may_be_stuck && failed_planning(sprint, &unseen_triggers(state, now)) >= config.max_crashes {
        return Some(PlannerStop::NoResult);
    }
    SessionBudget::Planner.is_used_up(sprint, config).then_some(PlannerStop::SessionsUsedUp)
}

pub fn planner_needs_human(state: &State, now: Timestamp) -> bool {
    planner_stop(state, now).is_some()
}

/// The planning sessions in a row without a result. None count once all their matters are settled.
pub fn failed_planning(sprint: &Sprint, pending: &[Trigger]) -> u32 {
    let PlannerExits { count, woken_for, .. } = &sprint.planner_exits;
    let is_left = |trigger: &Trigger| woken_for.contains(&trigger.matter());
    if woken_for.is_empty() || pending.iter().any(is_left) { *count } else { 0 }
}

/// The try of an agent after sessions without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextTry {
    pub failed: u32,
    pub limit: u32,
    /// The time that its supervisor has recorded.
    pub at: Timestamp,
}

/// The next try of an agent whose last session failed; `None` if nothing is left to try, or the limit is reached.
pub fn next_try(state: &State, agent: AgentId, entry: &AgentRecord, now: Timestamp) -> Option<NextTry> {
    let at = entry.last_session.as_ref().filter(|last| last.failed)?.again?;
    let failed = match (agent.role(), entry.status) {
        (Role::Planner, AgentStatus::Waiting) => {
            failed_planning(state.board.sprint.ready()?, &unseen_triggers(state, now))
        }
        (Role::Coder, _) if is_between_sessions(&state.board, agent, entry) => {
            state.board.body(entry.current_task.as_ref()?).ok()?.record().crashes?
        }
        (Role::Planner | Role::Coder | Role::CodeReviewer, _) => return None,
    };
    let limit = state.board.config.ready()?.max_crashes;
    (1..limit).contains(&failed).then_some(NextTry { failed, limit, at })
}

fn wait_or_stop(situation: &Situation<'_>) -> Step {
    let Situation { state, agent, now, idle_since, in_team, .. } = *situation;
    if role_complete(state, agent.role(), in_team) {
        return Step::Stop(StopReason::RoleComplete);
    }
    let config = match state.board.config() {
        Ok(config) => config,
        Err(refusal) => {
            return Step::Wait { why: WaitReason::BrokenConfig(refusal.to_string()), until: now + RETRY };
        }
    };
    if !in_team && agent.role() != Role::Planner && now.since(idle_since) >= config.coder_max_wait {
        return Step::Stop(StopReason::WaitedLongEnough);
    }
    let drafts = state.board.in_status(Status::Draft).count();
    let no_goal = state.board.goal.ready().is_none_or(|goal| goal.description.trim().is_empty());
    let why = match agent.role() {
        Role::Planner if no_goal => WaitReason::NoGoal,
        Role::Coder | Role::CodeReviewer if drafts > 0 => WaitReason::Drafts(drafts),
        Role::Planner | Role::Coder | Role::CodeReviewer => WaitReason::NoWork,
    };
    Step::Wait { why, until: now + config.coder_poll_interval }
}

/// True if this role has nothing to do now or later. Inside a team only a decided goal ends it, since the
/// planner may open the next sprint.
pub fn role_complete(state: &State, role: Role, in_team: bool) -> bool {
    let decided = state.board.goal.ready().is_some_and(|goal| goal.status != GoalStatus::InProgress);
    let started = !state.board.tasks.is_empty();
    let ended = state.board.summaries().all(|summary| summary.status.is_some_and(Status::is_terminal));
    match role {
        Role::Planner => decided,
        Role::Coder | Role::CodeReviewer => decided || (!in_team && started && ended),
    }
}

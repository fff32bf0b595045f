//! The running sessions of agents, as far as the blackboard shows them.

use crate::model::{
    AgentId, AgentRecord, AgentStatus, Board, OpenSession, State, Status, TaskBody, TaskId, TaskSummary,
    Timestamp,
};
use crate::rules::triggers::{Trigger, TriggerKind, unseen_triggers};

/// True if an agent holds its task or review, but the session of its last claim has ended: its supervisor
/// waits before the next one. Older versions keep no session: there the history shows the end of a coder's.
pub fn is_between_sessions(board: &Board, agent: AgentId, entry: &AgentRecord) -> bool {
    if entry.session.is_some() {
        return false;
    }
    let Some(record) =
        entry.current_task.as_ref().and_then(|task| board.body(task).ok()).map(TaskBody::record)
    else {
        return false;
    };
    entry.status.is_in_session() && record.trace(agent).is_some_and(|trace| trace.is_session_over)
}

/// True also for a session that has submitted or given its verdict, and has not ended yet.
pub fn is_in_session(board: &Board, agent: AgentId, entry: &AgentRecord) -> bool {
    match entry.status.is_in_session() {
        true => !is_between_sessions(board, agent, entry),
        false => ending_session(board, agent, entry).is_some(),
    }
}

/// True if the agent's running session is about this task.
pub fn is_in_session_on(board: &Board, agent: AgentId, entry: &AgentRecord, task: &TaskId) -> bool {
    let ending = || ending_session(board, agent, entry).is_some_and(|(own, _)| own == *task);
    is_in_session(board, agent, entry) && (entry.current_task.as_ref() == Some(task) || ending())
}

/// The task of a session that has submitted it or given its verdict and not ended yet; with the time of that.
pub fn ending_session(board: &Board, agent: AgentId, entry: &AgentRecord) -> Option<(TaskId, Timestamp)> {
    // Without a program there has been no session since the agent was registered.
    if entry.status.is_in_session() || entry.client.is_none() {
        return None;
    }
    let ended = entry.last_session.as_ref().map(|last| last.ended);
    let ended = ended.max(entry.session.as_ref().map(|session| session.began));
    let result = |summary: &TaskSummary| {
        let trace = board.body(&summary.id).ok()?.record().trace(agent)?;
        let is_new = ended.is_none_or(|ended| trace.last >= ended);
        (is_new && trace.is_result).then(|| (summary.id.clone(), trace.last))
    };
    // Its task may have been merged meanwhile. An entry without a session is of an older version, or has
    // none: a search of all ended tasks would take long.
    let is_looked_at =
        |summary: &&TaskSummary| entry.session.is_some() || !summary.status.is_some_and(Status::is_terminal);
    board.summaries().filter(is_looked_at).filter_map(result).max_by_key(|(_, since)| *since)
}

/// The time since which a running planner's session has nothing left to decide: it has recorded a result and
/// its triggers are settled, or its last result is the alignment with the goal, which is its last step.
pub fn decided_since(state: &State, entry: &AgentRecord, now: Timestamp) -> Option<Timestamp> {
    let session = entry.session.as_ref().filter(|_| entry.status == AgentStatus::Planning)?;
    let decided = session.result?;
    let mut pending = unseen_triggers(state, now);
    pending.retain(|trigger| !is_newer(state, trigger, session));
    let last_alignment = state.journal.alignment_history.last().map(|last| last.timestamp);
    let has_aligned = || last_alignment.is_some_and(|time| time >= decided);
    let is_settled = pending.is_empty() && state.board.in_status(Status::Draft).next().is_none();
    let leaves_rest = || has_aligned() && !pending.iter().any(|trigger| trigger.kind.needs_decision());
    (is_settled || leaves_rest()).then_some(decided)
}

/// The triggers from the start of a planner's session that it still has to decide; all if none is left.
pub fn of_session(state: &State, entry: &AgentRecord, now: Timestamp) -> Vec<Trigger> {
    let mut triggers = unseen_triggers(state, now);
    let Some(session) = &entry.session else { return triggers };
    triggers.retain(|trigger| !is_newer(state, trigger, session));
    match triggers.is_empty() {
        true => session.about.iter().filter_map(|key| Trigger::of_key(key)).collect(),
        false => triggers,
    }
}

/// The triggers that a planner looks at next, without those that its running session has decided or left.
pub fn undecided(state: &State, now: Timestamp) -> Vec<Trigger> {
    let mut pending = unseen_triggers(state, now);
    let planners = state.board.agents.entries().map(|(_, entry)| entry);
    let decided = planners.filter(|entry| entry.holds(now) && decided_since(state, entry, now).is_some());
    for session in decided.filter_map(|entry| entry.session.as_ref()) {
        pending.retain(|trigger| is_newer(state, trigger, session));
    }
    pending
}

/// True if it came up after the session began: the next one looks at it.
pub fn is_newer(state: &State, trigger: &Trigger, session: &OpenSession) -> bool {
    let is_same_matter =
        |key: &String| Trigger::of_key(key).is_some_and(|known| known.matter() == trigger.matter());
    let knows =
        |is_same: &dyn Fn(&String) -> bool| session.about.is_empty() || session.about.iter().any(is_same);
    match trigger.kind {
        // Blocked again, it is another question. A person's note about it meanwhile is not.
        TriggerKind::BlockedTasks | TriggerKind::HypothesisExhausted => {
            !knows(&is_same_matter) || is_blocked_since(state, trigger, session.began)
        }
        // The same matter, even if more becomes known about it meanwhile.
        TriggerKind::InitialPlanning | TriggerKind::SprintCompleted => !knows(&is_same_matter),
        TriggerKind::HumanDecision
        | TriggerKind::QuestionAnswered
        | TriggerKind::IntegrationFailed
        | TriggerKind::ImmediateDiscovery
        | TriggerKind::DeadDependency
        | TriggerKind::NewDraft => !knows(&|key| *key == trigger.key),
    }
}

fn is_blocked_since(state: &State, trigger: &Trigger, began: Timestamp) -> bool {
    let Ok(task) = trigger.subject.parse::<TaskId>() else { return false };
    let Ok(body) = state.board.body(&task) else { return false };
    body.record().past().last_block.is_some_and(|block| block.time > began)
}

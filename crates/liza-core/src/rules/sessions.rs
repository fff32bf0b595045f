//! Whether a session of an agent is running, as far as the blackboard shows it.

use crate::model::{
    AgentId, AgentRecord, Board, EventName, HistoryEvent, Status, TaskBody, TaskId, TaskSummary, Timestamp,
};

/// Whether an agent holds its task or review, but the session that began with its last claim has ended: its supervisor
/// waits before the next one. An entry of an older version has no session; its history says when a coder's ended.
pub(crate) fn is_between_sessions(board: &Board, agent: AgentId, entry: &AgentRecord) -> bool {
    if entry.session.is_some() {
        return false;
    }
    let Some(record) =
        entry.current_task.as_ref().and_then(|task| board.body(task).ok()).map(TaskBody::record)
    else {
        return false;
    };
    let name = agent.to_string();
    let begins = |event: &HistoryEvent| event.is_claim() || event.is(EventName::Resumed);
    let mut own = record.events().rev().filter(|event| event.agent.as_deref() == Some(name.as_str()));
    let last = own.find(|event| begins(event) || event.is(EventName::SessionEnded));
    entry.status.is_in_session() && last.is_some_and(|event| event.is(EventName::SessionEnded))
}

/// Whether a session of the agent is running: also one that has submitted, or has given its verdict, and has not ended yet.
pub fn is_in_session(board: &Board, agent: AgentId, entry: &AgentRecord) -> bool {
    match entry.status.is_in_session() {
        true => !is_between_sessions(board, agent, entry),
        false => ending_session(board, agent, entry).is_some(),
    }
}

/// Whether a session of the agent is running that is about this task.
pub fn is_in_session_on(board: &Board, agent: AgentId, entry: &AgentRecord, task: &TaskId) -> bool {
    let ending = || ending_session(board, agent, entry).is_some_and(|(own, _)| own == *task);
    is_in_session(board, agent, entry) && (entry.current_task.as_ref() == Some(task) || ending())
}

/// The task of a session that has submitted it, or has given its verdict, and has not ended yet; and since when.
pub fn ending_session(board: &Board, agent: AgentId, entry: &AgentRecord) -> Option<(TaskId, Timestamp)> {
    // Without a program there has been no session since the agent was registered.
    if entry.status.is_in_session() || entry.client.is_none() {
        return None;
    }
    let name = agent.to_string();
    let ended = entry.last_session.as_ref().map(|last| last.ended);
    let result = |summary: &TaskSummary| {
        let record = board.body(&summary.id).ok()?.record();
        let last = record.events().rev().find(|event| event.agent.as_deref() == Some(name.as_str()))?;
        let is_new = ended.is_none_or(|ended| last.time >= ended);
        (is_new && is_result(last)).then(|| (summary.id.clone(), last.time))
    };
    let is_open = |summary: &&TaskSummary| !summary.status.is_some_and(Status::is_terminal);
    board.summaries().filter(is_open).filter_map(result).max_by_key(|(_, since)| *since)
}

/// Whether nothing is left to do for the session that recorded it.
fn is_result(event: &HistoryEvent) -> bool {
    let results = [EventName::ReadyForReview, EventName::Approved, EventName::Rejected, EventName::Blocked];
    results.into_iter().any(|result| event.is(result))
}

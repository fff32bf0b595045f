//! Whether a session of an agent is running, as far as the blackboard shows it.

use crate::model::{AgentId, AgentRecord, Board, EventName, HistoryEvent, TaskBody};

/// Whether a coder holds its task, but the session that began with its last claim has ended: its supervisor waits before
/// the next one.
pub(crate) fn is_between_sessions(board: &Board, agent: AgentId, entry: &AgentRecord) -> bool {
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

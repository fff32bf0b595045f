//! What an open page follows.

use liza_core::model::{AgentId, TaskId};

/// What a page follows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    /// The board.
    Board,
    /// All tasks.
    Tasks,
    /// A task.
    Task(TaskId),
    /// The agents.
    Agents,
    /// An agent and the output of its last session.
    Agent(AgentId),
    /// The alerts.
    Alerts,
    /// The charts and the graph.
    Charts,
    /// A page whose content does not change; only its header does.
    Other,
}

//! The subjects that an open page follows.

use liza_core::model::{AgentId, TaskId};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    Board,
    Tasks,
    Task(TaskId),
    Agents,
    /// An agent and the output of its last session.
    Agent(AgentId),
    Alerts,
    /// The charts and the graph.
    Charts,
    /// A page whose content does not change; only its header does.
    Other,
}

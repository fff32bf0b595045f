//! The addresses of the pages. Every one begins with the server's key.

use liza_core::model::{AgentId, TaskId};

use crate::topic::Topic;

#[derive(Debug, Clone)]
pub(crate) struct Links {
    prefix: String,
}

impl Links {
    pub(crate) fn new(key: &str) -> Self {
        Self { prefix: format!("/{key}") }
    }

    /// A page or a file of this server.
    pub(crate) fn to(&self, path: &str) -> String {
        format!("{}/{path}", self.prefix)
    }

    pub(crate) fn task(&self, task: &TaskId) -> String {
        self.to(&format!("task/{task}"))
    }

    pub(crate) fn diff(&self, task: &TaskId) -> String {
        self.to(&format!("task/{task}/diff"))
    }

    pub(crate) fn agent(&self, agent: AgentId) -> String {
        self.to(&format!("agent/{agent}"))
    }

    /// A session: its prompt and its output.
    pub(crate) fn session(&self, name: &str) -> String {
        self.to(&format!("session/{name}"))
    }

    pub(crate) fn stream(&self, topic: &Topic) -> String {
        match topic {
            Topic::Board => self.to("live/board"),
            Topic::Tasks => self.to("live/tasks"),
            Topic::Agents => self.to("live/agents"),
            Topic::Alerts => self.to("live/alerts"),
            Topic::Charts => self.to("live/charts"),
            Topic::Agent(agent) => self.to(&format!("live/agent/{agent}")),
            Topic::Task(task) => self.to(&format!("live/task/{task}")),
            Topic::Other => self.to("live/other"),
        }
    }
}

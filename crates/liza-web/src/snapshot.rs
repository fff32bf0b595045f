//! The team at one moment, as all pages show it.

use std::sync::Arc;

use liza_core::model::{AgentId, State, TaskId};
use liza_status::view::{AgentView, TaskView, View};

use crate::seat::LogLine;

/// The most lines of the log that are kept for the board.
const LOG_MAX: usize = 40;

/// A reading of the project.
pub struct TeamReading {
    /// The blackboard and the view of it, or the reason why it cannot be read.
    pub team: Result<(Arc<State>, View), String>,
    /// The new lines of the log.
    pub log: Vec<LogLine>,
}

#[derive(Clone)]
pub(crate) struct Snapshot {
    /// The blackboard and the view of it; none before the first reading.
    team: Option<Arc<(Arc<State>, View)>>,
    /// The reason why the blackboard cannot be read now.
    pub(crate) problem: Option<String>,
    /// The last lines of the log, the newest first.
    pub(crate) log: Vec<LogLine>,
}

impl Snapshot {
    pub(crate) fn empty() -> Self {
        Self { team: None, problem: None, log: Vec::new() }
    }

    /// The next snapshot. An unreadable blackboard stays as it was last seen.
    pub(crate) fn next(&self, reading: TeamReading) -> Self {
        let log: Vec<LogLine> =
            reading.log.into_iter().rev().chain(self.log.iter().cloned()).take(LOG_MAX).collect();
        match reading.team {
            Ok(team) => Self { team: Some(Arc::new(team)), problem: None, log },
            Err(why) => Self { team: self.team.clone(), problem: Some(why), log },
        }
    }

    pub(crate) fn view(&self) -> Option<&View> {
        self.team.as_ref().map(|team| &team.1)
    }

    pub(crate) fn state(&self) -> Option<&State> {
        self.team.as_ref().map(|team| &*team.0)
    }

    pub(crate) fn task(&self, id: &TaskId) -> Option<&TaskView> {
        self.view()?.tasks.iter().find(|task| task.id == *id)
    }

    pub(crate) fn agent(&self, id: AgentId) -> Option<&AgentView> {
        self.view()?.agents.iter().find(|agent| agent.id == id)
    }
}

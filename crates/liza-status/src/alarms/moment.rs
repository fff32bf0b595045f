//! The blackboard and the observations at one moment: what every function here reads.

use super::Observations;
use crate::command_line::CommandLine;
use liza_core::model::{
    Board, Config, Goal, GoalStatus, Role, Sprint, State, TaskBody, TaskId, TaskRecord, Timestamp,
};
use liza_core::rules::presence::Presence;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub(crate) state: &'a State,
    pub(crate) seen: &'a Observations,
    pub(crate) now: Timestamp,
}

impl<'a> Moment<'a> {
    pub(crate) fn board(self) -> &'a Board {
        &self.state.board
    }

    pub(crate) fn here(self) -> Presence<'a> {
        self.seen.presence(&self.state.board, self.now)
    }

    pub(crate) fn config(self) -> Option<&'a Config> {
        self.state.board.config.ready()
    }

    pub(crate) fn sprint(self) -> Option<&'a Sprint> {
        self.state.board.sprint.ready()
    }

    /// The goal, while it is in progress.
    pub(crate) fn open_goal(self) -> Option<&'a Goal> {
        self.state.board.goal.ready().filter(|goal| goal.status == GoalStatus::InProgress)
    }

    /// The command that starts an agent of that role: with the whole team if none is running.
    pub(crate) fn start(self, role: Role) -> &'a CommandLine {
        let start = &self.seen.start;
        if self.here().has_team() { start.agent(role) } else { &start.run }
    }

    pub(crate) fn record(self, task: &TaskId) -> Option<&'a TaskRecord> {
        self.state.board.body(task).ok().map(TaskBody::record)
    }
}

//! What a command has to see of the blackboard: its sections, and the tasks whose bodies it reads or changes.
//!
//! The store loads this and no more, which is what keeps a heartbeat cheap beside ten thousand tasks.

use crate::board::{Board, Section};
use crate::command::{Command, Request};
use crate::ids::{AgentId, TaskId};
use crate::record::Status;

use Section::{Agents, CircuitBreaker, Config, Discovered, Goal, Handoff, Sprint};

impl Command {
    /// The one task that the command is about.
    pub fn target(&self) -> Option<&TaskId> {
        match self {
            Command::AddTask { task, .. }
            | Command::EditTask { task, .. }
            | Command::Supersede { task, .. }
            | Command::Abandon { task, .. }
            | Command::Unblock { task, .. }
            | Command::Reserve { task, .. }
            | Command::Claim { task, .. }
            | Command::CancelReservation { task, .. }
            | Command::DropReservation { task, .. }
            | Command::ReleaseClaim { task, .. }
            | Command::PreCheck { task, .. }
            | Command::SubmitForReview { task, .. }
            | Command::ClaimReview { task, .. }
            | Command::GiveUpReview { task, .. }
            | Command::SubmitVerdict { task, .. }
            | Command::BeginMerge { task }
            | Command::RecordMerge { task, .. }
            | Command::RecordMergeFailure { task, .. }
            | Command::CreateWorktree { task, .. }
            | Command::DeleteWorktree { task }
            | Command::MarkBlocked { task, .. }
            | Command::CountExit { task, .. }
            | Command::Handoff { task, .. }
            | Command::TakeHandoff { task } => Some(task),
            Command::Finalize { .. }
            | Command::Align { .. }
            | Command::CompleteGoal
            | Command::AbortGoal
            | Command::NewGoal { .. }
            | Command::Register { .. }
            | Command::Heartbeat { .. }
            | Command::Deregister { .. }
            | Command::SetStatus { .. }
            | Command::ClearStaleReviews
            | Command::Recover { .. }
            | Command::Anomaly { .. }
            | Command::Discover { .. }
            | Command::ConvertDiscovery { .. }
            | Command::Note { .. }
            | Command::SpecChange { .. }
            | Command::Checkpoint { .. }
            | Command::Pause
            | Command::Resume { .. }
            | Command::Abort
            | Command::FollowFile { .. }
            | Command::CompleteSprint
            | Command::NewSprint
            | Command::SetDeadline { .. }
            | Command::Retrospective { .. }
            | Command::UpdateMetrics { .. }
            | Command::SeeTriggers { .. }
            | Command::RecordAnalysis { .. }
            | Command::Resolve { .. }
            | Command::Archive { .. }
            | Command::RecordUsage { .. } => None,
        }
    }
}

impl Request {
    /// The sections that the command reads or changes. Agents are always among them: every caller is checked.
    pub fn sections(&self) -> &'static [Section] {
        match &self.command {
            Command::AddTask { .. } | Command::CompleteGoal | Command::AbortGoal => &[Agents, Goal, Sprint],
            Command::Supersede { .. } | Command::NewGoal { .. } => &[Agents, Goal, Sprint, Handoff],
            Command::CompleteSprint
            | Command::NewSprint
            | Command::SetDeadline { .. }
            | Command::Retrospective { .. }
            | Command::UpdateMetrics { .. }
            | Command::SeeTriggers { .. }
            | Command::Checkpoint { .. }
            | Command::Pause
            | Command::Resume { .. }
            | Command::Abort
            | Command::FollowFile { .. }
            | Command::Archive { .. } => &[Agents, Goal, Sprint],
            Command::RecordAnalysis { .. } | Command::Resolve { .. } => &[Agents, Sprint, CircuitBreaker],
            Command::Reserve { .. } | Command::BeginMerge { .. } => &[Agents, Config, Goal],
            Command::ClaimReview { .. } => &[Agents, Config, Goal, Handoff],
            Command::Register { .. }
            | Command::Heartbeat { .. }
            | Command::Claim { .. }
            | Command::CountExit { .. } => &[Agents, Config],
            Command::SubmitVerdict { .. } => &[Agents, Config, Handoff],
            Command::Handoff { .. }
            | Command::TakeHandoff { .. }
            | Command::RecordMerge { .. }
            | Command::Unblock { .. }
            | Command::ReleaseClaim { .. }
            | Command::Abandon { .. } => &[Agents, Handoff],
            Command::Discover { .. } | Command::ConvertDiscovery { .. } => &[Agents, Discovered],
            Command::EditTask { .. }
            | Command::Finalize { .. }
            | Command::Align { .. }
            | Command::Deregister { .. }
            | Command::SetStatus { .. }
            | Command::CancelReservation { .. }
            | Command::DropReservation { .. }
            | Command::Recover { .. }
            | Command::PreCheck { .. }
            | Command::SubmitForReview { .. }
            | Command::GiveUpReview { .. }
            | Command::ClearStaleReviews
            | Command::RecordMergeFailure { .. }
            | Command::CreateWorktree { .. }
            | Command::DeleteWorktree { .. }
            | Command::MarkBlocked { .. }
            | Command::Anomaly { .. }
            | Command::Note { .. }
            | Command::SpecChange { .. }
            | Command::RecordUsage { .. } => &[Agents],
        }
    }

    /// The tasks whose bodies the command reads or changes; the sections have been loaded before.
    pub fn bodies(&self, board: &Board) -> Vec<TaskId> {
        let mut tasks: Vec<TaskId> = self.command.target().cloned().into_iter().collect();
        tasks.extend(self.others(board));
        tasks.retain(|task| board.tasks.contains_key(task));
        tasks.sort();
        tasks.dedup();
        tasks
    }
}

impl Request {
    /// The only tasks that the command looks at; nothing where it looks around among all of them. Only the sections
    /// have been loaded before.
    pub fn only(&self, board: &Board) -> Option<Vec<TaskId>> {
        let target = self.command.target().cloned();
        (!self.looks_around()).then(|| target.into_iter().chain(self.others(board)).collect())
    }

    /// Whether it has to know of other tasks: names, dependencies, who has which claim, the plan.
    fn looks_around(&self) -> bool {
        match &self.command {
            Command::Heartbeat { .. }
            | Command::SetStatus { .. }
            | Command::RecordUsage { .. }
            | Command::Register { .. }
            | Command::Deregister { .. }
            | Command::CancelReservation { .. }
            | Command::DropReservation { .. }
            | Command::Recover { .. }
            | Command::PreCheck { .. }
            | Command::SubmitForReview { .. }
            | Command::SubmitVerdict { .. }
            | Command::GiveUpReview { .. }
            | Command::BeginMerge { .. }
            | Command::RecordMerge { .. }
            | Command::RecordMergeFailure { .. }
            | Command::CreateWorktree { .. }
            | Command::DeleteWorktree { .. }
            | Command::MarkBlocked { .. }
            | Command::CountExit { .. }
            | Command::Unblock { .. }
            | Command::Abandon { .. }
            | Command::ReleaseClaim { .. }
            | Command::Handoff { .. }
            | Command::TakeHandoff { .. }
            | Command::Align { .. }
            | Command::SpecChange { .. } => false,
            Command::EditTask { edit, .. } => edit.depends_on.is_some(),
            Command::Note { to, .. } => to.is_some(),
            Command::Anomaly { task, .. } => task.is_some(),
            Command::AddTask { .. }
            | Command::Finalize { .. }
            | Command::Supersede { .. }
            | Command::CompleteGoal
            | Command::AbortGoal
            | Command::NewGoal { .. }
            | Command::Reserve { .. }
            | Command::Claim { .. }
            | Command::ClaimReview { .. }
            | Command::ClearStaleReviews
            | Command::Discover { .. }
            | Command::ConvertDiscovery { .. }
            | Command::Checkpoint { .. }
            | Command::Pause
            | Command::Resume { .. }
            | Command::Abort
            | Command::FollowFile { .. }
            | Command::CompleteSprint
            | Command::NewSprint
            | Command::SetDeadline { .. }
            | Command::Retrospective { .. }
            | Command::UpdateMetrics { .. }
            | Command::SeeTriggers { .. }
            | Command::RecordAnalysis { .. }
            | Command::Resolve { .. }
            | Command::Archive { .. } => true,
        }
    }

    /// The tasks beside the target.
    #[allow(clippy::wildcard_enum_match_arm, reason = "most commands touch no other task")]
    fn others(&self, board: &Board) -> Vec<TaskId> {
        let held = |id: &AgentId| board.agents.ready()?.get(id)?.current_task.clone();
        match &self.command {
            Command::Finalize { tasks } if tasks.is_empty() => in_status(board, Status::Draft).collect(),
            Command::Finalize { tasks } | Command::Archive { tasks } => tasks.clone(),
            Command::NewGoal { .. } => board.tasks.keys().cloned().collect(),
            Command::Supersede { task, by, .. } => {
                by.iter().cloned().chain(dependants(board, task)).collect()
            }
            Command::Heartbeat { agents, .. } => agents.iter().filter_map(|(id, _)| held(id)).collect(),
            Command::SetStatus { agent, .. } => held(agent).into_iter().collect(),
            Command::ClearStaleReviews => {
                let stale = |id: &TaskId| board.head(id).is_some_and(|head| head.review_is_free(self.now));
                in_status(board, Status::ReadyForReview).filter(stale).collect()
            }
            Command::RecordUsage { task: Some(task), .. } => vec![task.clone()],
            _ => Vec::new(),
        }
    }
}

fn in_status(board: &Board, status: Status) -> impl Iterator<Item = TaskId> {
    board.heads().filter(move |head| head.is(status)).map(|head| head.id.clone())
}

/// The tasks that wait for this one.
pub(crate) fn dependants(board: &Board, task: &TaskId) -> Vec<TaskId> {
    board.heads().filter(|head| head.depends_on.contains(task)).map(|head| head.id.clone()).collect()
}

//! Who may do what: one table, and the checks that hold for every command before any rule is asked.
//!
//! "Own" (own task, own review) is the business of the transition; here it is only which role may try.

use crate::agent::{Actor, Role};
use crate::board::Board;
use crate::command::{CheckpointCause, Command, Request};
use crate::goal::GoalStatus;
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// Its own or as the table says.
    pub planner: bool,
    /// Its own task.
    pub coder: bool,
    /// Its own review.
    pub reviewer: bool,
    /// The loop around an agent.
    pub supervisor: bool,
    /// A person.
    pub human: bool,
}

const fn rights(planner: bool, coder: bool, reviewer: bool, supervisor: bool, human: bool) -> Rights {
    Rights { planner, coder, reviewer, supervisor, human }
}

const PLANNING: Rights = rights(true, false, false, false, true);
const SUPERVISION: Rights = rights(false, false, false, true, true);
const CODING: Rights = rights(false, true, false, false, false);
const BLOCKING: Rights = rights(false, true, false, true, true);
const REVIEWING: Rights = rights(false, false, true, false, false);
const AGENTS: Rights = rights(true, true, true, false, false);
const EVERYBODY: Rights = rights(true, true, true, true, true);
const HUMAN: Rights = rights(false, false, false, false, true);

/// The row for a command.
pub fn rights_for(command: &Command) -> Rights {
    match command {
        Command::AddTask { .. }
        | Command::EditTask { .. }
        | Command::Finalize { .. }
        | Command::Supersede { .. }
        | Command::Abandon { .. }
        | Command::Unblock { .. }
        | Command::ConvertDiscovery { .. }
        | Command::Align { .. }
        | Command::DeleteWorktree { .. }
        | Command::CompleteGoal => PLANNING,
        Command::Register { .. }
        | Command::Deregister { .. }
        | Command::SetStatus { .. }
        | Command::Reserve { .. }
        | Command::Claim { .. }
        | Command::CancelReservation { .. }
        | Command::DropReservation { .. }
        | Command::Recover { .. }
        | Command::ClaimReview { .. }
        | Command::GiveUpReview { .. }
        | Command::CreateWorktree { .. }
        | Command::BeginMerge { .. }
        | Command::RecordMerge { .. }
        | Command::RecordMergeFailure { .. }
        | Command::CountExit { .. }
        | Command::TakeHandoff { .. }
        | Command::SeeTriggers { .. }
        | Command::RecordUsage { .. }
        | Command::ClearStaleReviews
        | Command::Checkpoint { cause: CheckpointCause::Deadline }
        | Command::CompleteSprint => SUPERVISION,
        Command::PreCheck { .. } | Command::SubmitForReview { .. } => CODING,
        Command::MarkBlocked { .. } => BLOCKING,
        Command::SubmitVerdict { .. } => REVIEWING,
        Command::Handoff { .. } => AGENTS,
        Command::Heartbeat { .. }
        | Command::Anomaly { .. }
        | Command::Discover { .. }
        | Command::UpdateMetrics { .. } => EVERYBODY,
        Command::AbortGoal
        | Command::NewGoal { .. }
        | Command::ReleaseClaim { .. }
        | Command::Note { .. }
        | Command::SpecChange { .. }
        | Command::Checkpoint { cause: CheckpointCause::Human }
        | Command::RecordAnalysis { .. }
        | Command::Pause
        | Command::Resume { .. }
        | Command::Abort
        | Command::FollowFile { .. }
        | Command::NewSprint
        | Command::SetDeadline { .. }
        | Command::Retrospective { .. }
        | Command::Resolve { .. }
        | Command::Archive { .. } => HUMAN,
    }
}

impl Rights {
    fn of_role(self, role: Role) -> bool {
        match role {
            Role::Planner => self.planner,
            Role::Coder => self.coder,
            Role::CodeReviewer => self.reviewer,
        }
    }

    /// Whether the actor may try.
    pub fn allow(self, actor: &Actor) -> bool {
        match actor {
            Actor::Human => self.human,
            Actor::Agent(id, _) => self.of_role(id.role()),
            Actor::Operator(id) => self.of_role(id.role()) || self.supervisor,
            Actor::Supervisor(..) => self.supervisor,
        }
    }

    /// Who may, in words.
    pub fn in_words(self) -> String {
        let all = [
            (self.planner, "the planner"),
            (self.coder, "the task's coder"),
            (self.reviewer, "the task's code reviewer"),
            (self.supervisor, "supervisors"),
            (self.human, "the human"),
        ];
        let words: Vec<&str> = all.iter().filter(|(may, _)| *may).map(|(_, who)| *who).collect();
        words.join(" or ")
    }
}

/// Holds a request against the table, the registration, the lease, the stop files and the revision.
pub(crate) fn admit(board: &Board, request: &Request) -> Result<(), Refusal> {
    let rights = rights_for(&request.command);
    if !rights.allow(&request.actor) {
        return Err(Refusal::NotPermitted {
            actor: request.actor.to_string(),
            verb: request.command.verb(),
            allowed: rights.in_words(),
        });
    }
    check_fence(board, request)?;
    check_halt(board, request)?;
    check_revision(board, request)
}

/// A caller of an older registration is turned away; an agent also when its lease has ended.
fn check_fence(board: &Board, request: &Request) -> Result<(), Refusal> {
    if matches!(request.command, Command::Register { .. }) {
        return Ok(());
    }
    fence(board, &request.actor, request.now)
}

/// The same for whoever does not come with a command.
pub(crate) fn fence(board: &Board, actor: &Actor, now: Timestamp) -> Result<(), Refusal> {
    let (Some(agent), Some(yours)) = (actor.agent(), actor.generation()) else { return Ok(()) };
    let entry = board.agents()?.get(&agent).ok_or(Refusal::NotRegistered { agent })?;
    let current = entry.generation.unwrap_or_default();
    if current != yours {
        return Err(Refusal::Fenced { agent, yours, current });
    }
    match (actor, entry.lease_expires) {
        // The supervisor may renew as long as nobody has taken over; its agent has to wait for that.
        (Actor::Agent(..), Some(expired)) if expired < now => Err(Refusal::LeaseLost { agent, expired }),
        _ => Ok(()),
    }
}

/// Whether the command begins something that a stop file forbids.
fn starts_work(command: &Command) -> bool {
    matches!(command, Command::Reserve { .. } | Command::ClaimReview { .. } | Command::BeginMerge { .. })
}

fn check_halt(board: &Board, request: &Request) -> Result<(), Refusal> {
    let (halt, verb) = (request.halt, request.command.verb());
    let leaving = matches!(request.command, Command::Deregister { .. } | Command::GiveUpReview { .. });
    let starting = starts_work(&request.command);
    let by_agent = match request.actor {
        Actor::Agent(..) => true,
        Actor::Operator(_) => !leaving,
        Actor::Human | Actor::Supervisor(..) => false,
    };
    if halt.abort && (by_agent || starting || matches!(request.command, Command::Register { .. })) {
        return Err(Refusal::Halted { file: "ABORT", verb });
    }
    if starting && (halt.pause || halt.checkpoint) {
        let file = if halt.checkpoint { "CHECKPOINT" } else { "PAUSE" };
        return Err(Refusal::Halted { file, verb });
    }
    if starting && board.goal.ready().is_some_and(|goal| goal.status == GoalStatus::Aborted) {
        return Err(Refusal::GoalAborted);
    }
    Ok(())
}

/// Compares with the target task's revision, or with the board's where there is no single target.
fn check_revision(board: &Board, request: &Request) -> Result<(), Refusal> {
    let Some(expected) = request.if_revision else { return Ok(()) };
    let (what, current) = match request.command.target().and_then(|task| board.head(task)) {
        Some(head) => (head.id.to_string(), head.revision),
        None => ("the state".to_owned(), board.revision),
    };
    if current > expected { Err(Refusal::StaleRevision { what, expected, current }) } else { Ok(()) }
}

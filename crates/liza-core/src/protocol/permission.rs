//! Who may send which command, and the checks that come before every rule: registration, lease, stop files, revision.
//!
//! Each command names its row of the table. "Own task" and "own review" are checked by the command's rule.

use crate::model::{Actor, Board, GoalStatus, Refusal, Role, StopFile, Timestamp};

use super::operation::{Operation, Request, Stage};

/// A row of the table: who may try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// The planner.
    pub planner: bool,
    /// The task's coder.
    pub coder: bool,
    /// The task's code reviewer.
    pub reviewer: bool,
    /// The supervisor of an agent.
    pub supervisor: bool,
    /// A person.
    pub human: bool,
}

const fn rights(planner: bool, coder: bool, reviewer: bool, supervisor: bool, human: bool) -> Rights {
    Rights { planner, coder, reviewer, supervisor, human }
}

pub(super) const PLANNING: Rights = rights(true, false, false, false, true);
pub(super) const SUPERVISION: Rights = rights(false, false, false, true, true);
pub(super) const CODING: Rights = rights(false, true, false, false, false);
pub(super) const BLOCKING: Rights = rights(false, true, false, true, true);
pub(super) const REVIEWING: Rights = rights(false, false, true, false, false);
pub(super) const AGENTS: Rights = rights(true, true, true, false, false);
pub(super) const EVERYONE: Rights = rights(true, true, true, true, true);
pub(super) const HUMAN: Rights = rights(false, false, false, false, true);

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

    /// Who may, for messages.
    fn names(self) -> String {
        let all = [
            (self.planner, "the planner"),
            (self.coder, "the task's coder"),
            (self.reviewer, "the task's code reviewer"),
            (self.supervisor, "supervisors"),
            (self.human, "the human"),
        ];
        let names: Vec<&str> = all.iter().filter(|(may, _)| *may).map(|(_, who)| *who).collect();
        names.join(" or ")
    }
}

/// Checks a request against the table, the registration, the lease, the stop files and the revision.
pub(super) fn admit<C: Operation>(board: &Board, request: &Request<C>) -> Result<(), Refusal> {
    let rights = request.command.rights();
    if !rights.allow(&request.actor) {
        return Err(Refusal::NotPermitted {
            actor: request.actor.to_string(),
            verb: request.command.verb(),
            allowed: rights.names(),
        });
    }
    if request.command.stage() != Stage::Joins {
        check_fence(board, &request.actor, request.now)?;
    }
    check_stop_files(board, request)?;
    check_revision(board, request)
}

/// Refuses a caller of an older registration, and an agent whose lease has ended.
pub(super) fn check_fence(board: &Board, actor: &Actor, now: Timestamp) -> Result<(), Refusal> {
    let (Some(agent), Some(yours)) = (actor.agent(), actor.generation()) else { return Ok(()) };
    let entry = board.agents()?.get(&agent).ok_or(Refusal::NotRegistered { agent })?;
    let current = entry.generation.unwrap_or_default();
    if current != yours {
        return Err(Refusal::Fenced { agent, yours, current });
    }
    match (actor, entry.lease_expires) {
        // The supervisor may renew until someone takes over; its agent has to wait for that.
        (Actor::Agent(..), Some(expired)) if expired < now => Err(Refusal::LeaseLost { agent, expired }),
        _ => Ok(()),
    }
}

fn check_stop_files<C: Operation>(board: &Board, request: &Request<C>) -> Result<(), Refusal> {
    let (stage, verb) = (request.command.stage(), request.command.verb());
    let by_agent = match request.actor {
        Actor::Agent(..) => true,
        Actor::Operator(_) => stage != Stage::Leaves,
        Actor::Human | Actor::Supervisor(..) => false,
    };
    match (request.stop_files.strongest(), stage) {
        (Some(file @ StopFile::Abort), Stage::Starts | Stage::Joins) => Err(Refusal::Halted { file, verb }),
        (Some(file @ StopFile::Abort), _) if by_agent => Err(Refusal::Halted { file, verb }),
        (Some(file @ (StopFile::Checkpoint | StopFile::Pause)), Stage::Starts) => {
            Err(Refusal::Halted { file, verb })
        }
        (_, Stage::Starts) if board.goal.ready().is_some_and(|goal| goal.status == GoalStatus::Aborted) => {
            Err(Refusal::GoalAborted)
        }
        (_, Stage::Starts | Stage::Joins | Stage::Ongoing | Stage::Leaves) => Ok(()),
    }
}

/// Compares with the target task's revision, or with the board's if there is no single target.
fn check_revision<C: Operation>(board: &Board, request: &Request<C>) -> Result<(), Refusal> {
    let Some(expected) = request.if_revision else { return Ok(()) };
    let (what, current) = match request.command.target().and_then(|task| board.summary(task)) {
        Some(summary) => (summary.id.to_string(), summary.revision),
        None => ("the state".to_owned(), board.revision),
    };
    if current > expected { Err(Refusal::StaleRevision { what, expected, current }) } else { Ok(()) }
}

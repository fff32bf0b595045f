//! The checks before every rule: permission, registration, lease, stop files, revision.

use crate::model::{Actor, Board, GoalStatus, Refusal, StopFile, Timestamp, lease_is_live};

use super::operation::{Operation, Request, Stage};

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
        (Actor::Agent(..), Some(expired)) if !lease_is_live(expired, now) => {
            Err(Refusal::LeaseLost { agent, expired })
        }
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

//! The checks before every rule: permission, registration, lease, stop files, revision.

use crate::model::{
    Actor, Board, GoalStatus, Refusal, Revision, StopFile, StopFiles, TaskId, Timestamp, lease_is_live,
};

use super::operation::{Operation, Request, Stage};
use super::permission::Rights;

/// Checks a request against the table, the registration, the lease, the stop files and the revision. Compiled
/// for each command, so everything long is in functions that are compiled once.
pub(super) fn admit<C: Operation>(board: &Board, request: &Request<C>) -> Result<(), Refusal> {
    let Request { actor, now, stop_files, if_revision, command } = request;
    let (verb, stage) = (command.verb(), command.stage());
    check_rights(actor, verb, command.rights())?;
    if stage != Stage::Joins {
        check_fence(board, actor, *now)?;
    }
    check_stop_files(board, actor, *stop_files, verb, stage)?;
    check_revision(board, *if_revision, command.target())
}

fn check_rights(actor: &Actor, verb: &'static str, rights: Rights) -> Result<(), Refusal> {
    if rights.allow(actor) {
        return Ok(());
    }
    Err(Refusal::NotPermitted { actor: actor.to_string(), verb, allowed: rights.names() })
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

fn check_stop_files(
    board: &Board,
    actor: &Actor,
    stop_files: StopFiles,
    verb: &'static str,
    stage: Stage,
) -> Result<(), Refusal> {
    let by_agent = match actor {
        Actor::Agent(..) => true,
        Actor::Operator(_) => stage != Stage::Leaves,
        Actor::Human | Actor::Supervisor(..) => false,
    };
    match (stop_files.strongest(), stage) {
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
fn check_revision(board: &Board, expected: Option<Revision>, target: Option<&TaskId>) -> Result<(), Refusal> {
    let Some(expected) = expected else { return Ok(()) };
    let (what, current) = match target.and_then(|task| board.summary(task)) {
        Some(summary) => (summary.id.to_string(), summary.revision),
        None => ("the state".to_owned(), board.revision),
    };
    if current > expected { Err(Refusal::StaleRevision { what, expected, current }) } else { Ok(()) }
}

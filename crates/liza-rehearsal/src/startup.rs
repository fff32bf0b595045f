//! The start-up steps of the prompt: stops for a stop file, a missing worktree or a lost task.

use crate::arguments::Arguments;
use crate::error::{StepError, StepResult};
use crate::protocol::{Role, STOP_FILES};
use crate::session::Session;

pub(crate) fn check(session: &Session) -> StepResult {
    let role = session.prompt.role().title();
    session.say(&format!("Mode: Liza [{role}]"));
    let folder = &session.prompt.liza_folder;
    if let Some(file) = STOP_FILES.iter().find(|file| folder.join(file).exists()) {
        session.say(&format!("{file} is present"));
        return Err(StepError::Stopped);
    }
    if !session.work_dir().is_dir() {
        session.say(&format!("{} is gone: the task is no longer ours", session.work_dir().display()));
        return Err(StepError::Stopped);
    }
    check_ownership(session)?;
    session.say(&format!("{role} ready. Reading blackboard."));
    Ok(())
}

/// Stops if the task is no longer in the status or with the agent that the prompt names.
fn check_ownership(session: &Session) -> StepResult {
    let (expected, owner_key) = match session.prompt.role() {
        Role::Planner => return session.liza(Arguments::new(["status"])),
        Role::Coder => ("CLAIMED", "assigned_to"),
        Role::CodeReviewer => ("READY_FOR_REVIEW", "reviewing_by"),
    };
    let task = session.task();
    let shown = session.query_liza(Arguments::new(["show", task]))?;
    let field = |key: &str| shown["record"][key].as_str();
    let (status, owner) = (field("status"), field(owner_key));
    session.say(&format!(
        "{task} is {}, {owner_key} {}",
        status.unwrap_or("unknown"),
        owner.unwrap_or("none")
    ));
    match status == Some(expected) && owner == Some(&session.prompt.agent) {
        true => Ok(()),
        false => Err(StepError::Stopped),
    }
}

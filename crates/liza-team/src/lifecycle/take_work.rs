//! Brings a session's commits into the project, so that a lost worktree costs no commit.

use std::fs;

use liza_core::model::{Board, Generation, Sha, Status, TaskId};
use liza_git::{is_sent, is_taken};
use liza_host::worktrees::worktrees_folder;

use crate::engine::{EngineError, Exchange, TaskSender, discard, read};
use crate::project::Project;

/// Takes the commits of a task's worktree; returns its HEAD, or `None` without a worktree.
pub fn take_work(project: &Project, board: &Board, task: &TaskId) -> Result<Option<Sha>, EngineError> {
    Ok(project.repo()?.take_work(task, generation_of(board, task))?)
}

/// Takes the commits of a task's worktree and sends them to the remote, if there is one. The next renewal or
/// the submission sends the rest.
pub fn take_and_send(
    project: &Project,
    task: &TaskId,
    generation: Generation,
) -> Result<Option<Sha>, EngineError> {
    let head = project.repo()?.take_work(task, generation)?;
    let Some(exchange) = Exchange::of(project)? else { return Ok(head) };
    if head.is_none() || is_sent(project.root(), task, generation) {
        return Ok(head);
    }
    match exchange.sender(task) {
        Ok(sender) => send_taken(project, task, generation, &sender),
        Err(_) => Ok(head),
    }
}

/// Sends the commits so far. Both are read by the only sender: another one may have sent more, or submitted it.
fn send_taken(
    project: &Project,
    task: &TaskId,
    generation: Generation,
    sender: &TaskSender<'_, '_>,
) -> Result<Option<Sha>, EngineError> {
    let head = project.repo()?.take_work(task, generation)?;
    let board = read(project, &[task])?;
    // A session that has lost its task must not put its work beside that of the next one, and one that has
    // submitted it must not take the submitted commit away from the other machines.
    let is_claimed = board.status(task) == Some(Status::Claimed);
    let is_current = is_claimed && generation_of(&board, task) == generation;
    if let Some(head) = head.as_ref().filter(|_| is_current && !is_sent(project.root(), task, generation)) {
        let _ = sender.send(generation, head);
    }
    Ok(head)
}

/// Takes the new commits of coders, at a renewal of their claims. A failed attempt is repeated by the
/// submission, by the end of the session, or by a rescue.
pub fn take_new_commits(project: &Project, claims: &[(TaskId, Generation)]) {
    let exchange = Exchange::of(project).ok().flatten();
    for (task, generation) in claims {
        let root = project.root();
        if !is_taken(root, task, *generation) {
            let _ = project.repo().map(|repo| repo.take_work(task, *generation));
        }
        let Some(exchange) = exchange.as_ref().filter(|_| !is_sent(root, task, *generation)) else {
            continue;
        };
        // Renewals don't wait for a process that sends now, such as a submission.
        if let Ok(Some(sender)) = exchange.free_sender(task) {
            let _ = send_taken(project, task, *generation, &sender);
        }
    }
}

/// Removes worktrees of tasks that ended on another machine. `recover` removes the rest.
pub fn remove_ended_worktrees(project: &Project) {
    let Ok(state) = project.state() else { return };
    if state.board.config.ready().is_none_or(|config| config.remote.is_none()) {
        return;
    }
    let folders = fs::read_dir(worktrees_folder(project.root())).into_iter().flatten().flatten();
    let tasks = folders.filter_map(|folder| folder.file_name().to_str()?.parse::<TaskId>().ok());
    for task in tasks.filter(|task| state.board.status(task).is_some_and(Status::is_terminal)) {
        let _ = discard(project, &task);
    }
}

/// The registration whose session works on the task; `Generation(0)` if there is none.
pub fn generation_of(board: &Board, task: &TaskId) -> Generation {
    let coder = board.body(task).ok().and_then(|body| body.record().assigned_to);
    let entry = coder.and_then(|coder| board.agents.ready()?.get(&coder));
    entry.and_then(|entry| entry.generation).unwrap_or_default()
}

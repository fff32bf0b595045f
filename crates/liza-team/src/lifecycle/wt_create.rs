//! wt-create: creates a worktree for a task that is claimed or being claimed.

use liza_core::model::{Revision, TaskId};
use liza_core::protocol::{CreateWorktree, WorktreeOrder};
use liza_git::PreparedWorktree;

use crate::engine::{Engine, EngineError, Exchange, integration_branch, lock_task, prepare};
use crate::session::checkout_setup::set_up_worktree;

#[derive(Debug)]
pub struct CreatedWorktree {
    pub revision: Revision,
    pub order: WorktreeOrder,
    pub worktree: PreparedWorktree,
}

pub fn create_worktree(
    engine: &Engine<'_>,
    task: &TaskId,
    fresh: bool,
) -> Result<CreatedWorktree, EngineError> {
    let integration = integration_branch(&engine.read(&[])?)?;
    let exchange = Exchange::of(engine.project())?;
    let head = match &exchange {
        Some(exchange) => exchange.follow()?.head,
        None => engine.integration_head(&integration)?,
    };
    let lock = lock_task(engine.project(), task)?;
    let done = engine.execute(CreateWorktree { task: task.clone(), fresh, head })?;
    let order = done.reply;
    let brought = match &exchange {
        Some(exchange) if !engine.repo()?.worktree_path(task).exists() => {
            exchange.bring_work(task, order.mode, &order.base)?
        }
        Some(_) | None => None,
    };
    let mut worktree = prepare(engine.repo()?, (task, &order.base, order.mode), &integration, &lock)?;
    worktree.rescued = worktree.rescued.or(brought);
    let board = engine.read(&[])?;
    let is_new = worktree.created || worktree.was_damaged;
    set_up_worktree(engine.project(), board.config()?, &worktree.path, is_new)?;
    Ok(CreatedWorktree { revision: done.revision, order, worktree })
}

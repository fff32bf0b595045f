//! The place of worktrees, as the settings want it. It changes only where there is no worktree: none is moved, and none
//! is left behind.

use std::fs;
use std::path::PathBuf;

use liza_core::model::WorktreePlace;
use liza_host::worktrees::{keep_inside, keep_outside, outside, worktrees_folder};

use crate::engine::EngineError;
use crate::project::Project;

/// Keeps worktrees where the accepted settings want them. Later, if there are worktrees now.
pub fn place_worktrees(project: &Project) -> Result<(), EngineError> {
    let state = project.state()?;
    let (root, wanted) = (project.root(), state.board.config()?.worktrees);
    if wanted == place_of_worktrees(project) || !worktrees_in_use(project).is_empty() {
        return Ok(());
    }
    let placed = match wanted {
        WorktreePlace::Outside => keep_outside(root),
        WorktreePlace::Inside => keep_inside(root),
    };
    placed.map_err(EngineError::io("choose the place of worktrees", &worktrees_folder(root)))
}

/// The place that this machine uses now.
pub fn place_of_worktrees(project: &Project) -> WorktreePlace {
    match outside(project.root()) {
        Some(_) => WorktreePlace::Outside,
        None => WorktreePlace::Inside,
    }
}

/// Everything in the folder of worktrees that is not a leftover.
pub fn worktrees_in_use(project: &Project) -> Vec<PathBuf> {
    if let Ok(repo) = project.repo() {
        repo.remove_leftovers();
    }
    let entries = fs::read_dir(worktrees_folder(project.root())).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

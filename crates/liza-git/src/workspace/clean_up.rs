//! Deletes the leftovers of dead processes: half-made and half-deleted folders, scratch checkouts, views and
//! quarantines. None of it holds work: a worktree is rescued before it is moved to the trash.

use std::fs;
use std::path::PathBuf;

use liza_sandbox::sys::remove_tree::remove_tree;

use crate::diff::isolated::ISOLATED;
use crate::diff::scratch_index::SCRATCH;
use crate::program::leftovers::{VIEW, leftovers};
use crate::program::repo::Repo;
use crate::workspace::own_repo::UNFINISHED;
use crate::workspace::quarantine::QUARANTINE;
use crate::workspace::worktree::TRASH;

impl Repo {
    /// Deletes the leftovers of dead processes; returns them.
    pub fn remove_leftovers(&self) -> Vec<PathBuf> {
        let worktrees = self.worktrees_folder();
        let mut removed = self.remove_test_leftovers();
        let places = [TRASH, UNFINISHED].iter().map(|prefix| (worktrees.as_path(), *prefix));
        let inside = [ISOLATED, QUARANTINE, VIEW].iter().map(|prefix| (self.common_dir(), *prefix));
        for (folder, prefix) in places.chain(inside) {
            for left in leftovers(folder, prefix) {
                // A failed deletion is repeated next time.
                if remove_tree(&left).is_ok() {
                    removed.push(left);
                }
            }
        }
        for scratch in leftovers(self.common_dir(), SCRATCH) {
            let _ = fs::remove_file(&scratch);
            removed.push(scratch);
        }
        removed
    }
}

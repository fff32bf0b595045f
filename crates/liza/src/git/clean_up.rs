//! Deletes what dead processes left: half-made and half-deleted folders, scratch checkouts, views and quarantines.
//!
//! None of it holds work: a worktree is rescued before it is moved to the trash.

use std::fs;
use std::path::PathBuf;

use super::isolated::ISOLATED;
use super::leftovers::{VIEW, leftovers};
use super::own_repo::UNFINISHED;
use super::quarantine::QUARANTINE;
use super::repo::Repo;
use super::scratch_index::SCRATCH;
use super::worktree::TRASH;
use crate::sys::remove_tree::remove_tree;

impl Repo {
    /// Deletes what dead processes left; returns it.
    pub fn remove_leftovers(&self) -> Vec<PathBuf> {
        let worktrees = self.root().join(".worktrees");
        let mut removed = self.remove_test_leftovers();
        let places = [TRASH, UNFINISHED].iter().map(|prefix| (worktrees.as_path(), *prefix));
        let inside = [ISOLATED, QUARANTINE, VIEW].iter().map(|prefix| (self.common_dir(), *prefix));
        for (folder, prefix) in places.chain(inside) {
            for left in leftovers(folder, prefix) {
                // What cannot be deleted now is deleted next time.
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

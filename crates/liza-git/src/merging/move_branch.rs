//! Moves a branch that people may have checked out: one compare-and-swap of the reference, then the index and
//! the files of each checkout.
//!
//! Checkouts follow, or the branch does not move. A note in each checkout announces the move before the first
//! step: `checkout` completes or takes back an interrupted one.

use std::io;
use std::path::{Path, PathBuf};

use liza_ids::{Sha, TaskId};

use crate::merging::checkout::{DryRun, UPDATING, UpdateRefusal};
use crate::merging::kept_merges::merged_ref;
use crate::merging::merge::{MergeError, PendingMerge, REFLOG_PREFIX};
use crate::merging::update_note::UpdateNote;
use crate::program::error::GitError;
use crate::program::refs::Branch;
use crate::program::repo::Repo;

impl Repo {
    /// Makes a computed merge visible: moves the branch, unless it has moved since, and updates every
    /// checkout of it. Uncommitted changes that the merge doesn't touch stay.
    pub fn move_branch(
        &self,
        branch: &Branch,
        merge: &PendingMerge,
        task: &TaskId,
    ) -> Result<(), MergeError> {
        let PendingMerge { old, new } = merge;
        // Git writes the references in this order: the merge is kept before the branch moves.
        let lines = format!("update {} {new}\nupdate {} {new} {old}\n", merged_ref(task), branch.full());
        self.move_and_update(branch, merge, &format!("{REFLOG_PREFIX}{task}"), lines)
    }

    /// Fast-forwards a branch, and updates every checkout of it.
    pub fn forward_branch(&self, branch: &Branch, old: &Sha, new: &Sha) -> Result<(), MergeError> {
        let merge = PendingMerge { old: old.clone(), new: new.clone() };
        let line = format!("update {} {new} {old}\n", branch.full());
        self.move_and_update(branch, &merge, "liza: follow the remote", line)
    }

    /// The checkouts of a branch, if all can be updated; a rebase of it or a file in the way is an error.
    pub fn movable_checkouts(
        &self,
        branch: &Branch,
        merge: &PendingMerge,
    ) -> Result<Vec<PathBuf>, MergeError> {
        if let Some(path) = self.rebase_of(branch)? {
            let message = format!(
                "a rebase of {branch} is in progress; end it with `git rebase --continue` or `--abort`"
            );
            return Err(MergeError::CheckoutRefused { path, message });
        }
        let checkouts = self.checkouts_of(branch)?;
        for path in &checkouts {
            self.repair_checkout(path, Some(&branch.full()))?;
            if let Some(refusal) = self.update_checkout(path, &merge.old, &merge.new, DryRun::Yes)? {
                return Err(refused(path, refusal));
            }
        }
        Ok(checkouts)
    }

    /// Moves references by these lines for `update-ref`, and every checkout of the branch with it.
    fn move_and_update(
        &self,
        branch: &Branch,
        merge: &PendingMerge,
        reason: &str,
        lines: String,
    ) -> Result<(), MergeError> {
        let checkouts = self.movable_checkouts(branch, merge)?;
        let note = UpdateNote::forward(branch, &merge.old, &merge.new);
        for path in &checkouts {
            self.begin_update(path, &note)?;
        }
        let result = self.move_with(branch, merge, (reason, lines), &checkouts);
        // After a failure of git, the state of the checkouts is unknown: the note leads to their repair.
        if !matches!(result, Err(MergeError::Git(_))) {
            checkouts.iter().try_for_each(|path| self.end_update(path))?;
        }
        result
    }

    fn move_with(
        &self,
        branch: &Branch,
        merge: &PendingMerge,
        (reason, lines): (&str, String),
        checkouts: &[PathBuf],
    ) -> Result<(), MergeError> {
        let command = self.command(format!("moving branch {branch}"));
        let command = command.args(["update-ref", "--create-reflog", "-m", reason, "--stdin"]);
        if let Err(error) = command.stdin(lines).check() {
            let has_moved = self.tip(branch)?.as_ref() != Some(&merge.old);
            return Err(if has_moved { MergeError::BranchMoved } else { error.into() });
        }
        for (index, path) in checkouts.iter().enumerate() {
            if let Some(refusal) = self.update_checkout(path, &merge.old, &merge.new, DryRun::No)? {
                // A refused one may have some of the new files.
                let touched = if refusal.is_untouched { index } else { index + 1 };
                let kept = self.move_back(branch, merge, checkouts.get(..touched).unwrap_or(checkouts))?;
                // No file is a person's, so nothing but the machine was in the way.
                let has_failed = !refusal.is_untouched && kept.is_empty();
                return Err(if has_failed { failed(path, refusal) } else { refused(path, refusal) });
            }
        }
        Ok(())
    }

    /// Moves the branch back to its commit before a merge; false if it has moved since.
    pub fn undo_merge(&self, branch: &Branch, merge: &PendingMerge) -> Result<bool, GitError> {
        if self.tip(branch)?.as_ref() != Some(&merge.new) {
            return Ok(false);
        }
        let checkouts = self.checkouts_of(branch)?;
        self.move_back(branch, merge, &checkouts).map(|_| true)
    }

    /// Moves the branch back, and the updated checkouts; returns the files that match neither side of the
    /// merge, and stay.
    fn move_back(
        &self,
        branch: &Branch,
        merge: &PendingMerge,
        updated: &[PathBuf],
    ) -> Result<Vec<PathBuf>, GitError> {
        let note = UpdateNote::back(branch, &merge.new, &merge.old);
        updated.iter().try_for_each(|path| self.begin_update(path, &note))?;
        self.update_ref(&branch.full(), merge.old.as_str(), merge.new.as_str(), "liza: merge taken back")?;
        let mut kept = Vec::new();
        for path in updated {
            kept.extend(self.finish_update(path, &merge.new, &merge.old)?);
            self.end_update(path)?;
        }
        Ok(kept)
    }
}

fn failed(path: &Path, refusal: UpdateRefusal) -> MergeError {
    MergeError::UpdateFailed(GitError::io(UPDATING, path, io::Error::other(refusal.message)))
}

fn refused(path: &Path, refusal: UpdateRefusal) -> MergeError {
    MergeError::CheckoutRefused { path: path.to_owned(), message: refusal.message }
}

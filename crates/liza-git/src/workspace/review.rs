//! The checkout of a review: exactly the submitted commit, in a separate folder, without the coder's
//! leftovers. It belongs to the code reviewer during the review. Changes in it are saved before it is created
//! again.

use std::fs;
use std::path::{Path, PathBuf};

use liza_ids::{Sha, TaskId};
use liza_sandbox::sys::remove_tree::remove_tree;

use crate::program::error::GitError;
use crate::program::leftovers::temporary_name;
use crate::program::refs::Branch;
use crate::program::repo::Repo;
use crate::workspace::own_repo::NewCheckout;
use crate::workspace::rescue::{Rescue, RescueSource, SafeRevisions};
use crate::workspace::view::Files;
use crate::workspace::worktree::{TRASH, WorktreeState};

/// The prefix of these folders; no task ID starts with a dot.
const PREFIX: &str = ".review-";
/// The prefix of the same commit's checkouts that are set up for checks.
const PREPARED: &str = ".prepared-";

/// The folder of the checkout that is set up for the checks of a review, by the name of the review's.
pub fn prepared_of(review: &Path) -> Option<PathBuf> {
    let task = review.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    Some(review.with_file_name(format!("{PREPARED}{task}")))
}

impl Repo {
    pub fn review_path(&self, task: &TaskId) -> PathBuf {
        self.worktrees_folder().join(format!("{PREFIX}{task}"))
    }

    /// Checks out the submitted commit in the place of an earlier review's checkout.
    pub fn create_review(
        &self,
        task: &TaskId,
        commit: &Sha,
        integration: &Branch,
    ) -> Result<Option<Rescue>, GitError> {
        let commit = &self.full_hash(commit)?;
        let rescued = self.rescue_review(task, commit)?;
        self.remove_review(task)?;
        self.create_checkout(&NewCheckout {
            place: &self.review_path(task),
            commit,
            branch: None,
            integration: Some(integration),
            files: Files::All,
            keeps_index: true,
        })?;
        Ok(rescued)
    }

    /// Checks out the submitted commit once more, to be set up; removed with the review's checkout.
    pub fn create_prepared(
        &self,
        task: &TaskId,
        commit: &Sha,
        integration: &Branch,
    ) -> Result<PathBuf, GitError> {
        let place = self.prepared_path(task);
        self.create_checkout(&NewCheckout {
            place: &place,
            commit: &self.full_hash(commit)?,
            branch: None,
            integration: Some(integration),
            files: Files::All,
            keeps_index: false,
        })?;
        Ok(place)
    }

    fn prepared_path(&self, task: &TaskId) -> PathBuf {
        self.worktrees_folder().join(format!("{PREPARED}{task}"))
    }

    /// Saves the changes in the checkout of a review. Untracked files, such as test output, don't count.
    fn rescue_review(&self, task: &TaskId, commit: &Sha) -> Result<Option<Rescue>, GitError> {
        let path = self.review_path(task);
        let Ok(Some(state)) = self.review_state(task, commit) else { return Ok(None) };
        let safe = SafeRevisions::in_commit(commit);
        let changed = state.head != *commit || state.tracked_changes().next().is_some();
        let source = changed.then_some(RescueSource::Checkout { folder: &path, start: Some(commit) });
        let head = std::slice::from_ref(&state.head);
        self.rescue_work(task, source, (head, head), &safe)
    }

    /// `None` if there is no checkout.
    pub fn review_state(&self, task: &TaskId, base: &Sha) -> Result<Option<WorktreeState>, GitError> {
        let path = self.review_path(task);
        if fs::symlink_metadata(&path).is_err() {
            return Ok(None);
        }
        self.checkout_state(&path, &Branch::of(task), base).map(Some)
    }

    pub fn remove_review(&self, task: &TaskId) -> Result<(), GitError> {
        let action = format!("removing the review of {task}");
        for path in [self.prepared_path(task), self.review_path(task)] {
            if fs::symlink_metadata(&path).is_err() {
                continue;
            }
            let trash = self.worktrees_folder().join(temporary_name(TRASH));
            fs::rename(&path, &trash).map_err(|error| GitError::io(&action, &path, error))?;
            self.forget_index(&format!("{PREFIX}{task}"));
            remove_tree(&trash).map_err(|error| GitError::io(&action, &trash, error))?;
        }
        Ok(())
    }

    pub fn reviews(&self) -> Vec<TaskId> {
        let folders = fs::read_dir(self.worktrees_folder()).into_iter().flatten().flatten();
        let task = |name: std::ffi::OsString| name.to_str()?.strip_prefix(PREFIX)?.parse().ok();
        folders.filter_map(|folder| task(folder.file_name())).collect()
    }
}

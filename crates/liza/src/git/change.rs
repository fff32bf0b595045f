//! The change that a submitted commit brings: what its merge does to the head of the integration branch.

use std::path::PathBuf;

use liza_core::model::Sha;

use super::error::GitError;
use super::merge::MergePreview;
use super::repo::Repo;

/// What a merge of a commit would do to a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeChange {
    /// It replaces the files of the head by those of this tree.
    Clean {
        /// The merged files.
        tree: Sha,
    },
    /// It cannot be made: these files conflict; none if the two have no common history.
    Undefined {
        /// The files with conflicts.
        conflicts: Vec<PathBuf>,
    },
}

impl Repo {
    /// What a merge of `commit` into `head` would do.
    ///
    /// # Errors
    ///
    /// When one of them does not exist, or the result has changes of neither side.
    pub fn merge_change(&self, head: &Sha, commit: &Sha) -> Result<MergeChange, GitError> {
        Ok(match self.preview_merge(head, commit)? {
            MergePreview::AlreadyMerged => MergeChange::Clean { tree: self.tree_of(head)? },
            MergePreview::FastForward => MergeChange::Clean { tree: self.tree_of(commit)? },
            MergePreview::Clean { tree } => MergeChange::Clean { tree },
            MergePreview::Conflict { files } => MergeChange::Undefined { conflicts: files },
            MergePreview::Unrelated => MergeChange::Undefined { conflicts: Vec::new() },
        })
    }
}

//! A temporary index, so that a question about files changes no index of a checkout.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::command::GitCommand;
use crate::program::leftovers::temporary_name;
use crate::program::repo::Repo;

/// The prefix of these files in the repository's git folder.
pub(crate) const SCRATCH: &str = "liza-index-";

/// Deleted on drop.
pub(crate) struct ScratchIndex(PathBuf);

impl Drop for ScratchIndex {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl ScratchIndex {
    pub(crate) fn of(repo: &Repo) -> Self {
        Self(repo.common_dir().join(temporary_name(SCRATCH)))
    }

    pub(crate) fn command(&self, repo: &Repo, action: &str, folder: &Path) -> GitCommand {
        repo.command_in(action, folder).env("GIT_INDEX_FILE", &self.0)
    }
}

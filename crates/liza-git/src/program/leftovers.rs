//! Temporary files and folders of git.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use liza_sandbox::sys::leftovers::{leftovers, temporary_name};

/// The prefix of the folders in which Liza looks at an agent's files, in the repository's git folder.
pub(crate) const VIEW: &str = "liza-view-";

/// Deleted on drop.
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Chooses its name; creates nothing.
    pub(crate) fn name_in(parent: &Path, prefix: &str) -> Self {
        Self(parent.join(temporary_name(prefix)))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

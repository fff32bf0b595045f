//! A second name for the previous version, in the repository's own folder: `git clean -fdx` deletes `.liza`,
//! and leaves that alone. It costs no write: both are the same file, wherever links are possible.

use std::fs;
use std::path::{Path, PathBuf};

use liza_host::{durable, private};

use crate::error::StoreError;

use super::StateFolder;

/// The folder below the git folder of the checkout.
const FOLDER: &str = "liza";

/// The version of a project's blackboard that outlives its folder; `None` without a repository.
pub fn kept_in_git(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    let folder = match fs::metadata(&git).ok()?.is_dir() {
        true => git,
        // A linked worktree, or a repository whose git folder is elsewhere.
        false => root.join(durable::read_text(&git).ok()?.strip_prefix("gitdir: ")?.trim_end()),
    };
    Some(folder.join(FOLDER).join("state.yaml"))
}

impl StateFolder {
    fn kept_in_git(&self) -> Option<PathBuf> {
        kept_in_git(self.path().parent()?)
    }

    /// True if a version is kept from which a lost file can be restored.
    pub(super) fn has_kept_version(&self) -> bool {
        self.previous().is_file() || self.kept_in_git().is_some_and(|kept| kept.is_file())
    }

    /// Keeps the previous version, or the only one. Not synced: it helps against people, not power cuts.
    pub(super) fn keep_in_git(&self) {
        let Some(kept) = self.kept_in_git() else { return };
        let version = Some(self.previous()).filter(|path| path.exists()).unwrap_or_else(|| self.state());
        let step = kept.with_file_name("state.yaml.step");
        let link = || {
            let _ = fs::remove_file(&step);
            fs::hard_link(&version, &step)?;
            fs::rename(&step, &kept)
        };
        let made = || kept.parent().map_or(Ok(()), private::create_folder);
        // The folder is missing only once. Some file systems have no links.
        let done = link().or_else(|_| made().and_then(|()| link()));
        let copy =
            || durable::read_file(&version).and_then(|bytes| durable::replace_private_file(&kept, &bytes));
        // Without it, a write is as safe as ever.
        let _ = done.or_else(|_| copy());
        // A name of the file that had both names already.
        let _ = fs::remove_file(&step);
    }

    /// Makes the version in the repository the previous one, if the folder of the blackboard is gone.
    pub(crate) fn bring_back(&self) -> Result<(), StoreError> {
        let is_gone = fs::symlink_metadata(self.state()).is_err() && !self.previous().is_file();
        let Some(kept) = self.kept_in_git().filter(|kept| is_gone && kept.is_file()) else { return Ok(()) };
        let bytes = durable::read_file(&kept).map_err(StoreError::io("read", &kept))?;
        private::create_folder(self.path()).map_err(StoreError::io("create", self.path()))?;
        durable::replace_private_file(&self.previous(), &bytes)
            .map_err(StoreError::io("write", self.previous()))
    }
}

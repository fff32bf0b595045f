//! A git folder of Liza's that borrows the objects of a repository, and nothing else. It exists for one task.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use liza_ids::Sha;

use crate::program::command::GitCommand;
use crate::program::error::GitError;
use crate::program::leftovers::TemporaryFolder;
use crate::program::repo::Repo;

/// A git folder in the project's git folder, deleted on drop. It has only the configuration, attributes,
/// hooks and refs that are written to it.
pub(crate) struct BorrowedGitDir<'a> {
    repo: &'a Repo,
    folder: TemporaryFolder,
    /// For errors.
    action: &'static str,
}

impl<'a> BorrowedGitDir<'a> {
    /// HEAD names this commit, or nothing.
    pub(crate) fn create(
        repo: &'a Repo,
        prefix: &str,
        action: &'static str,
        head: Option<&Sha>,
    ) -> Result<Self, GitError> {
        let made = Self { repo, folder: TemporaryFolder::name_in(repo.common_dir(), prefix), action };
        let head = head.map_or_else(|| "ref: refs/heads/none".to_owned(), ToString::to_string);
        made.write("HEAD", format!("{head}\n").as_bytes())?;
        Ok(made)
    }

    pub(crate) fn repo(&self) -> &'a Repo {
        self.repo
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), GitError> {
        let file = self.path().join(name);
        let write = || {
            file.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&file, content)
        };
        write().map_err(|error| self.failed(&file, error))
    }

    pub(crate) fn make_folder(&self, name: &str) -> Result<(), GitError> {
        let folder = self.path().join(name);
        fs::create_dir_all(&folder).map_err(|error| self.failed(&folder, error))
    }

    /// Lets git find the objects in a folder, beside its own. The path is relative to the git folder.
    pub(crate) fn borrow(&self, objects: &Path) -> Result<(), GitError> {
        // Through a link: the path may have characters with a meaning in the list.
        let link = self.path().join("borrowed");
        symlink(objects, &link).map_err(|error| self.failed(&link, error))?;
        self.write("objects/info/alternates", b"../borrowed\n")
    }

    pub(crate) fn command_in(&self, action: &str, folder: &Path) -> GitCommand {
        self.repo.command_in(action, folder).env("GIT_DIR", self.path())
    }

    pub(crate) fn failed(&self, path: &Path, error: io::Error) -> GitError {
        GitError::io(self.action, path, error)
    }
}

//! Converts a linked worktree, as the first version of Liza made them, into a checkout with a repository of its own.
//!
//! The files do not change. The new git folder is complete before one exchange puts it in the place of the link, so a crash
//! leaves one or the other.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_ids::TaskId;
use liza_sandbox::sys::untrusted::UntrustedFolder;

use crate::program::error::GitError;
use crate::program::leftovers::temporary_name;
use crate::program::refs::Branch;
use crate::program::repo::Repo;
use crate::workspace::own_repo::{UNFINISHED, write_ref};

const ACTION: &str = "converting a worktree";

/// Files of a linked worktree's git folder that only a linked worktree has.
const LINKED_ONLY: [&str; 4] = ["commondir", "gitdir", "locked", "config.worktree"];

impl Repo {
    /// Gives the task's linked worktree a repository of its own, with the same HEAD, index and unfinished commands.
    ///
    /// # Errors
    ///
    /// When it is not a linked worktree of this project, or its files cannot be written.
    pub(crate) fn convert_linked(&self, task: &TaskId, integration: &Branch) -> Result<(), GitError> {
        let tree = self.worktree_path(task);
        let link = tree.join(".git");
        let io = |error| GitError::io(ACTION, &link, error);
        let Some(old) = self.linked_git_dir(&tree) else {
            return Err(GitError::ForeignFolder { path: tree });
        };
        // Before anything changes: what is staged is held by no reference.
        self.rescue(task, None, integration)?;
        let Some(commit) = self.worktree_head(task)? else {
            return Err(GitError::NoCommits { path: tree });
        };
        self.keep_borrowed(task, &commit)?;
        let new = self.root().join(".worktrees").join(temporary_name(UNFINISHED));
        let fill = || -> Result<(), GitError> {
            copy_folder(&old, &new).map_err(io)?;
            self.adapt_modules(&tree, &old, &new)?;
            let files = UntrustedFolder::open(&new).map_err(io)?;
            self.write_git_folder(&files, &commit)?;
            if let Some(head) = self.tip(integration)? {
                self.keep_borrowed(task, &head)?;
                self.write_integration(&files, integration, &head)?;
            }
            let branch = Branch::of(task);
            if let Some(tip) = self.tip(&branch)? {
                write_ref(&files, &branch.full(), &tip).map_err(io)?;
            }
            exchange(&new, &link).map_err(io)
        };
        let result = fill();
        let _ = fs::remove_file(&new);
        let _ = fs::remove_dir_all(&new);
        result?;
        self.relink_submodules(&tree, &old)?;
        fs::remove_dir_all(&old).map_err(|error| GitError::io(ACTION, &old, error))
    }

    /// Removes what git remembers of a linked worktree that was there; a crash may have left it.
    pub(crate) fn forget_linked(&self, tree: &Path) -> Result<(), GitError> {
        let link = tree.join(".git");
        let entries = fs::read_dir(self.common_dir().join("worktrees")).into_iter().flatten().flatten();
        let names_it = |folder: &PathBuf| {
            let text = fs::read_to_string(folder.join("gitdir")).unwrap_or_default();
            Path::new(text.trim_end()) == link
        };
        for folder in entries.map(|entry| entry.path()).filter(names_it) {
            if link.is_dir() {
                self.relink_submodules(tree, &folder)?;
            }
            fs::remove_dir_all(&folder).map_err(|error| GitError::io(ACTION, &folder, error))?;
        }
        Ok(())
    }
}

/// Puts a folder in the place of a file; the file gets the folder's name.
fn exchange(folder: &Path, file: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, folder, CWD, file, RenameFlags::EXCHANGE).is_ok() {
            return Ok(());
        }
    }
    // A crash between the two leaves a folder without a repository, which is repaired like any other.
    fs::remove_file(file)?;
    fs::rename(folder, file)
}

/// Copies the files of a linked worktree's git folder.
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if name.to_str().is_some_and(|name| LINKED_ONLY.contains(&name)) {
            continue;
        }
        if kind.is_dir() {
            copy_folder(&entry.path(), &to.join(&name))?;
        } else if kind.is_file() {
            fs::copy(entry.path(), to.join(&name))?;
        }
    }
    Ok(())
}

//! The submodules of a linked worktree that is converted: their repositories move with it, and both sides refer to each
//! other by path.
//!
//! Each step can be repeated until the old git folder is deleted. Git is not started in a submodule.

use std::fs;
use std::path::{Path, PathBuf};

use liza_sandbox::sys::untrusted::UntrustedFolder;

use crate::program::error::GitError;
use crate::program::repo::{Repo, path, same_path};

const ACTION: &str = "converting the submodules of a worktree";

/// The size of a `.git` file.
const SMALL: u64 = 4 << 10;

/// A submodule that is checked out in a linked worktree.
#[derive(Debug)]
struct LinkedSubmodule {
    /// Its repository, relative to the worktree's git folder: `modules/NAME`.
    repository: PathBuf,
    /// Its files, relative to the worktree.
    files: PathBuf,
}

impl Repo {
    /// Adapts the submodules' repositories in `new`, a copy of the git folder `old` that will be `.git` in the worktree.
    pub(crate) fn adapt_modules(&self, tree: &Path, old: &Path, new: &Path) -> Result<(), GitError> {
        for module in self.linked_submodules(tree, old)? {
            let config = new.join(&module.repository).join("config");
            let files = up(Path::new(".git").join(&module.repository).as_path()).join(&module.files);
            let command = self.command(ACTION).args(["config", "--file"]).arg(config);
            command.arg("core.worktree").arg(files).check()?;
        }
        Ok(())
    }

    /// Makes the submodules of a converted worktree use their repositories in its new git folder instead of those in `old`.
    pub(crate) fn relink_submodules(&self, tree: &Path, old: &Path) -> Result<(), GitError> {
        let folder = UntrustedFolder::open(tree).map_err(|error| GitError::io(ACTION, tree, error))?;
        for LinkedSubmodule { repository, files } in self.linked_submodules(tree, old)? {
            let link = files.join(".git");
            let text = folder.read(&link, SMALL).unwrap_or_default();
            let place = text.trim_ascii().strip_prefix(b"gitdir: ").map(path).unwrap_or_default();
            if !same_path(&tree.join(&files).join(place), &old.join(&repository)) {
                continue;
            }
            let mut text = b"gitdir: ".to_vec();
            let place = up(&files).join(".git").join(&repository);
            text.extend_from_slice(place.as_os_str().as_encoded_bytes());
            text.push(b'\n');
            folder.write(&link, &text).map_err(|error| GitError::io(ACTION, &tree.join(&link), error))?;
        }
        Ok(())
    }

    /// The submodules whose repositories are in a linked worktree's git folder.
    fn linked_submodules(&self, tree: &Path, git_dir: &Path) -> Result<Vec<LinkedSubmodule>, GitError> {
        let mut found = Vec::new();
        let tree = tree.canonicalize().unwrap_or_else(|_| tree.to_owned());
        for repository in repositories(git_dir, Path::new("modules")) {
            let folder = git_dir.join(&repository);
            let command = self.command(ACTION).args(["config", "--file"]).arg(folder.join("config"));
            let command = command.args(["--get", "core.worktree"]);
            let output = command.run()?;
            if !matches!(output.status, Some(0 | 1)) {
                return Err(command.failed(&output));
            }
            let place = folder.join(path(output.stdout.trim_ascii())).canonicalize().unwrap_or_default();
            let Ok(files) = place.strip_prefix(&tree) else { continue };
            if !files.as_os_str().is_empty() {
                found.push(LinkedSubmodule { repository, files: files.to_owned() });
            }
        }
        Ok(found)
    }
}

/// The repositories below a folder of a git folder, those of nested submodules included. The name of a submodule may
/// contain slashes.
fn repositories(git_dir: &Path, below: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(git_dir.join(below)).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let found = folders.flat_map(|entry| {
        let folder = below.join(entry.file_name());
        if !git_dir.join(&folder).join("HEAD").is_file() {
            return repositories(git_dir, &folder);
        }
        let mut inner = repositories(git_dir, &folder.join("modules"));
        inner.push(folder);
        inner
    });
    found.collect()
}

/// The way from a folder back to where its relative path starts.
fn up(folder: &Path) -> PathBuf {
    folder.components().map(|_| "..").collect()
}

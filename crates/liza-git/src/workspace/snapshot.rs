//! The files of a worktree as a tree of the project: all that are not ignored. Changes nothing in the worktree.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_ids::Sha;
use liza_sandbox::sys::untrusted::UntrustedFolder;

use crate::program::command::TREE_LIMIT;
use crate::program::error::GitError;
use crate::program::repo::Repo;
use crate::workspace::agent_repo::AgentRepo;
use crate::workspace::staged_copy::{StagedCopy, listed_files, nul_list};
use crate::workspace::status::{WorktreeStatus, nested_repository};
use crate::workspace::view::View;

#[derive(Debug)]
pub struct Snapshot {
    pub tree: Sha,
    pub left_out: Vec<PathBuf>,
}

/// A missing file is removed from the saved tree, or kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removals {
    Saved,
    Ignored,
}

impl Repo {
    pub fn snapshot(
        &self,
        view: &View<'_>,
        removals: Removals,
        status: &WorktreeStatus,
    ) -> Result<Snapshot, GitError> {
        const ACTION: &str = "saving uncommitted work";
        // Saved separately: git would only record the hash of their commit, and start itself in submodules.
        let nested = status.changes.iter().filter_map(nested_repository).map(Path::to_owned);
        let (submodules, replaced): (Vec<_>, Vec<_>) =
            self.submodules(view)?.into_iter().partition(|(path, _)| has_git(&view.tree().join(path)));
        for (path, _) in replaced.iter().filter(|(path, _)| has_files(&view.tree().join(path))) {
            view.command(ACTION).args(["update-index", "--force-remove", "--"]).arg(path).check()?;
        }
        let nested = nested.chain(submodules.iter().map(|(path, _)| path.clone()));
        let excludes = nested.map(|path| {
            let mut pathspec = std::ffi::OsString::from(":(exclude,top,literal)");
            pathspec.push(path);
            pathspec
        });
        let list = view.command(ACTION).args(["ls-files", "--modified", "--others", "--exclude-standard"]);
        let list = list.args(["-z", "--", "."]).args(excludes).limit(TREE_LIMIT).read()?;
        let left_out = self.save_files(view, &listed_files(&list), removals)?;
        for (path, recorded) in submodules {
            let agent = AgentRepo::inside(view.tree(), &path, view.tree());
            let head = agent.and_then(|agent| agent.head().ok()).map(|head| head.commit);
            if let Some(head) = head.filter(|head| *head != recorded) {
                let command = view.command(ACTION).args(["update-index", "--cacheinfo", "160000"]);
                command.arg(head.as_str()).arg(path).check()?;
            }
        }
        Ok(Snapshot { tree: view.write_tree(ACTION)?, left_out })
    }

    /// Brings the current files into the index of a view; returns those that are left out.
    fn save_files(
        &self,
        view: &View<'_>,
        paths: &[PathBuf],
        removals: Removals,
    ) -> Result<Vec<PathBuf>, GitError> {
        const ACTION: &str = "saving uncommitted work";
        let failed = |error| GitError::io(ACTION, view.tree(), error);
        let files = UntrustedFolder::open(view.tree()).map_err(failed)?;
        let copy = StagedCopy::of(self, &files, paths, u64::MAX)?;
        if let Some(path) = copy.unreadable.first() {
            let error = io::Error::from(io::ErrorKind::PermissionDenied);
            return Err(GitError::io(ACTION, &view.tree().join(path), error));
        }
        let copied: BTreeSet<&PathBuf> = copy.copied.iter().chain(&copy.hollow).collect();
        let gone: Vec<PathBuf> = paths.iter().filter(|path| !copied.contains(path)).cloned().collect();
        let update = |options: &[&str], paths: &[PathBuf]| {
            let command = view.command_at(ACTION, copy.folder()).arg("update-index").args(options);
            let command = command.args(["-z", "--stdin"]).stdin(nul_list(paths)).limit(TREE_LIMIT);
            if paths.is_empty() { Ok(()) } else { command.check() }
        };
        // First, so that a file can be where a folder was, and the reverse.
        if removals == Removals::Saved {
            update(&["--force-remove"], &gone)?;
        }
        update(&["--add", "--replace"], &copy.copied)?;
        Ok(copy.hollow.clone())
    }
}

/// True if git takes a folder for a repository, or could.
fn has_git(folder: &Path) -> bool {
    fs::symlink_metadata(folder.join(".git")).is_ok()
}

/// True if there are files in the place of a submodule, which has none until it is checked out.
fn has_files(place: &Path) -> bool {
    fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_some())
}

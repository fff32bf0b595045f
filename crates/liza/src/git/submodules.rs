//! Saves the work in submodules and other nested repositories, which git deletes together with a worktree.
//!
//! Fetches their commits into the project's own object store, under a rescue branch, so nothing depends on a remote.
//! Looks one level deep. Deletes nothing.

use std::fs;
use std::path::{Path, PathBuf};

use liza_core::model::{Sha, TaskId};

use super::command::TREE_LIMIT;
use super::error::GitError;
use super::refs::Branch;
use super::repo::{Repo, path, sha};
use super::rescue::{FIXED_DATE, as_liza, nested_repository};
use super::scratch_index::ScratchIndex;
use super::status::{FileChange, UntrackedFiles, WorktreeStatus};
use super::tree_changes::TreeEntry;
use super::view::View;

/// A temporary reference to the commit that is fetched.
const TRANSFER: &str = "refs/liza/rescue";

impl Repo {
    /// Saves what the repositories inside a worktree contain and their remotes do not.
    pub(crate) fn save_nested(
        &self,
        task: &TaskId,
        view: &View<'_>,
        status: &WorktreeStatus,
        ignored: &[FileChange],
    ) -> Result<Vec<Branch>, GitError> {
        let mut inner = self.submodules(view)?;
        let is_repository = |path: &&Path| view.tree().join(path).join(".git").symlink_metadata().is_ok();
        inner.extend(ignored.iter().map(FileChange::path).filter(is_repository).map(Path::to_owned));
        inner.extend(status.changes.iter().filter_map(nested_repository).map(Path::to_owned));
        let mut branches = Vec::new();
        for path in inner {
            if let Some(branch) = self.save_repository(task, view.tree(), &path)? {
                branches.push(branch);
            }
        }
        Ok(branches)
    }

    /// The submodules that are checked out in a worktree.
    pub(crate) fn submodules(&self, view: &View<'_>) -> Result<Vec<PathBuf>, GitError> {
        let folder = view.tree();
        // Most projects have none: skip the git command.
        if fs::symlink_metadata(folder.join(".gitmodules")).is_err() {
            return Ok(Vec::new());
        }
        let output = view.command("listing submodules").args(["ls-files", "--stage", "-z"]).read()?;
        let paths = output.split(|byte| *byte == 0).filter(|line| line.starts_with(b"160000 "));
        let paths = paths.filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1));
        let paths = paths.map(path);
        Ok(paths.filter(|path| folder.join(path).join(".git").exists()).collect())
    }

    /// A submodule that changes between two commits to one that is on none of its remotes, with that commit. Submodules that
    /// are not checked out in the task's worktree cannot have such a commit.
    pub(crate) fn unpublished_submodule(
        &self,
        task: &TaskId,
        base: &Sha,
        commit: &Sha,
    ) -> Result<Option<(PathBuf, Sha)>, GitError> {
        let tree = self.worktree_path(task);
        for (path, change) in self.tree_changes(base, commit)? {
            let Some(new) = change.new.filter(TreeEntry::is_submodule) else { continue };
            let Some(at) = sha(new.object.as_bytes()) else { continue };
            if fs::symlink_metadata(tree.join(&path).join(".git")).is_err() {
                continue;
            }
            let inner = Self::open_nested(self.git(), &tree.join(&path))?;
            if !inner.is_published(&at)? {
                return Ok(Some((path, at)));
            }
        }
        Ok(None)
    }

    /// Whether a commit is on a remote of this repository.
    fn is_published(&self, commit: &Sha) -> Result<bool, GitError> {
        let command = self.command("looking for unpublished commits").args(["rev-list", "--max-count=1"]);
        let command = command.args([commit.as_str(), "--not", "--remotes", "--"]);
        Ok(command.read()?.is_empty())
    }

    fn save_repository(&self, task: &TaskId, folder: &Path, path: &Path) -> Result<Option<Branch>, GitError> {
        let inner = Self::open_nested(self.git(), &folder.join(path))?;
        let Some(commit) = inner.unpublished()? else { return Ok(None) };
        inner.command("saving a submodule").args(["update-ref", TRANSFER, commit.as_str()]).check()?;
        self.command("saving a submodule")
            .args(["-c", "gc.auto=0", "-c", "protocol.file.allow=always", "fetch", "--quiet", "--no-tags"])
            .args(["--no-write-fetch-head", "--no-recurse-submodules", "--"])
            .arg(inner.root())
            .arg(TRANSFER)
            .limit(TREE_LIMIT)
            .check()?;
        inner.command("saving a submodule").args(["update-ref", "-d", TRANSFER]).check()?;
        let name = |number| rescue_name(task, path, number);
        let known = (1..100).map(name).map_while(|branch| Some((self.tip(&branch).ok()??, branch)));
        let known: Vec<_> = known.collect();
        if let Some((_, branch)) = known.iter().find(|(tip, _)| *tip == commit) {
            return Ok(Some(branch.clone()));
        }
        let first = u32::try_from(known.len()).unwrap_or(0) + 1;
        self.create_numbered(first, &commit, name).map(|number| Some(name(number)))
    }

    /// A commit of everything that is in this repository and on none of its remotes; `None` if there is nothing.
    fn unpublished(&self) -> Result<Option<Sha>, GitError> {
        let status = self.status(self.root(), UntrackedFiles::Show)?;
        let command = self.command("looking for unpublished commits");
        let heads = command.args(["for-each-ref", "--format=%(objectname)", "refs/heads"]).read_text()?;
        let mut tips: Vec<Sha> = status.head.iter().cloned().collect();
        tips.extend(heads.lines().filter_map(|line| sha(line.as_bytes())));
        let mut tips = self.independent(tips)?;
        if status.changes.is_empty() {
            let mut left = Vec::new();
            for tip in tips {
                if !self.is_published(&tip)? {
                    left.push(tip);
                }
            }
            tips = left;
        }
        let tree = match (status.changes.is_empty(), tips.as_slice()) {
            (true, []) => return Ok(None),
            (true, [tip]) => return Ok(Some(tip.clone())),
            (true, [tip, ..]) => self.tree_of(tip)?,
            (false, _) => self.nested_tree(&status)?,
        };
        let command = as_liza(self.command("saving a submodule"));
        let command = command.env("GIT_AUTHOR_DATE", FIXED_DATE).env("GIT_COMMITTER_DATE", FIXED_DATE);
        command.commit("liza: rescued work of a repository inside a worktree\n", &tree, &tips, &[]).map(Some)
    }
}

impl Repo {
    /// A tree of all files of a nested repository that are not ignored, written to the nested repository.
    fn nested_tree(&self, status: &WorktreeStatus) -> Result<Sha, GitError> {
        let scratch = ScratchIndex::of(self);
        let command = || scratch.command(self, "saving a submodule", self.root());
        if status.head.is_some() {
            command().args(["read-tree", "HEAD"]).check()?;
        }
        command().args(["add", "--sparse", "--all", "--", "."]).limit(TREE_LIMIT).check()?;
        command().arg("write-tree").read_with(sha)
    }
}

fn rescue_name(task: &TaskId, path: &Path, number: u32) -> Branch {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let slug: String = path.to_string_lossy().trim_end_matches('/').chars().map(safe).collect();
    Branch::nested_rescue(task, &slug, number)
}

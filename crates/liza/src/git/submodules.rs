//! Saves the work inside submodules and other repositories in a worktree, which git deletes together with it.
//!
//! Their history is copied into the project's own object store, under a rescue branch, so nothing depends on a
//! remote. Looks one level deep. Deletes nothing.

use std::path::{Path, PathBuf};

use liza_core::model::{Sha, TaskId};

use super::error::GitError;
use super::refs::Branch;
use super::repo::{Repo, path, sha};
use super::rescue::{in_our_name, nested_repository};
use super::run::TREE_LIMIT;
use super::status::{Change, Status, Untracked};

/// Holds what is being copied, for as long as that takes.
const SAVED: &str = "refs/liza/rescue";

/// The same content must give the same commit, so that an interrupted rescue finds what it had saved.
const TIMELESS: &str = "2000-01-01T00:00:00Z";

impl Repo {
    /// Saves what the repositories inside a worktree hold that their remotes do not.
    pub(crate) fn save_nested(
        &self,
        task: &TaskId,
        folder: &Path,
        git_dir: &Path,
        status: &Status,
    ) -> Result<Vec<Branch>, GitError> {
        let is_inner = |change: &Change| {
            nested_repository(change).is_some() || matches!(change, Change::Tracked { submodule: true, .. })
        };
        // Most projects have none, and should not pay for the question.
        if !git_dir.join("modules").exists() && !status.changes.iter().any(is_inner) {
            return Ok(Vec::new());
        }
        let mut inner = self.submodules(folder)?;
        inner.extend(status.changes.iter().filter_map(nested_repository).map(Path::to_owned));
        let mut branches = Vec::new();
        for path in inner {
            if let Some(branch) = self.save_inner(task, folder, &path)? {
                branches.push(branch);
            }
        }
        Ok(branches)
    }

    /// The submodules that are checked out in a worktree.
    fn submodules(&self, folder: &Path) -> Result<Vec<PathBuf>, GitError> {
        let answer = self.call("listing submodules", folder).args(["ls-files", "--stage", "-z"]).ok()?;
        let paths = answer.split(|byte| *byte == 0).filter(|line| line.starts_with(b"160000 "));
        let paths = paths.filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1));
        let paths = paths.map(path);
        Ok(paths.filter(|path| folder.join(path).join(".git").exists()).collect())
    }

    fn save_inner(&self, task: &TaskId, folder: &Path, path: &Path) -> Result<Option<Branch>, GitError> {
        let inner = Self::open(self.git(), &folder.join(path))?;
        let Some(commit) = inner.unpublished()? else { return Ok(None) };
        inner.here("saving a submodule").args(["update-ref", SAVED, commit.as_str()]).ok()?;
        self.here("saving a submodule")
            .args(["-c", "gc.auto=0", "-c", "protocol.file.allow=always", "fetch", "--quiet", "--no-tags"])
            .args(["--no-write-fetch-head", "--no-recurse-submodules", "--"])
            .arg(inner.root())
            .arg(SAVED)
            .limit(TREE_LIMIT)
            .ok()?;
        inner.here("saving a submodule").args(["update-ref", "-d", SAVED]).ok()?;
        let name = |number| rescue_name(task, path, number);
        let known = (1..100).map(name).map_while(|branch| Some((self.tip(&branch).ok()??, branch)));
        let known: Vec<_> = known.collect();
        if let Some((_, branch)) = known.iter().find(|(tip, _)| *tip == commit) {
            return Ok(Some(branch.clone()));
        }
        let first = u32::try_from(known.len()).unwrap_or(0) + 1;
        self.create_numbered(first, &commit, name).map(|number| Some(name(number)))
    }

    /// A commit of everything that this repository holds and no remote of it has.
    fn unpublished(&self) -> Result<Option<Sha>, GitError> {
        let status = self.status(self.root(), Untracked::Show)?;
        let call = self.here("looking for unpublished commits");
        let heads = call.args(["for-each-ref", "--format=%(objectname)", "refs/heads"]).text()?;
        let mut tips: Vec<Sha> = status.head.iter().cloned().collect();
        tips.extend(heads.lines().filter_map(|line| sha(line.as_bytes())));
        let mut tips = self.without_contained(tips)?;
        let published = |tip: &Sha| -> Result<bool, GitError> {
            let call = self.here("looking for unpublished commits");
            Ok(call
                .args(["rev-list", "--max-count=1", tip.as_str(), "--not", "--remotes", "--"])
                .ok()?
                .is_empty())
        };
        if status.changes.is_empty() {
            let mut left = Vec::new();
            for tip in tips {
                if !published(&tip)? {
                    left.push(tip);
                }
            }
            tips = left;
        }
        let tree = match (status.changes.is_empty(), tips.as_slice()) {
            (true, []) => return Ok(None),
            (true, [tip]) => return Ok(Some(tip.clone())),
            (true, [tip, ..]) => self.tree_of(tip)?,
            (false, _) => self.snapshot(self.root(), &self.git_dir_of(self.root())?, &status)?,
        };
        let call = in_our_name(self.here("saving a submodule"));
        let call = call.env("GIT_AUTHOR_DATE", TIMELESS).env("GIT_COMMITTER_DATE", TIMELESS);
        call.commit("liza: rescued work of a repository inside a worktree\n", &tree, &tips, &[]).map(Some)
    }
}

fn rescue_name(task: &TaskId, path: &Path, number: u32) -> Branch {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let slug: String = path.to_string_lossy().trim_end_matches('/').chars().map(safe).collect();
    Branch::inner_rescue(task, &slug, number)
}

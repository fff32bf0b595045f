//! Saves the work in submodules and other nested repositories, which git deletes together with a worktree:
//! brings their commits into the project, checked, under a rescue branch.

use std::path::{Path, PathBuf};

use liza_ids::{Sha, TaskId};

use crate::diff::tree_changes::TreeEntry;
use crate::program::error::GitError;
use crate::program::refs::Branch;
use crate::program::repo::{Repo, sha};
use crate::workspace::nested_repo::{NestedRepo, submodule_entries};
use crate::workspace::rescue::always_the_same;
use crate::workspace::view::View;

impl Repo {
    /// Saves the work in repositories inside a worktree, nested ones included, that their remotes lack.
    pub(crate) fn save_nested(&self, task: &TaskId, tree: &Path) -> Result<Vec<Branch>, GitError> {
        let mut found = self.repositories_in(tree)?;
        let mut branches = Vec::new();
        while !found.is_empty() {
            let mut deeper = Vec::new();
            for path in &found {
                branches.extend(self.save_repository(task, tree, path)?);
                let inner = self.repositories_in(&tree.join(path))?;
                deeper.extend(inner.into_iter().map(|inner| path.join(inner)));
            }
            found = deeper;
        }
        Ok(branches)
    }

    pub fn submodules(&self, view: &View<'_>) -> Result<Vec<(PathBuf, Sha)>, GitError> {
        let output = view.command("listing submodules").args(["ls-files", "--stage", "-z"]).read()?;
        Ok(submodule_entries(&output))
    }

    /// A submodule that moves between two commits to a commit that is on none of its remotes. Submodules that
    /// are not checked out in the task's worktree cannot have such a commit.
    pub fn unpublished_submodule(
        &self,
        task: &TaskId,
        base: &Sha,
        commit: &Sha,
    ) -> Result<Option<(PathBuf, Sha)>, GitError> {
        let tree = self.worktree_path(task);
        for (path, change) in self.tree_changes(base, commit)? {
            let Some(new) = change.new.filter(TreeEntry::is_submodule) else { continue };
            let Some(at) = sha(new.object.as_bytes()) else { continue };
            let Some(inner) = self.nested(&tree, &path)? else { continue };
            if !inner.is_published(&at)? {
                return Ok(Some((path, at)));
            }
        }
        Ok(None)
    }

    fn save_repository(&self, task: &TaskId, tree: &Path, path: &Path) -> Result<Option<Branch>, GitError> {
        let UnpublishedWork { tips, files } = match self.nested(tree, path)? {
            Some(nested) => self.unpublished_work(&nested)?,
            // It is no repository of this worktree; only the files in the folder itself are the agent's.
            None => UnpublishedWork { tips: Vec::new(), files: Some(self.tree_of_folder(tree, path, &[])?) },
        };
        let commit = match (files, tips.as_slice()) {
            (None, []) => return Ok(None),
            (None, [tip]) => tip.clone(),
            (None, [tip, ..]) => self.nested_commit(&self.tree_of(tip)?, &tips)?,
            (Some(files), _) => self.nested_commit(&files, &tips)?,
        };
        let name = |number| rescue_name(task, path, number);
        let known = (1..100).map(name).map_while(|branch| Some((self.tip(&branch).ok()??, branch)));
        let known: Vec<_> = known.collect();
        if let Some((_, branch)) = known.iter().find(|(tip, _)| *tip == commit) {
            return Ok(Some(branch.clone()));
        }
        let first = u32::try_from(known.len()).unwrap_or(0) + 1;
        self.create_numbered(first, &commit, name).map(|number| Some(name(number)))
    }

    /// The work of a repository that is nowhere else. Brings its commits into the project. The files of a
    /// damaged one are always saved.
    fn unpublished_work(&self, nested: &NestedRepo<'_>) -> Result<UnpublishedWork, GitError> {
        let is_clean = nested.changes().is_ok_and(|changes| changes.is_empty());
        let wanted = nested.unpublished();
        let count = wanted.len();
        let tips = match wanted.first() {
            Some(like) => self.quarantine(nested.agent(), like)?.transfer_what_is_whole(wanted, &[])?,
            None => Vec::new(),
        };
        let files = match is_clean && tips.len() == count {
            true => None,
            false => {
                let submodules = nested.submodules().unwrap_or_default();
                Some(self.tree_of_folder(nested.tree(), nested.path(), &submodules)?)
            }
        };
        Ok(UnpublishedWork { tips: self.independent(tips)?, files })
    }

    fn nested_commit(&self, tree: &Sha, parents: &[Sha]) -> Result<Sha, GitError> {
        let command = always_the_same(self.command("saving a submodule"));
        command.commit("liza: rescued work of a repository inside a worktree\n", tree, parents, &[])
    }
}

struct UnpublishedWork {
    /// The project has them now.
    tips: Vec<Sha>,
    /// A tree of its files, if some of them are not committed.
    files: Option<Sha>,
}

fn rescue_name(task: &TaskId, path: &Path, number: u32) -> Branch {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let slug: String = path.to_string_lossy().trim_end_matches('/').chars().map(safe).collect();
    Branch::nested_rescue(task, &slug, number)
}

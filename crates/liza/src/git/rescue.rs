//! Saves what would be lost: unmerged commits and uncommitted files go to a new branch `rescue/<task>-<n>`.
//!
//! Works on a copy of the index, so the worktree, its index, HEAD and branch do not change. Deletes nothing.

use std::fs;
use std::path::{Path, PathBuf};

use liza_core::model::{Sha, TaskId};

use super::command::{GitCommand, TREE_LIMIT};
use super::error::GitError;
use super::leftovers::temporary_name;
use super::refs::Branch;
use super::repo::{NO_COMMIT, Repo, path, sha};
use super::status::{FileChange, UntrackedFiles, WorktreeStatus};

/// The prefix of our scratch files in the repository's git folder.
pub(crate) const SCRATCH: &str = "liza-index-";

/// Work that was saved, now or by an earlier call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescue {
    /// The branch that holds it.
    pub branch: Branch,
    /// The branch's commit.
    pub commit: Sha,
    /// Whether it includes uncommitted files.
    pub uncommitted: bool,
    /// Branches with the work inside submodules and nested repositories.
    pub nested: Vec<Branch>,
}

/// Revisions whose commits are safe and need no rescue.
#[derive(Debug, Clone)]
pub(crate) struct SafeRevisions(Vec<String>);

impl SafeRevisions {
    /// The base and the integration branch.
    pub(crate) fn of(base: Option<&Sha>, integration: &Branch) -> Self {
        Self(base.map(ToString::to_string).into_iter().chain([integration.full()]).collect())
    }

    /// A single commit.
    pub(crate) fn in_commit(commit: &Sha) -> Self {
        Self(vec![commit.to_string()])
    }

    /// These and `commit`.
    pub(crate) fn and(mut self, commit: Option<&Sha>) -> Self {
        self.0.extend(commit.map(ToString::to_string));
        self
    }
}

/// A folder that may contain unsaved work.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RescueSource<'a> {
    /// A worktree that git lists.
    Worktree(&'a Path),
    /// A folder that git no longer lists, or did not finish; it was created from `start`.
    LooseFolder { folder: &'a Path, start: &'a Sha },
}

/// Work that is to be saved.
#[derive(Debug, Default)]
struct UnsavedWork {
    /// A tree of the current files, if some are uncommitted.
    uncommitted: Option<Sha>,
    /// Commits; the first is the one with which the files are compared.
    tips: Vec<Sha>,
    /// Branches with the work of nested repositories.
    nested: Vec<Branch>,
}

/// A temporary index, deleted on drop.
pub(crate) struct ScratchIndex(PathBuf);

impl Drop for ScratchIndex {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// An existing rescue branch of a task.
struct RescueBranch {
    number: u32,
    commit: Sha,
    tree: String,
    parents: String,
}

impl Repo {
    /// Saves what `source` and `tips` contain beyond `safe`; `None` when there is provably nothing.
    pub(crate) fn rescue_work(
        &self,
        task: &TaskId,
        source: Option<RescueSource<'_>>,
        tips: &[Sha],
        safe: &SafeRevisions,
    ) -> Result<Option<Rescue>, GitError> {
        let mut work = match source {
            Some(RescueSource::Worktree(folder)) => self.work_in_worktree(task, folder)?,
            Some(RescueSource::LooseFolder { folder, start }) => {
                let tree = self.loose_tree(folder, start)?;
                let same = tree == self.tree_of(start)?;
                let uncommitted = (!same).then_some(tree);
                UnsavedWork { uncommitted, tips: vec![start.clone()], nested: Vec::new() }
            }
            None => UnsavedWork::default(),
        };
        work.tips.extend(tips.iter().cloned());
        let only_commits = work.uncommitted.is_none() && work.nested.is_empty();
        if only_commits && !self.has_unsafe_commits(task, &work.tips, safe)? {
            return Ok(None);
        }
        self.save(task, work).map(Some)
    }

    fn work_in_worktree(&self, task: &TaskId, folder: &Path) -> Result<UnsavedWork, GitError> {
        let status = self.status(folder, UntrackedFiles::Show)?;
        let git_dir = self.git_dir_of(folder)?;
        let nested = self.save_nested(task, folder, &git_dir, &status)?;
        let mut tips: Vec<Sha> = status.head.iter().cloned().collect();
        tips.extend(commits_in_progress(&git_dir));
        let mut uncommitted = None;
        if !status.changes.is_empty() {
            uncommitted = Some(self.snapshot(folder, &git_dir, &status)?);
            tips.extend(self.staged_only(folder, &git_dir, &status)?);
        }
        Ok(UnsavedWork { uncommitted, tips, nested })
    }

    /// Creates the branch, or finds the one that an earlier, interrupted rescue created.
    fn save(&self, task: &TaskId, work: UnsavedWork) -> Result<Rescue, GitError> {
        let parents = self.independent(work.tips)?;
        let existing = self.rescues(task)?;
        let uncommitted = work.uncommitted.is_some();
        let (commit, known) = match (work.uncommitted, parents.as_slice()) {
            (None, [tip]) => (tip.clone(), existing.iter().find(|old| old.commit == *tip)),
            (tree, _) => {
                let tree = match (tree, parents.first()) {
                    (Some(tree), _) => tree,
                    (None, Some(tip)) => self.tree_of(tip)?,
                    (None, None) => return Err(GitError::NoCommits { path: self.worktree_path(task) }),
                };
                let names = parents.iter().map(Sha::as_str).collect::<Vec<_>>().join(" ");
                match existing.iter().find(|old| old.tree == tree.as_str() && old.parents == names) {
                    Some(old) => (old.commit.clone(), Some(old)),
                    None => (self.rescue_commit(task, &tree, &parents)?, None),
                }
            }
        };
        let next = existing.iter().map(|old| old.number).max().unwrap_or(0) + 1;
        let number = match known {
            Some(old) => old.number,
            None => self.create_numbered(next, &commit, |number| Branch::rescue(task, number))?,
        };
        Ok(Rescue { branch: Branch::rescue(task, number), commit, uncommitted, nested: work.nested })
    }

    /// Creates the first free branch of a numbered series.
    pub(crate) fn create_numbered(
        &self,
        first: u32,
        commit: &Sha,
        name: impl Fn(u32) -> Branch,
    ) -> Result<u32, GitError> {
        let mut number = first;
        loop {
            match self.update_ref(&name(number).full(), commit.as_str(), NO_COMMIT, "liza: rescue") {
                Ok(()) => return Ok(number),
                // Another process took the number.
                Err(error) if self.tip(&name(number))?.is_none() || number > first + 100 => {
                    return Err(error);
                }
                Err(_) => number += 1,
            }
        }
    }

    /// Whether some tip has a commit that is neither safe nor on a rescue branch.
    fn has_unsafe_commits(
        &self,
        task: &TaskId,
        tips: &[Sha],
        safe: &SafeRevisions,
    ) -> Result<bool, GitError> {
        if tips.is_empty() {
            return Ok(false);
        }
        let command = self
            .command("looking for unmerged commits")
            .args(["rev-list", "--max-count=1", "--ignore-missing"])
            .args(tips.iter().map(Sha::as_str))
            .arg("--not")
            .args(&safe.0)
            .arg(format!("--branches=rescue/{task}-*"))
            .arg("--");
        Ok(!command.read()?.is_empty())
    }

    /// The commits without those that another one contains, in the same order.
    pub(crate) fn independent(&self, mut commits: Vec<Sha>) -> Result<Vec<Sha>, GitError> {
        let mut seen = Vec::new();
        commits.retain(|commit| {
            !seen.contains(commit) && {
                seen.push(commit.clone());
                true
            }
        });
        if commits.len() < 2 {
            return Ok(commits);
        }
        let command = self.command("comparing commits").args(["merge-base", "--independent"]);
        let output = command.args(commits.iter().map(Sha::as_str)).read_text()?;
        // The first always stays: the saved files are compared with it.
        let first = commits.first().cloned();
        commits.retain(|commit| {
            Some(commit) == first.as_ref() || output.lines().any(|line| line == commit.as_str())
        });
        Ok(commits)
    }

    fn rescues(&self, task: &TaskId) -> Result<Vec<RescueBranch>, GitError> {
        let prefix = format!("refs/heads/rescue/{task}-");
        let format = "--format=%(refname) %(objectname) %(tree) %(parent)";
        let command = self.command("listing rescue branches");
        let command = command.args(["for-each-ref", format, &format!("{prefix}*")]);
        let parse = |line: &str| {
            let mut words = line.splitn(4, ' ');
            // `rescue/a-1-1` belongs to task `a-1`, not to `a`.
            let number = words.next()?.strip_prefix(&prefix)?.parse().ok()?;
            let (commit, tree) = (words.next()?.parse().ok()?, words.next()?.to_owned());
            Some(RescueBranch { number, commit, tree, parents: words.next().unwrap_or_default().to_owned() })
        };
        Ok(command.read_text()?.lines().filter_map(parse).collect())
    }

    /// A tree of all files in the worktree that are not ignored, as they are now.
    pub(crate) fn snapshot(
        &self,
        folder: &Path,
        git_dir: &Path,
        status: &WorktreeStatus,
    ) -> Result<Sha, GitError> {
        let scratch = self.scratch();
        let command = || self.command_in("saving uncommitted work", folder);
        let take = || {
            self.add_all(command(), &scratch, "--all", status)?;
            self.write_tree(command(), &scratch)
        };
        // With a copy of the index git does not read unchanged files; without it (it may be damaged) it still works.
        if fs::copy(git_dir.join("index"), &scratch.0).is_ok()
            && let Ok(tree) = take()
        {
            return Ok(tree);
        }
        let _ = fs::remove_file(&scratch.0);
        if status.head.is_some() {
            self.in_scratch(command(), &scratch).args(["read-tree", "HEAD"]).check()?;
        }
        take()
    }

    /// The same for a folder that git does not list; missing files are taken from `start`.
    fn loose_tree(&self, folder: &Path, start: &Sha) -> Result<Sha, GitError> {
        let scratch = self.scratch();
        let command = || {
            let command = self.command_in("saving the files of an incomplete worktree", folder);
            let git_dir = self.common_dir().as_os_str().to_owned();
            command.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", folder)
        };
        self.in_scratch(command(), &scratch).args(["read-tree", start.as_str()]).check()?;
        let status = WorktreeStatus { head: None, branch: None, changes: Vec::new() };
        self.add_all(command(), &scratch, "--ignore-removal", &status)?;
        self.write_tree(command(), &scratch)
    }

    /// A commit of the index, where it has versions that are neither in HEAD nor in the files.
    fn staged_only(
        &self,
        folder: &Path,
        git_dir: &Path,
        status: &WorktreeStatus,
    ) -> Result<Option<Sha>, GitError> {
        let differs =
            |change: &FileChange| matches!(change, FileChange::Tracked { staged: true, unstaged: true, .. });
        let Some(head) = status.head.as_ref().filter(|_| status.changes.iter().any(differs)) else {
            return Ok(None);
        };
        let scratch = self.scratch();
        if fs::copy(git_dir.join("index"), &scratch.0).is_err() {
            return Ok(None);
        }
        // An index with conflicts cannot be written; its versions are all in the merged commits.
        let Ok(tree) = self.write_tree(self.command_in("saving staged work", folder), &scratch) else {
            return Ok(None);
        };
        self.commit_tree("liza: what was staged", &tree, std::slice::from_ref(head)).map(Some)
    }

    fn add_all(
        &self,
        command: GitCommand,
        scratch: &ScratchIndex,
        option: &str,
        status: &WorktreeStatus,
    ) -> Result<(), GitError> {
        let command = self.in_scratch(command, scratch).args(["add", "--sparse", option, "--", "."]);
        // Nested repositories are saved separately: git would only record the hash of their commit.
        let nested = status.changes.iter().filter_map(nested_repository);
        let excludes = nested.map(|path| {
            let mut pathspec = std::ffi::OsString::from(":(exclude,top,literal)");
            pathspec.push(path);
            pathspec
        });
        command.args(excludes).limit(TREE_LIMIT).check()
    }

    fn write_tree(&self, command: GitCommand, scratch: &ScratchIndex) -> Result<Sha, GitError> {
        let command = self.in_scratch(command, scratch).arg("write-tree");
        command.read_with(sha)
    }

    pub(crate) fn in_scratch(&self, command: GitCommand, scratch: &ScratchIndex) -> GitCommand {
        command.env("GIT_INDEX_FILE", &scratch.0)
    }

    fn rescue_commit(&self, task: &TaskId, tree: &Sha, parents: &[Sha]) -> Result<Sha, GitError> {
        let message = format!(
            "liza: rescued work of {task}\n\nSaved before its worktree was changed or removed.\n\nLiza-Task: {task}\n"
        );
        self.commit_tree(&message, tree, parents)
    }

    /// Commits as Liza and unsigned: saving work must not fail because git has no identity.
    pub(crate) fn commit_tree(&self, message: &str, tree: &Sha, parents: &[Sha]) -> Result<Sha, GitError> {
        as_liza(self.command("saving work")).commit(message, tree, parents, &[])
    }

    pub(crate) fn tree_of(&self, commit: &Sha) -> Result<Sha, GitError> {
        let command =
            self.command("reading a commit").args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]);
        command.read_with(sha)
    }

    /// The folder in which git keeps the index and HEAD of one worktree.
    pub(crate) fn git_dir_of(&self, folder: &Path) -> Result<PathBuf, GitError> {
        let command = self.command_in("finding a worktree's git folder", folder);
        let command = command.args(["rev-parse", "--path-format=absolute", "--git-dir"]);
        let mut output = command.read()?;
        output.pop_if(|last| *last == b'\n');
        Ok(path(&output))
    }

    pub(crate) fn scratch(&self) -> ScratchIndex {
        ScratchIndex(self.common_dir().join(temporary_name(SCRATCH)))
    }
}

impl GitCommand {
    /// Runs `commit-tree` with the given content.
    pub(crate) fn commit(
        self,
        message: &str,
        tree: &Sha,
        parents: &[Sha],
        options: &[&str],
    ) -> Result<Sha, GitError> {
        let parents = parents.iter().flat_map(|parent| ["-p", parent.as_str()]);
        let command = self
            .arg("commit-tree")
            .args(options)
            .arg(tree.as_str())
            .args(parents)
            .args(["-F", "-"])
            .stdin(message);
        command.read_with(sha)
    }
}

/// Sets Liza as author and committer.
pub(crate) fn as_liza(command: GitCommand) -> GitCommand {
    command
        .env("GIT_AUTHOR_NAME", "Liza")
        .env("GIT_AUTHOR_EMAIL", "liza@localhost")
        .env("GIT_COMMITTER_NAME", "Liza")
        .env("GIT_COMMITTER_EMAIL", "liza@localhost")
}

/// The path of an untracked repository: the only kind of folder that git lists among untracked files.
pub(crate) fn nested_repository(change: &FileChange) -> Option<&Path> {
    let is_folder = |path: &Path| path.as_os_str().as_encoded_bytes().ends_with(b"/");
    match change {
        FileChange::Untracked { path } => Some(path.as_path()).filter(|path| is_folder(path)),
        FileChange::Tracked { .. } | FileChange::Conflicted { .. } | FileChange::Ignored { .. } => None,
    }
}

/// Commits that only an unfinished merge or rebase may refer to.
fn commits_in_progress(git_dir: &Path) -> Vec<Sha> {
    const FILES: [&str; 6] = [
        "MERGE_HEAD",
        "rebase-merge/orig-head",
        "rebase-merge/autostash",
        "rebase-apply/orig-head",
        "rebase-apply/autostash",
        "MERGE_AUTOSTASH",
    ];
    let read = FILES.iter().filter_map(|file| fs::read_to_string(git_dir.join(file)).ok());
    read.flat_map(|text| text.lines().filter_map(|line| line.trim().parse().ok()).collect::<Vec<Sha>>())
        .filter(Sha::is_full)
        .collect()
}

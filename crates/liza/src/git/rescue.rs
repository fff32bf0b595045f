//! Saves what would be lost: unmerged commits and uncommitted files go to a new branch `rescue/<task>-<n>`.
//!
//! Works on a copy of the index, so neither the worktree nor its index, HEAD or branch notices. Deletes nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use liza_core::model::{Sha, TaskId};

use super::error::GitError;
use super::refs::Branch;
use super::repo::{ABSENT, Repo, path, sha};
use super::run::{Call, TREE_LIMIT};
use super::status::{Change, Status, Untracked};

/// Begins the names of our scratch files in the repository's git folder.
pub(crate) const SCRATCH: &str = "liza-index-";

/// Work that was saved, or had been saved before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescue {
    /// Where it is now.
    pub branch: Branch,
    /// The branch's commit.
    pub commit: Sha,
    /// Whether files that were in no commit are in it.
    pub uncommitted: bool,
    /// Branches that keep the work inside submodules and nested repositories.
    pub nested: Vec<Branch>,
}

/// What is already safe, as revisions that git understands.
#[derive(Debug, Clone)]
pub(crate) struct Kept(Vec<String>);

impl Kept {
    /// What the integration branch and the base contain.
    pub(crate) fn by(base: Option<&Sha>, integration: &Branch) -> Self {
        Self(base.map(ToString::to_string).into_iter().chain([integration.full()]).collect())
    }

    /// What a commit contains.
    pub(crate) fn in_commit(commit: &Sha) -> Self {
        Self(vec![commit.to_string()])
    }

    /// The same and what `commit` contains.
    pub(crate) fn and(mut self, commit: Option<&Sha>) -> Self {
        self.0.extend(commit.map(ToString::to_string));
        self
    }
}

/// Files in which there may be unsaved work, and how git is made to look at them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Seat<'a> {
    /// A worktree that git knows.
    Worktree(&'a Path),
    /// A folder that git has forgotten, or never finished; `start` is what it was made from.
    Loose { folder: &'a Path, start: &'a Sha },
}

/// What there is to save.
#[derive(Debug, Default)]
struct Work {
    /// The files as they are, where they are in no commit.
    uncommitted: Option<Sha>,
    /// Commits, the one that the files are compared with first.
    tips: Vec<Sha>,
    /// Where the work of repositories inside has been saved.
    nested: Vec<Branch>,
}

/// An index of our own for as long as it lives.
struct ScratchIndex(PathBuf);

impl Drop for ScratchIndex {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// One rescue branch of a task that exists.
struct Existing {
    number: u32,
    commit: Sha,
    tree: String,
    parents: String,
}

impl Repo {
    /// Saves what `seat` and `tips` hold beyond what is kept; `None` when there is provably nothing.
    pub(crate) fn rescue_work(
        &self,
        task: &TaskId,
        seat: Option<Seat<'_>>,
        tips: &[Sha],
        kept: &Kept,
    ) -> Result<Option<Rescue>, GitError> {
        let mut work = match seat {
            Some(Seat::Worktree(folder)) => self.work_in_worktree(task, folder)?,
            Some(Seat::Loose { folder, start }) => {
                let tree = self.loose_tree(folder, start)?;
                let same = tree == self.tree_of(start)?;
                let uncommitted = (!same).then_some(tree);
                Work { uncommitted, tips: vec![start.clone()], nested: Vec::new() }
            }
            None => Work::default(),
        };
        work.tips.extend(tips.iter().cloned());
        let only_commits = work.uncommitted.is_none() && work.nested.is_empty();
        if only_commits && !self.has_unkept(task, &work.tips, kept)? {
            return Ok(None);
        }
        self.save(task, work).map(Some)
    }

    fn work_in_worktree(&self, task: &TaskId, folder: &Path) -> Result<Work, GitError> {
        let status = self.status(folder, Untracked::Show)?;
        let git_dir = self.git_dir_of(folder)?;
        let nested = self.save_nested(task, folder, &git_dir, &status)?;
        let mut tips: Vec<Sha> = status.head.iter().cloned().collect();
        tips.extend(unfinished_business(&git_dir));
        let mut uncommitted = None;
        if !status.changes.is_empty() {
            uncommitted = Some(self.snapshot(folder, &git_dir, &status)?);
            tips.extend(self.staged_only(folder, &git_dir, &status)?);
        }
        Ok(Work { uncommitted, tips, nested })
    }

    /// Makes the branch, or finds the one that an earlier, interrupted rescue made.
    fn save(&self, task: &TaskId, work: Work) -> Result<Rescue, GitError> {
        let parents = self.without_contained(work.tips)?;
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
            match self.update_ref(&name(number).full(), commit.as_str(), ABSENT, "liza: rescue") {
                Ok(()) => return Ok(number),
                // Somebody else took the number.
                Err(error) if self.tip(&name(number))?.is_none() || number > first + 100 => {
                    return Err(error);
                }
                Err(_) => number += 1,
            }
        }
    }

    /// Whether some tip has a commit that is neither kept nor on a rescue branch.
    fn has_unkept(&self, task: &TaskId, tips: &[Sha], kept: &Kept) -> Result<bool, GitError> {
        if tips.is_empty() {
            return Ok(false);
        }
        let call = self
            .here("looking for unmerged commits")
            .args(["rev-list", "--max-count=1", "--ignore-missing"])
            .args(tips.iter().map(Sha::as_str))
            .arg("--not")
            .args(&kept.0)
            .arg(format!("--branches=rescue/{task}-*"))
            .arg("--");
        Ok(!call.ok()?.is_empty())
    }

    /// The commits of which none is contained in another, in the same order.
    pub(crate) fn without_contained(&self, mut commits: Vec<Sha>) -> Result<Vec<Sha>, GitError> {
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
        let call = self.here("comparing commits").args(["merge-base", "--independent"]);
        let answer = call.args(commits.iter().map(Sha::as_str)).text()?;
        // The first stays whatever it is: it is what the saved files are compared with.
        let first = commits.first().cloned();
        commits.retain(|commit| {
            Some(commit) == first.as_ref() || answer.lines().any(|line| line == commit.as_str())
        });
        Ok(commits)
    }

    fn rescues(&self, task: &TaskId) -> Result<Vec<Existing>, GitError> {
        let call = self.here("listing rescue branches").args([
            "for-each-ref",
            "--format=%(refname) %(objectname) %(tree) %(parent)",
            &format!("refs/heads/rescue/{task}-*"),
        ]);
        let prefix = format!("refs/heads/rescue/{task}-");
        let parse = |line: &str| {
            let mut words = line.splitn(4, ' ');
            // `rescue/a-1-1` belongs to task `a-1`, not to `a`.
            let number = words.next()?.strip_prefix(&prefix)?.parse().ok()?;
            let (commit, tree) = (words.next()?.parse().ok()?, words.next()?.to_owned());
            Some(Existing { number, commit, tree, parents: words.next().unwrap_or_default().to_owned() })
        };
        Ok(call.text()?.lines().filter_map(parse).collect())
    }

    /// A tree of every file in the worktree that is not ignored, as it is now.
    pub(crate) fn snapshot(&self, folder: &Path, git_dir: &Path, status: &Status) -> Result<Sha, GitError> {
        let scratch = self.scratch();
        let call = || self.call("saving uncommitted work", folder);
        let take = || {
            self.add_all(call(), &scratch, "--all", status)?;
            self.write_tree(call(), &scratch)
        };
        // The copy spares reading files that have not changed; a damaged one is done without.
        if fs::copy(git_dir.join("index"), &scratch.0).is_ok()
            && let Ok(tree) = take()
        {
            return Ok(tree);
        }
        let _ = fs::remove_file(&scratch.0);
        if status.head.is_some() {
            self.in_scratch(call(), &scratch).args(["read-tree", "HEAD"]).ok()?;
        }
        take()
    }

    /// The same for a folder that git does not know; what is missing there is taken from `start`.
    fn loose_tree(&self, folder: &Path, start: &Sha) -> Result<Sha, GitError> {
        let scratch = self.scratch();
        let call = || {
            let call = self.call("saving what a half-made worktree holds", folder);
            let git_dir = self.common_dir().as_os_str().to_owned();
            call.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", folder)
        };
        self.in_scratch(call(), &scratch).args(["read-tree", start.as_str()]).ok()?;
        let status = Status { head: None, branch: None, changes: Vec::new() };
        self.add_all(call(), &scratch, "--ignore-removal", &status)?;
        self.write_tree(call(), &scratch)
    }

    /// A commit of the index, where it holds versions that are neither in HEAD nor in the files.
    fn staged_only(&self, folder: &Path, git_dir: &Path, status: &Status) -> Result<Option<Sha>, GitError> {
        let differs =
            |change: &Change| matches!(change, Change::Tracked { staged: true, unstaged: true, .. });
        let Some(head) = status.head.as_ref().filter(|_| status.changes.iter().any(differs)) else {
            return Ok(None);
        };
        let scratch = self.scratch();
        if fs::copy(git_dir.join("index"), &scratch.0).is_err() {
            return Ok(None);
        }
        // An index with conflicts cannot be written; its versions are all in the commits that were being merged.
        let Ok(tree) = self.write_tree(self.call("saving staged work", folder), &scratch) else {
            return Ok(None);
        };
        self.commit_tree("liza: what was staged", &tree, std::slice::from_ref(head)).map(Some)
    }

    fn add_all(
        &self,
        call: Call,
        scratch: &ScratchIndex,
        how: &str,
        status: &Status,
    ) -> Result<(), GitError> {
        let call = self.in_scratch(call, scratch).args(["add", "--sparse", how, "--", "."]);
        // A repository inside is saved on its own: as a file, git would only keep its commit's name.
        let nested = status.changes.iter().filter_map(nested_repository);
        let excludes = nested.map(|path| {
            let mut pathspec = std::ffi::OsString::from(":(exclude,top,literal)");
            pathspec.push(path);
            pathspec
        });
        call.args(excludes).limit(TREE_LIMIT).ok().map(drop)
    }

    fn write_tree(&self, call: Call, scratch: &ScratchIndex) -> Result<Sha, GitError> {
        let call = self.in_scratch(call, scratch).arg("write-tree");
        let answer = call.ok()?;
        sha(&answer).ok_or_else(|| call.unreadable(&answer))
    }

    fn in_scratch(&self, call: Call, scratch: &ScratchIndex) -> Call {
        call.env("GIT_INDEX_FILE", &scratch.0)
    }

    fn rescue_commit(&self, task: &TaskId, tree: &Sha, parents: &[Sha]) -> Result<Sha, GitError> {
        let message = format!(
            "liza: rescued work of {task}\n\nSaved before its worktree was changed or removed.\n\nLiza-Task: {task}\n"
        );
        self.commit_tree(&message, tree, parents)
    }

    /// Commits in our own name and unsigned: saving work must not fail because nobody said who commits.
    pub(crate) fn commit_tree(&self, message: &str, tree: &Sha, parents: &[Sha]) -> Result<Sha, GitError> {
        in_our_name(self.here("saving work")).commit(message, tree, parents, &[])
    }

    pub(crate) fn tree_of(&self, commit: &Sha) -> Result<Sha, GitError> {
        let call =
            self.here("reading a commit").args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]);
        let answer = call.ok()?;
        sha(&answer).ok_or_else(|| call.unreadable(&answer))
    }

    /// The folder in which git keeps what belongs to one worktree.
    pub(crate) fn git_dir_of(&self, folder: &Path) -> Result<PathBuf, GitError> {
        let call = self.call("finding a worktree's git folder", folder);
        let call = call.args(["rev-parse", "--path-format=absolute", "--git-dir"]);
        let mut answer = call.ok()?;
        answer.pop_if(|last| *last == b'\n');
        Ok(path(&answer))
    }

    fn scratch(&self) -> ScratchIndex {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        ScratchIndex(self.common_dir().join(format!("{SCRATCH}{}-{number}", std::process::id())))
    }
}

impl Call {
    /// Makes this a `commit-tree` and runs it.
    pub(crate) fn commit(
        self,
        message: &str,
        tree: &Sha,
        parents: &[Sha],
        options: &[&str],
    ) -> Result<Sha, GitError> {
        let parents = parents.iter().flat_map(|parent| ["-p", parent.as_str()]);
        let call = self
            .arg("commit-tree")
            .args(options)
            .arg(tree.as_str())
            .args(parents)
            .args(["-F", "-"])
            .stdin(message);
        let answer = call.ok()?;
        sha(&answer).ok_or_else(|| call.unreadable(&answer))
    }
}

/// Sets us as author and committer.
pub(crate) fn in_our_name(call: Call) -> Call {
    call.env("GIT_AUTHOR_NAME", "Liza")
        .env("GIT_AUTHOR_EMAIL", "liza@localhost")
        .env("GIT_COMMITTER_NAME", "Liza")
        .env("GIT_COMMITTER_EMAIL", "liza@localhost")
}

/// An untracked folder that is a repository of its own: the only kind of folder in a list of files.
pub(crate) fn nested_repository(change: &Change) -> Option<&Path> {
    let is_folder = |path: &Path| path.as_os_str().as_encoded_bytes().ends_with(b"/");
    match change {
        Change::Untracked { path } => Some(path.as_path()).filter(|path| is_folder(path)),
        Change::Tracked { .. } | Change::Conflicted { .. } | Change::Ignored { .. } => None,
    }
}

/// Commits that an unfinished merge or rebase holds and that no branch may contain.
fn unfinished_business(git_dir: &Path) -> Vec<Sha> {
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

//! The worktree of a task: makes it, looks at it, puts it back, removes it; each step can be repeated.
//!
//! Whatever a killed git or a killed Liza left is mended first. Nothing that is not kept elsewhere is deleted
//! before it is rescued. Only the owner of the task's reservation or claim may call what changes a tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use liza_core::model::{Sha, TaskId};

use super::error::GitError;
use super::refs::Branch;
use super::repo::{Entry, Lock, Repo, sha};
use super::rescue::{Kept, Rescue, SCRATCH, Seat};
use super::run::TREE_LIMIT;
use super::status::{Change, Untracked};
use crate::sys::process;

/// What becomes of work that is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The coder goes on with it.
    Keep,
    /// A new coder begins at the base; old work is rescued.
    Fresh,
}

/// A worktree that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ensured {
    /// Where, in full.
    pub path: PathBuf,
    /// Whether it was made now.
    pub made: bool,
    /// Work that had to make room.
    pub rescued: Option<Rescue>,
}

/// A worktree that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Whether there was anything to remove.
    pub found: bool,
    /// Work that was saved first.
    pub rescued: Option<Rescue>,
    /// Where somebody else has the task's branch checked out, so that it was left.
    pub branch_in_use: Option<PathBuf>,
}

/// A worktree that is as it was submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Whether anything had to be put back.
    pub changed: bool,
    /// What was saved first.
    pub rescued: Option<Rescue>,
}

/// What the protocol wants to know of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Its commit.
    pub head: Sha,
    /// Whether the task's branch is checked out.
    pub on_task_branch: bool,
    /// Whether its commit contains the base.
    pub has_base: bool,
    /// Everything uncommitted: what a submission is refused for.
    pub changes: Vec<Change>,
}

impl Facts {
    /// The part of the changes that voids a verdict: what a test run left untracked does not.
    pub fn tracked_changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.is_tracked())
    }
}

/// What is there of a task's worktree and branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The state of its folder.
    pub folder: Folder,
    /// Whether git has an entry for it.
    pub registered: bool,
    /// The commit of the task's branch, if it exists.
    pub branch: Option<Sha>,
    /// Where else the task's branch is checked out.
    pub branch_in_use: Option<PathBuf>,
}

/// The state of the folder in which a task's worktree should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folder {
    /// Not there.
    Absent,
    /// A worktree.
    Healthy,
    /// `git worktree add` was killed, or git has forgotten it.
    Broken,
    /// Something that we did not make.
    Foreign,
}

impl Repo {
    /// Makes sure that the task's worktree exists, on its branch; from `base` if it has to be made.
    ///
    /// # Errors
    ///
    /// When git cannot make it; what could not be saved is left as it was.
    pub fn ensure(
        &self,
        task: &TaskId,
        base: &Sha,
        mode: Mode,
        integration: &Branch,
    ) -> Result<Ensured, GitError> {
        let (path, base) = (self.worktree_path(task), &self.full(base)?);
        // Nearly always nothing is there, and one call is enough.
        if fs::symlink_metadata(&path).is_err() && self.add_new(task, base).is_ok() {
            return Ok(Ensured { path, made: true, rescued: None });
        }
        let found = self.find(task)?;
        let as_wanted = match (found.folder, mode) {
            (Folder::Healthy, Mode::Keep) => true,
            (Folder::Healthy, Mode::Fresh) => self.is_pristine(task, base)?,
            (Folder::Absent | Folder::Broken | Folder::Foreign, _) => false,
        };
        if as_wanted {
            self.clear_stale_locks(Some(&path), &[&Branch::of(task)])?;
            return Ok(Ensured { path, made: false, rescued: None });
        }
        let kept = match mode {
            Mode::Keep => Kept::by(Some(base), integration).and(found.branch.as_ref()),
            Mode::Fresh => Kept::by(Some(base), integration),
        };
        if let Some(path) = found.branch_in_use {
            return Err(GitError::BranchInUse { branch: task.branch(), path });
        }
        let rescued = self.rescue_found(task, &found, Some(base), &kept)?;
        self.clear(task, &found)?;
        match (mode, &found.branch) {
            (Mode::Keep, Some(_)) => self.add_existing(task)?,
            (Mode::Keep, None) => self.add_anew(task, base)?,
            (Mode::Fresh, _) => {
                self.delete_task_branch(task, &found)?;
                self.add_anew(task, base)?;
            }
        }
        Ok(Ensured { path, made: true, rescued })
    }

    /// Removes the task's worktree and branch, after saving what is not kept by `base` or the integration branch.
    ///
    /// # Errors
    ///
    /// When something cannot be saved or removed; what could not be saved is left as it was.
    pub fn remove(
        &self,
        task: &TaskId,
        base: Option<&Sha>,
        integration: &Branch,
    ) -> Result<Removed, GitError> {
        self.sweep();
        let found = self.find(task)?;
        if found.folder == Folder::Absent && !found.registered && found.branch.is_none() {
            return Ok(Removed { found: false, rescued: None, branch_in_use: None });
        }
        let rescued = self.rescue_found(task, &found, base, &Kept::by(base, integration))?;
        self.clear(task, &found)?;
        if found.branch_in_use.is_none() {
            self.delete_task_branch(task, &found)?;
        }
        Ok(Removed { found: true, rescued, branch_in_use: found.branch_in_use })
    }

    /// Saves what the task's worktree and branch hold beyond `base` and the integration branch, changing nothing.
    ///
    /// # Errors
    ///
    /// When it cannot be saved.
    pub fn rescue(
        &self,
        task: &TaskId,
        base: Option<&Sha>,
        integration: &Branch,
    ) -> Result<Option<Rescue>, GitError> {
        let found = self.find(task)?;
        self.rescue_found(task, &found, base, &Kept::by(base, integration))
    }

    /// Looks at the task's worktree.
    ///
    /// # Errors
    ///
    /// When there is none, or it has no commit.
    pub fn facts(&self, task: &TaskId, base: &Sha) -> Result<Facts, GitError> {
        let status = self.status(&self.worktree_path(task), Untracked::Show)?;
        let head = status.head.ok_or_else(|| GitError::NoCommits { path: self.worktree_path(task) })?;
        let on_task_branch = status.branch.as_deref() == Some(Branch::of(task).as_str());
        let has_base = head.names_same_commit(base) || self.is_ancestor(base, &head)?;
        Ok(Facts { head, on_task_branch, has_base, changes: status.changes })
    }

    /// The commit that the task's worktree is at; `None` where there is no worktree that git could use.
    ///
    /// # Errors
    ///
    /// When git cannot be run.
    pub fn head_of(&self, task: &TaskId) -> Result<Option<Sha>, GitError> {
        let path = self.worktree_path(task);
        // Without its link, git would take the folder for a part of the project around it.
        if !path.join(".git").is_file() {
            return Ok(None);
        }
        let call = self.call("reading a worktree's HEAD", &path);
        let reply = call.args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).run()?;
        Ok(sha(&reply.stdout).filter(|_| reply.status == Some(0)))
    }

    /// Puts HEAD, the task's branch and the tracked files back to `commit`; untracked files stay.
    ///
    /// # Errors
    ///
    /// When what would be lost cannot be saved, or git cannot put the tree back.
    pub fn restore(&self, task: &TaskId, commit: &Sha) -> Result<Restored, GitError> {
        let (path, branch) = (self.worktree_path(task), Branch::of(task));
        let doing = format!("restoring the worktree of {task}");
        let commit = &self.full(commit)?;
        self.clear_stale_locks(Some(&path), &[&branch])?;
        let status = self.status(&path, Untracked::Show)?;
        let at_commit = status.head.as_ref() == Some(commit);
        let tracked = status.changes.iter().any(Change::is_tracked);
        if at_commit && status.branch.as_deref() == Some(branch.as_str()) && !tracked {
            return Ok(Restored { changed: false, rescued: None });
        }
        // Untracked files stay, so alone they are no reason to save anything; but one that stands in the place of a
        // file of that commit does not stay.
        let seat = (tracked || !at_commit && !status.changes.is_empty()).then_some(Seat::Worktree(&path));
        let tips: Vec<Sha> = status.head.into_iter().chain(self.tip(&branch)?).collect();
        let rescued = self.rescue_work(task, seat, &tips, &Kept::in_commit(commit))?;
        let git_dir = self.git_dir_of(&path)?;
        if git_dir.join("rebase-merge").exists() || git_dir.join("rebase-apply").exists() {
            self.call(&doing, &path).args(["rebase", "--quit"]).ok()?;
        }
        self.call(&doing, &path).args(["symbolic-ref", "HEAD", &branch.full()]).ok()?;
        self.call(&doing, &path)
            .args(["reset", "--quiet", "--hard", commit.as_str()])
            .limit(TREE_LIMIT)
            .ok()?;
        Ok(Restored { changed: true, rescued })
    }

    /// Says what is there of a task's worktree and branch; mends the links of a project that was moved.
    ///
    /// # Errors
    ///
    /// When git cannot tell.
    pub fn find(&self, task: &TaskId) -> Result<Found, GitError> {
        let found = self.find_once(task)?;
        let path = self.worktree_path(task);
        if found.folder == Folder::Broken && path.join(".git").is_file() && !found.registered {
            let _ = self.here("mending a worktree").args(["worktree", "repair", "--"]).arg(&path).run()?;
            return self.find_once(task);
        }
        Ok(found)
    }

    fn find_once(&self, task: &TaskId) -> Result<Found, GitError> {
        let (path, branch) = (self.worktree_path(task), Branch::of(task));
        let entries = self.worktrees()?;
        let entry = entries.iter().find(|entry| same_place(&entry.path, &path));
        let holds =
            |entry: &&Entry| entry.branch.as_ref() == Some(&branch.full()) && !same_place(&entry.path, &path);
        let branch_in_use = entries.iter().find(holds).map(|entry| entry.path.clone());
        let on_branch = entry.filter(|entry| entry.branch.as_ref() == Some(&branch.full()));
        let tip = match on_branch.and_then(|entry| entry.head.clone()) {
            Some(head) => Some(head),
            None => self.tip(&branch)?,
        };
        Ok(Found {
            folder: folder_state(&path, entry),
            registered: entry.is_some(),
            branch: tip,
            branch_in_use,
        })
    }

    fn is_pristine(&self, task: &TaskId, base: &Sha) -> Result<bool, GitError> {
        let status = self.status(&self.worktree_path(task), Untracked::ShowIgnored)?;
        let on_branch = status.branch.as_deref() == Some(Branch::of(task).as_str());
        Ok(on_branch && status.head.as_ref() == Some(base) && status.changes.is_empty())
    }

    fn rescue_found(
        &self,
        task: &TaskId,
        found: &Found,
        base: Option<&Sha>,
        kept: &Kept,
    ) -> Result<Option<Rescue>, GitError> {
        let path = self.worktree_path(task);
        let start = found.branch.as_ref().or(base);
        let seat = match found.folder {
            Folder::Absent => None,
            Folder::Healthy => Some(Seat::Worktree(&path)),
            Folder::Broken => start.map(|start| Seat::Loose { folder: &path, start }),
            Folder::Foreign => return Err(foreign(&path)),
        };
        let is_empty = || fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
        if seat.is_none() && found.folder == Folder::Broken && !is_empty() {
            return Err(foreign(&path));
        }
        let tips: Vec<Sha> = found.branch.iter().cloned().collect();
        self.rescue_work(task, seat, &tips, kept)
    }

    fn add_new(&self, task: &TaskId, base: &Sha) -> Result<(), GitError> {
        let branch = Branch::of(task);
        self.add(task, &["-b", branch.as_str(), "--no-track"], base.as_str())
    }

    /// Makes the worktree where the branch is known to be gone. Git makes the branch before the tree, and may then fail
    /// in a race with others; so that a second try does not stumble over the first, the branch is set, not created.
    fn add_anew(&self, task: &TaskId, base: &Sha) -> Result<(), GitError> {
        let branch = Branch::of(task);
        self.add(task, &["-B", branch.as_str(), "--no-track"], base.as_str())
    }

    fn add_existing(&self, task: &TaskId) -> Result<(), GitError> {
        self.add(task, &[], Branch::of(task).as_str())
    }

    fn add(&self, task: &TaskId, options: &[&str], start: &str) -> Result<(), GitError> {
        self.add_at(&self.worktree_path(task), format!("making the worktree of {task}"), options, start)
    }

    /// Makes a worktree at `path`.
    pub(crate) fn add_at(
        &self,
        path: &Path,
        doing: String,
        options: &[&str],
        start: &str,
    ) -> Result<(), GitError> {
        let call = self
            .here(doing)
            .args(["worktree", "add", "--quiet"])
            .args(options)
            .arg("--")
            .args([path.as_os_str(), start.as_ref()])
            .limit(TREE_LIMIT);
        let Err(error) = call.ok() else { return Ok(()) };
        // A post-checkout hook that fails makes git fail, after it has made a good worktree.
        let entries = self.worktrees()?;
        let entry = entries.iter().find(|entry| same_place(&entry.path, path));
        let is_there = folder_state(path, entry) == Folder::Healthy;
        let complete = is_there && self.status(path, Untracked::Skip)?.changes.is_empty();
        if complete { Ok(()) } else { Err(error) }
    }

    /// Takes the folder away in one step, so that a crash cannot leave half of it looking like a coder's deletions.
    fn clear(&self, task: &TaskId, found: &Found) -> Result<(), GitError> {
        let doing = format!("removing the worktree of {task}");
        let path = self.worktree_path(task);
        let trash = self.trash();
        if found.folder != Folder::Absent {
            fs::rename(&path, &trash).map_err(|error| GitError::io(&doing, &path, error))?;
        }
        if found.registered {
            // Twice, because it may be locked.
            self.here(&doing).args(["worktree", "remove", "--force", "--force", "--"]).arg(&path).ok()?;
        }
        if found.folder != Folder::Absent {
            fs::remove_dir_all(&trash).map_err(|error| GitError::io(&doing, &trash, error))?;
        }
        Ok(())
    }

    fn delete_task_branch(&self, task: &TaskId, found: &Found) -> Result<(), GitError> {
        found.branch.as_ref().map_or(Ok(()), |tip| self.delete_branch(&Branch::of(task), tip))
    }

    fn trash(&self) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        self.root().join(format!(".worktrees/{TRASH}{}-{number}", std::process::id()))
    }

    /// Deletes what processes that are gone left: folders on their way out, test worktrees, scratch files; says which.
    pub fn sweep(&self) -> Vec<PathBuf> {
        let folder = self.root().join(".worktrees");
        let mut swept = self.sweep_integration_tests();
        for trash in leftovers(&folder, TRASH) {
            // It was rescued before it became trash; what cannot be deleted now is tried again next time.
            let _ = fs::remove_dir_all(&trash);
            swept.push(trash);
        }
        for scratch in leftovers(self.common_dir(), SCRATCH) {
            let _ = fs::remove_file(&scratch);
            swept.push(scratch);
        }
        swept
    }
}

/// Begins the names of folders that are being deleted; no task can be called so.
const TRASH: &str = ".trash-";

/// Files and folders named `<prefix><process>-<number>` whose process is gone.
pub(crate) fn leftovers(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let abandoned = entries.filter_map(|entry| {
        let name = entry.file_name();
        let (owner, _) = name.to_str()?.strip_prefix(prefix)?.split_once('-')?;
        (!process::is_alive(owner.parse().ok()?)).then(|| entry.path())
    });
    abandoned.collect()
}

pub(crate) fn folder_state(path: &Path, entry: Option<&Entry>) -> Folder {
    let Ok(data) = fs::symlink_metadata(path) else { return Folder::Absent };
    let link = path.join(".git");
    if !data.is_dir() || link.is_dir() {
        return Folder::Foreign;
    }
    let whole = |entry: &Entry| entry.lock != Some(Lock::Initializing) && entry.prunable.is_none();
    if entry.is_some_and(whole) && link.is_file() { Folder::Healthy } else { Folder::Broken }
}

fn foreign(path: &Path) -> GitError {
    GitError::Foreign { path: path.to_owned() }
}

/// Whether two paths are one, though links lead to it.
pub(crate) fn same_place(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    one == other || real(one).is_some_and(|one| Some(one) == real(other))
}

//! The worktree of a task: creates, inspects, restores and removes it; each step can be repeated.
//!
//! What a killed git or a killed Liza left is repaired first. Nothing is deleted before it is rescued, unless it is
//! provably kept elsewhere. Only the owner of the task's reservation or claim may call what changes a worktree.

use std::fs;
use std::path::{Path, PathBuf};

use liza_core::model::WorktreeMode;
use liza_core::model::{Sha, TaskId};

use super::command::TREE_LIMIT;
use super::error::GitError;
use super::isolated::ISOLATED;
use super::leftovers::{leftovers, temporary_name};
use super::refs::Branch;
use super::repo::{Repo, WorktreeEntry, WorktreeLock, sha};
use super::rescue::{Rescue, RescueSource, SCRATCH, SafeRevisions};
use super::status::{FileChange, UntrackedFiles};

/// A worktree that is ready to be worked in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedWorktree {
    /// Its full path.
    pub path: PathBuf,
    /// Whether it was created now.
    pub created: bool,
    /// Earlier work that was in the way.
    pub rescued: Option<Rescue>,
}

/// The result of removing a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedWorktree {
    /// Whether there was anything to remove.
    pub existed: bool,
    /// Work that was saved first.
    pub rescued: Option<Rescue>,
    /// Where else the task's branch is checked out; it was not deleted then.
    pub branch_in_use: Option<PathBuf>,
}

/// The result of restoring a worktree to the submitted commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredWorktree {
    /// Whether anything had to be restored.
    pub changed: bool,
    /// Work that was saved first.
    pub rescued: Option<Rescue>,
}

/// What the protocol needs to know about a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeState {
    /// Its commit.
    pub head: Sha,
    /// Whether the task's branch is checked out.
    pub on_task_branch: bool,
    /// Whether its commit contains the base.
    pub has_base: bool,
    /// All uncommitted changes; any of them prevents a submission.
    pub changes: Vec<FileChange>,
}

impl WorktreeState {
    /// The changes that void a verdict: untracked files, such as the output of a test, do not.
    pub fn tracked_changes(&self) -> impl Iterator<Item = &FileChange> {
        self.changes.iter().filter(|change| change.is_tracked())
    }
}

/// What exists of a task's worktree and branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskArtifacts {
    /// The state of its folder.
    pub folder: FolderState,
    /// Whether git lists it as a worktree.
    pub registered: bool,
    /// The commit of the task's branch, if it exists.
    pub branch: Option<Sha>,
    /// Another folder in which the task's branch is checked out.
    pub branch_in_use: Option<PathBuf>,
}

/// The state of the folder for a task's worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderState {
    /// It does not exist.
    Absent,
    /// It is a worktree.
    Healthy,
    /// `git worktree add` was killed, or git no longer lists it.
    Broken,
    /// It is something that Liza did not create.
    Foreign,
}

impl Repo {
    /// Makes sure that the task's worktree exists, on its branch; from `base` if it has to be created.
    ///
    /// # Errors
    ///
    /// When git cannot create it; work that could not be saved is not touched.
    pub fn prepare_worktree(
        &self,
        task: &TaskId,
        base: &Sha,
        mode: WorktreeMode,
        integration: &Branch,
    ) -> Result<PreparedWorktree, GitError> {
        let (path, base) = (self.worktree_path(task), &self.full_hash(base)?);
        // Usually nothing exists yet, and one command is enough.
        if fs::symlink_metadata(&path).is_err() && self.add_new(task, base).is_ok() {
            return Ok(PreparedWorktree { path, created: true, rescued: None });
        }
        let found = self.task_artifacts(task)?;
        let is_ready = match (found.folder, mode) {
            (FolderState::Healthy, WorktreeMode::Keep) => true,
            (FolderState::Healthy, WorktreeMode::Fresh) => self.is_pristine(task, base)?,
            (FolderState::Absent | FolderState::Broken | FolderState::Foreign, _) => false,
        };
        if is_ready {
            self.clear_stale_locks(Some(&path), &[&Branch::of(task)])?;
            return Ok(PreparedWorktree { path, created: false, rescued: None });
        }
        let safe = match mode {
            WorktreeMode::Keep => SafeRevisions::of(Some(base), integration).and(found.branch.as_ref()),
            WorktreeMode::Fresh => SafeRevisions::of(Some(base), integration),
        };
        if let Some(path) = found.branch_in_use {
            return Err(GitError::BranchInUse { branch: task.branch(), path });
        }
        let rescued = self.rescue_artifacts(task, &found, Some(base), &safe)?;
        self.clear(task, &found)?;
        match (mode, &found.branch) {
            (WorktreeMode::Keep, Some(_)) => self.add_existing(task)?,
            (WorktreeMode::Keep, None) => self.add_again(task, base)?,
            (WorktreeMode::Fresh, _) => {
                self.delete_task_branch(task, &found)?;
                self.add_again(task, base)?;
            }
        }
        Ok(PreparedWorktree { path, created: true, rescued })
    }

    /// Removes the task's worktree and branch, after saving what neither `base` nor the integration branch contains.
    ///
    /// # Errors
    ///
    /// When something cannot be saved or removed; work that could not be saved is not touched.
    pub fn remove_worktree(
        &self,
        task: &TaskId,
        base: Option<&Sha>,
        integration: &Branch,
    ) -> Result<RemovedWorktree, GitError> {
        self.remove_leftovers();
        let found = self.task_artifacts(task)?;
        if found.folder == FolderState::Absent && !found.registered && found.branch.is_none() {
            return Ok(RemovedWorktree { existed: false, rescued: None, branch_in_use: None });
        }
        let rescued = self.rescue_artifacts(task, &found, base, &SafeRevisions::of(base, integration))?;
        self.clear(task, &found)?;
        if found.branch_in_use.is_none() {
            self.delete_task_branch(task, &found)?;
        }
        Ok(RemovedWorktree { existed: true, rescued, branch_in_use: found.branch_in_use })
    }

    /// Saves what the task's worktree and branch contain beyond `base` and the integration branch; changes nothing.
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
        let found = self.task_artifacts(task)?;
        self.rescue_artifacts(task, &found, base, &SafeRevisions::of(base, integration))
    }

    /// The state of the task's worktree.
    ///
    /// # Errors
    ///
    /// When there is none, or it has no commit.
    pub fn worktree_state(&self, task: &TaskId, base: &Sha) -> Result<WorktreeState, GitError> {
        let status = self.status(&self.worktree_path(task), UntrackedFiles::Show)?;
        let head = status.head.ok_or_else(|| GitError::NoCommits { path: self.worktree_path(task) })?;
        let on_task_branch = status.branch.as_deref() == Some(Branch::of(task).as_str());
        let has_base = head.names_same_commit(base) || self.is_ancestor(base, &head)?;
        Ok(WorktreeState { head, on_task_branch, has_base, changes: status.changes })
    }

    /// HEAD of the task's worktree; `None` where there is no usable worktree.
    ///
    /// # Errors
    ///
    /// When git cannot be run.
    pub(crate) fn worktree_head(&self, task: &TaskId) -> Result<Option<Sha>, GitError> {
        let path = self.worktree_path(task);
        // Without its `.git` file, git would take the folder for a part of the project around it.
        if !path.join(".git").is_file() {
            return Ok(None);
        }
        let command = self.command_in("reading a worktree's HEAD", &path);
        let output = command.args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).run()?;
        Ok(sha(&output.stdout).filter(|_| output.status == Some(0)))
    }

    /// Resets HEAD, the task's branch and the tracked files to `commit`; untracked files stay.
    ///
    /// # Errors
    ///
    /// When what would be lost cannot be saved, or git cannot reset the worktree.
    pub fn restore_worktree(&self, task: &TaskId, commit: &Sha) -> Result<RestoredWorktree, GitError> {
        let (path, branch) = (self.worktree_path(task), Branch::of(task));
        let action = format!("restoring the worktree of {task}");
        let commit = &self.full_hash(commit)?;
        self.clear_stale_locks(Some(&path), &[&branch])?;
        let status = self.status(&path, UntrackedFiles::Show)?;
        let at_commit = status.head.as_ref() == Some(commit);
        let tracked = status.changes.iter().any(FileChange::is_tracked);
        if at_commit && status.branch.as_deref() == Some(branch.as_str()) && !tracked {
            return Ok(RestoredWorktree { changed: false, rescued: None });
        }
        // Untracked files stay, so they alone are no reason to save anything, except one at the path of a file of that
        // commit: it is overwritten.
        let source =
            (tracked || !at_commit && !status.changes.is_empty()).then_some(RescueSource::Worktree(&path));
        let tips: Vec<Sha> = status.head.into_iter().chain(self.tip(&branch)?).collect();
        let rescued = self.rescue_work(task, source, &tips, &SafeRevisions::in_commit(commit))?;
        let git_dir = self.git_dir_of(&path)?;
        if git_dir.join("rebase-merge").exists() || git_dir.join("rebase-apply").exists() {
            self.command_in(&action, &path).args(["rebase", "--quit"]).check()?;
        }
        self.command_in(&action, &path).args(["symbolic-ref", "HEAD", &branch.full()]).check()?;
        self.command_in(&action, &path)
            .args(["reset", "--quiet", "--hard", commit.as_str()])
            .limit(TREE_LIMIT)
            .check()?;
        Ok(RestoredWorktree { changed: true, rescued })
    }

    /// What exists of a task's worktree and branch; repairs the links of a project that was moved.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn task_artifacts(&self, task: &TaskId) -> Result<TaskArtifacts, GitError> {
        let found = self.find_artifacts(task)?;
        let path = self.worktree_path(task);
        if found.folder == FolderState::Broken && path.join(".git").is_file() && !found.registered {
            let _ =
                self.command("repairing a worktree").args(["worktree", "repair", "--"]).arg(&path).run()?;
            return self.find_artifacts(task);
        }
        Ok(found)
    }

    fn find_artifacts(&self, task: &TaskId) -> Result<TaskArtifacts, GitError> {
        let (path, branch) = (self.worktree_path(task), Branch::of(task));
        let entries = self.worktrees()?;
        let full = branch.full();
        let is_ours =
            |entry: &&WorktreeEntry| entry.branch.as_ref() == Some(&full) && same_path(&entry.path, &path);
        let tip = match entries.iter().find(is_ours).and_then(|entry| entry.head.clone()) {
            Some(head) => Some(head),
            None => self.tip(&branch)?,
        };
        Ok(self.artifacts_among(task, &entries, tip))
    }

    /// What exists of a task, given git's list of worktrees and the commit of the task's branch.
    pub(crate) fn artifacts_among(
        &self,
        task: &TaskId,
        entries: &[WorktreeEntry],
        tip: Option<Sha>,
    ) -> TaskArtifacts {
        let (path, branch) = (self.worktree_path(task), Branch::of(task).full());
        let entry = entries.iter().find(|entry| same_path(&entry.path, &path));
        let elsewhere = entries
            .iter()
            .find(|entry| entry.branch.as_ref() == Some(&branch) && !same_path(&entry.path, &path));
        TaskArtifacts {
            folder: folder_state(&path, entry),
            registered: entry.is_some(),
            branch: tip,
            branch_in_use: elsewhere.map(|entry| entry.path.clone()),
        }
    }

    fn is_pristine(&self, task: &TaskId, base: &Sha) -> Result<bool, GitError> {
        let status = self.status(&self.worktree_path(task), UntrackedFiles::ShowIgnored)?;
        let on_branch = status.branch.as_deref() == Some(Branch::of(task).as_str());
        Ok(on_branch && status.head.as_ref() == Some(base) && status.changes.is_empty())
    }

    fn rescue_artifacts(
        &self,
        task: &TaskId,
        found: &TaskArtifacts,
        base: Option<&Sha>,
        safe: &SafeRevisions,
    ) -> Result<Option<Rescue>, GitError> {
        let path = self.worktree_path(task);
        let start = found.branch.as_ref().or(base);
        let source = match found.folder {
            FolderState::Absent => None,
            FolderState::Healthy => Some(RescueSource::Worktree(&path)),
            FolderState::Broken => start.map(|start| RescueSource::LooseFolder { folder: &path, start }),
            FolderState::Foreign => return Err(foreign(&path)),
        };
        let is_empty = || fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
        if source.is_none() && found.folder == FolderState::Broken && !is_empty() {
            return Err(foreign(&path));
        }
        let tips: Vec<Sha> = found.branch.iter().cloned().collect();
        self.rescue_work(task, source, &tips, safe)
    }

    fn add_new(&self, task: &TaskId, base: &Sha) -> Result<(), GitError> {
        let branch = Branch::of(task);
        self.add(task, &["-b", branch.as_str(), "--no-track"], base.as_str())
    }

    /// Adds the worktree after the branch was deleted. `-B` sets the branch instead of creating it: git creates the
    /// branch before the worktree and may then fail in a race, and the second attempt must not fail because of the first.
    fn add_again(&self, task: &TaskId, base: &Sha) -> Result<(), GitError> {
        let branch = Branch::of(task);
        self.add(task, &["-B", branch.as_str(), "--no-track"], base.as_str())
    }

    fn add_existing(&self, task: &TaskId) -> Result<(), GitError> {
        self.add(task, &[], Branch::of(task).as_str())
    }

    fn add(&self, task: &TaskId, options: &[&str], start: &str) -> Result<(), GitError> {
        self.add_at(&self.worktree_path(task), format!("creating the worktree of {task}"), options, start)
    }

    /// Adds a worktree at `path`.
    pub(crate) fn add_at(
        &self,
        path: &Path,
        action: String,
        options: &[&str],
        start: &str,
    ) -> Result<(), GitError> {
        let command = self
            .command(action)
            .args(["worktree", "add", "--quiet"])
            .args(options)
            .arg("--")
            .args([path.as_os_str(), start.as_ref()])
            .limit(TREE_LIMIT);
        let Err(error) = command.check() else { return Ok(()) };
        // A failing post-checkout hook makes git fail after it has created a complete worktree.
        let entries = self.worktrees()?;
        let entry = entries.iter().find(|entry| same_path(&entry.path, path));
        let is_healthy = folder_state(path, entry) == FolderState::Healthy;
        let complete = is_healthy && self.status(path, UntrackedFiles::Skip)?.changes.is_empty();
        if complete { Ok(()) } else { Err(error) }
    }

    /// Moves the folder away in one step, so that a half-deleted one never looks like deletions by a coder.
    fn clear(&self, task: &TaskId, found: &TaskArtifacts) -> Result<(), GitError> {
        let action = format!("removing the worktree of {task}");
        let path = self.worktree_path(task);
        let trash = self.root().join(".worktrees").join(temporary_name(TRASH));
        if found.folder != FolderState::Absent {
            fs::rename(&path, &trash).map_err(|error| GitError::io(&action, &path, error))?;
        }
        if found.registered {
            // --force twice, since the worktree may be locked.
            self.command(&action)
                .args(["worktree", "remove", "--force", "--force", "--"])
                .arg(&path)
                .check()?;
        }
        if found.folder != FolderState::Absent {
            fs::remove_dir_all(&trash).map_err(|error| GitError::io(&action, &trash, error))?;
        }
        Ok(())
    }

    fn delete_task_branch(&self, task: &TaskId, found: &TaskArtifacts) -> Result<(), GitError> {
        found.branch.as_ref().map_or(Ok(()), |tip| self.delete_branch(&Branch::of(task), tip))
    }

    /// Deletes what dead processes left: folders being deleted, test worktrees, scratch files; returns them.
    pub fn remove_leftovers(&self) -> Vec<PathBuf> {
        let folder = self.root().join(".worktrees");
        let mut removed = self.remove_test_leftovers();
        for trash in leftovers(&folder, TRASH) {
            // Its work was rescued before; what cannot be deleted now is deleted next time.
            let _ = fs::remove_dir_all(&trash);
            removed.push(trash);
        }
        for isolated in leftovers(self.common_dir(), ISOLATED) {
            let _ = fs::remove_dir_all(&isolated);
            removed.push(isolated);
        }
        for scratch in leftovers(self.common_dir(), SCRATCH) {
            let _ = fs::remove_file(&scratch);
            removed.push(scratch);
        }
        removed
    }
}

/// The prefix of folders that are being deleted; no task ID starts with a dot.
const TRASH: &str = ".trash-";

pub(crate) fn folder_state(path: &Path, entry: Option<&WorktreeEntry>) -> FolderState {
    let Ok(data) = fs::symlink_metadata(path) else { return FolderState::Absent };
    let link = path.join(".git");
    if !data.is_dir() || link.is_dir() {
        return FolderState::Foreign;
    }
    let is_complete =
        |entry: &WorktreeEntry| entry.lock != Some(WorktreeLock::Initializing) && entry.prunable.is_none();
    if entry.is_some_and(is_complete) && link.is_file() { FolderState::Healthy } else { FolderState::Broken }
}

fn foreign(path: &Path) -> GitError {
    GitError::ForeignFolder { path: path.to_owned() }
}

/// Whether two paths lead to the same place, symbolic links resolved.
pub(crate) fn same_path(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    one == other || real(one).is_some_and(|one| Some(one) == real(other))
}

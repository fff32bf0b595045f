//! The worktree of a task: a checkout with its own repository. Creates, inspects and removes it; each step
//! can be repeated.
//!
//! The leftovers of a killed git or Liza are repaired first. Nothing is deleted before it is rescued, unless
//! it is provably kept elsewhere. Only the owner of the task's reservation or claim may change a worktree.

use std::fs;
use std::path::{Path, PathBuf};

use liza_host::worktrees::WORKTREES;
use liza_ids::{Generation, Sha, TaskId, WorktreeMode};
use liza_sandbox::sys::remove_tree::remove_tree;
use liza_sandbox::sys::untrusted::UntrustedFolder;

use crate::program::error::GitError;
use crate::program::leftovers::temporary_name;
use crate::program::refs::Branch;
use crate::program::repo::{Repo, same_path, sha};
use crate::workspace::agent_repo::{AgentRepo, linked_place};
use crate::workspace::own_repo::NewCheckout;
use crate::workspace::rescue::{Rescue, RescueSource, SafeRevisions, not_linked};
use crate::workspace::status::{FileChange, UntrackedFiles};
use crate::workspace::take::{TaskRefs, keep_ref};
use crate::workspace::view::Files;
use crate::workspace::worktree_list::{WorktreeEntry, WorktreeLock};

/// The prefix of folders that are being deleted; no task ID starts with a dot.
pub(crate) const TRASH: &str = ".trash-";

/// The generation of work that no session brought.
const NO_SESSION: Generation = Generation(0);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedWorktree {
    pub path: PathBuf,
    /// True if it was created now.
    pub created: bool,
    /// Earlier work that was in the way.
    pub rescued: Option<Rescue>,
    /// The repository of a worktree that should be kept was damaged, and it was made again.
    pub was_damaged: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedWorktree {
    pub existed: bool,
    pub rescued: Option<Rescue>,
    /// Another checkout of the task's branch, which was then not deleted.
    pub branch_in_use: Option<PathBuf>,
}

/// The facts that the protocol needs about a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeState {
    pub head: Sha,
    pub on_task_branch: bool,
    /// Its commit contains the base.
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

/// The existing parts of a task's worktree and branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskArtifacts {
    pub folder: FolderState,
    /// Git lists it as a linked worktree, as the original system made them.
    pub registered: bool,
    pub branch: Option<Sha>,
    /// Another folder in which the task's branch is checked out.
    pub branch_in_use: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderState {
    Absent,
    /// A checkout with its own repository.
    Healthy,
    /// A linked worktree of the original system; its work is saved, and the next claim replaces it.
    Linked,
    Broken,
    /// Something that Liza did not create.
    Foreign,
}

impl Repo {
    /// Makes sure that the task's worktree exists, on its branch; from `base` if it has to be created.
    pub fn prepare_worktree(
        &self,
        task: &TaskId,
        base: &Sha,
        mode: WorktreeMode,
        integration: &Branch,
    ) -> Result<PreparedWorktree, GitError> {
        let (path, base) = (self.worktree_path(task), &self.full_hash(base)?);
        self.check_worktrees_folder()?;
        // Usually nothing exists yet.
        if fs::symlink_metadata(&path).is_err() && self.begin_branch(task, base) {
            self.create_folder(task, base, integration)?;
            return Ok(PreparedWorktree { path, created: true, rescued: None, was_damaged: false });
        }
        let (found, refs) = self.find_task(task)?;
        let is_ready = match (found.folder, mode) {
            (FolderState::Healthy, WorktreeMode::Keep) => self.is_usable(task, integration),
            (FolderState::Healthy, WorktreeMode::Fresh) => self.is_pristine(task, base)?,
            (FolderState::Absent | FolderState::Linked | FolderState::Broken | FolderState::Foreign, _) => {
                false
            }
        };
        if is_ready {
            self.clear_stale_locks(Some(&path), &[&Branch::of(task)])?;
            return Ok(PreparedWorktree { path, created: false, rescued: None, was_damaged: false });
        }
        let safe = match mode {
            WorktreeMode::Keep => SafeRevisions::of(Some(base), integration).and(found.branch.as_ref()),
            WorktreeMode::Fresh => SafeRevisions::of(Some(base), integration),
        };
        if let Some(path) = found.branch_in_use {
            return Err(GitError::BranchInUse { branch: task.branch(), path });
        }
        let rescued = self.rescue_artifacts(task, &found, &refs, Some(base), &safe)?;
        let start = match (mode, &found.branch) {
            (WorktreeMode::Keep, Some(tip)) => {
                self.clear(task, &found, &refs.without_branch(task))?;
                tip
            }
            (WorktreeMode::Keep, None) | (WorktreeMode::Fresh, _) => {
                self.clear(task, &found, &refs)?;
                self.create_branch(&Branch::of(task), base)?;
                base
            }
        };
        self.keep_borrowed(task, start)?;
        self.create_folder(task, start, integration)?;
        let was_damaged = mode == WorktreeMode::Keep && found.folder == FolderState::Healthy;
        Ok(PreparedWorktree { path, created: true, rescued, was_damaged })
    }

    /// Creates the task's branch at `base`, and keeps that commit; false if there is such a branch, or git refuses.
    fn begin_branch(&self, task: &TaskId, base: &Sha) -> bool {
        let (branch, kept) = (Branch::of(task).full(), keep_ref(task, base));
        let lines = format!("create {branch} {base}\nupdate {kept} {base}\n");
        let command = self.command(format!("creating the branch of {task}"));
        command.args(["update-ref", "-m", "liza: create", "--stdin"]).stdin(lines).check().is_ok()
    }

    /// Creates the folder; the branch exists already, and a reference keeps its commit.
    fn create_folder(&self, task: &TaskId, start: &Sha, integration: &Branch) -> Result<(), GitError> {
        self.forget_linked(&self.worktree_path(task))?;
        self.create_checkout(&NewCheckout {
            place: &self.worktree_path(task),
            commit: start,
            branch: Some(&Branch::of(task)),
            integration: Some(integration),
            files: Files::AsInProject,
            keeps_index: true,
        })
    }

    /// Removes the task's worktree and branch, after saving work beyond `base` and the integration branch.
    pub fn remove_worktree(
        &self,
        task: &TaskId,
        base: Option<&Sha>,
        integration: &Branch,
    ) -> Result<RemovedWorktree, GitError> {
        self.remove_leftovers();
        self.remove_review(task)?;
        let (found, refs) = self.find_task(task)?;
        if found.folder == FolderState::Absent && !found.registered && refs.is_empty() {
            return Ok(RemovedWorktree { existed: false, rescued: None, branch_in_use: None });
        }
        let safe = SafeRevisions::of(base, integration);
        let rescued = self.rescue_artifacts(task, &found, &refs, base, &safe)?;
        let refs = if found.branch_in_use.is_none() { refs } else { refs.without_branch(task) };
        self.clear(task, &found, &refs)?;
        Ok(RemovedWorktree { existed: true, rescued, branch_in_use: found.branch_in_use })
    }

    /// Saves the work of the task's worktree and branch beyond `base` and the integration branch.
    pub fn rescue(
        &self,
        task: &TaskId,
        base: Option<&Sha>,
        integration: &Branch,
    ) -> Result<Option<Rescue>, GitError> {
        let (found, refs) = self.find_task(task)?;
        self.rescue_artifacts(task, &found, &refs, base, &SafeRevisions::of(base, integration))
    }

    /// Continues with work from another machine: the task's branch moves to `tip`, and the next worktree
    /// starts there. Work here that `tip` lacks is saved first; work here that contains `tip` is kept.
    pub fn continue_from(
        &self,
        task: &TaskId,
        tip: &Sha,
        integration: &Branch,
    ) -> Result<Option<Rescue>, GitError> {
        let taken = self.take_work(task, NO_SESSION).ok().flatten();
        let here = taken.map_or_else(|| self.tip(&Branch::of(task)), |head| Ok(Some(head)))?;
        if let Some(here) = here
            && self.is_ancestor(tip, &here)?
        {
            return Ok(None);
        }
        let (found, refs) = self.find_task(task)?;
        if let Some(path) = found.branch_in_use {
            return Err(GitError::BranchInUse { branch: task.branch(), path });
        }
        let safe = SafeRevisions::of(Some(tip), integration);
        let rescued = self.rescue_artifacts(task, &found, &refs, Some(tip), &safe)?;
        self.clear(task, &found, &refs)?;
        self.create_branch(&Branch::of(task), tip)?;
        Ok(rescued)
    }

    pub fn worktree_state(&self, task: &TaskId, base: &Sha) -> Result<WorktreeState, GitError> {
        self.checkout_state(&self.worktree_path(task), &Branch::of(task), base)
    }

    pub fn checkout_state(
        &self,
        path: &Path,
        branch: &Branch,
        base: &Sha,
    ) -> Result<WorktreeState, GitError> {
        let Some(agent) = AgentRepo::of(path) else { return self.linked_state(path, branch, base) };
        let head = agent.head()?;
        if !self.has_commit(&head.commit)? {
            let quarantine = self.quarantine(&agent, &head.commit)?;
            quarantine.transfer(std::slice::from_ref(&head.commit), None)?;
        }
        let view = self.view_of_worktree(path, &head.commit)?;
        let status = view.status(UntrackedFiles::Show)?;
        view.keep_index()?;
        let on_task_branch = head.branch == Some(branch.full());
        let has_base = head.commit.names_same_commit(base) || self.is_ancestor(base, &head.commit)?;
        Ok(WorktreeState { head: head.commit, on_task_branch, has_base, changes: status.changes })
    }

    fn linked_state(&self, path: &Path, branch: &Branch, base: &Sha) -> Result<WorktreeState, GitError> {
        let git_dir = self.linked_git_dir(path).ok_or_else(|| not_linked(path))?;
        let command = |action: &str| self.command(action).env("GIT_DIR", &git_dir);
        let head =
            command("reading a worktree's HEAD").args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
        let head = head.read_with(sha).map_err(|_| GitError::NoCommits { path: path.to_owned() })?;
        let name = command("reading a worktree's branch").args(["symbolic-ref", "--quiet", "HEAD"]).run()?;
        let on_task_branch = name.stdout.trim_ascii() == branch.full().as_bytes();
        let status = self.view_of_worktree(path, &head)?.status(UntrackedFiles::Show)?;
        let has_base = head.names_same_commit(base) || self.is_ancestor(base, &head)?;
        Ok(WorktreeState { head, on_task_branch, has_base, changes: status.changes })
    }

    /// `None` without a usable worktree.
    pub fn worktree_head(&self, task: &TaskId) -> Result<Option<Sha>, GitError> {
        let path = self.worktree_path(task);
        if let Some(agent) = AgentRepo::of(&path) {
            return Ok(agent.head().ok().map(|head| head.commit));
        }
        let Some(git_dir) = self.linked_git_dir(&path) else { return Ok(None) };
        let command = self.command("reading a worktree's HEAD").env("GIT_DIR", git_dir);
        let output = command.args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).run()?;
        Ok(sha(&output.stdout).filter(|_| output.status == Some(0)))
    }

    /// Repairs the links of a project that was moved.
    pub fn task_artifacts(&self, task: &TaskId) -> Result<TaskArtifacts, GitError> {
        self.find_task(task).map(|(found, _)| found)
    }

    fn find_task(&self, task: &TaskId) -> Result<(TaskArtifacts, TaskRefs), GitError> {
        let (found, refs) = self.find_artifacts(task)?;
        let path = self.worktree_path(task);
        if found.folder == FolderState::Broken && !found.registered && self.is_moved_link(&path) {
            let _ =
                self.command("repairing a worktree").args(["worktree", "repair", "--"]).arg(&path).run()?;
            return self.find_artifacts(task);
        }
        Ok((found, refs))
    }

    /// True if the link of a linked worktree leads to the place of this project before it was moved.
    fn is_moved_link(&self, path: &Path) -> bool {
        let link = UntrustedFolder::open(path).and_then(|tree| tree.read(Path::new(".git"), 4 << 10));
        let link = link.unwrap_or_default();
        let Some(named) = linked_place(&link).map(|place| path.join(place)) else { return false };
        let known = named.file_name().map(|name| self.common_dir().join("worktrees").join(name));
        // Git would write into the folder that it names, which must be that of this worktree.
        let is_own = |known: &Path| {
            let back = fs::read_to_string(known.join("gitdir")).unwrap_or_default();
            let place = Path::new(WORKTREES).join(path.file_name().unwrap_or_default()).join(".git");
            Path::new(back.trim_end()).ends_with(place)
        };
        known.is_some_and(|known| is_own(&known) && (!named.exists() || same_path(&known, &named)))
    }

    fn find_artifacts(&self, task: &TaskId) -> Result<(TaskArtifacts, TaskRefs), GitError> {
        let (entries, refs) = (self.worktrees()?, self.task_refs(task));
        Ok((self.artifacts_among(task, &entries, refs.branch(task).cloned()), refs))
    }

    /// The existing parts of a task, given git's list of worktrees and the commit of the task's branch.
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
            folder: self.folder_state(&path, entry),
            registered: entry.is_some(),
            branch: tip,
            branch_in_use: elsewhere.map(|entry| entry.path.clone()),
        }
    }

    fn folder_state(&self, path: &Path, entry: Option<&WorktreeEntry>) -> FolderState {
        let Ok(data) = fs::symlink_metadata(path) else { return FolderState::Absent };
        let link = path.join(".git");
        if !data.is_dir() {
            return FolderState::Foreign;
        }
        if link.is_dir() {
            return if self.is_own_checkout(path) { FolderState::Healthy } else { FolderState::Foreign };
        }
        let is_complete = |entry: &WorktreeEntry| {
            entry.lock != Some(WorktreeLock::Initializing) && entry.prunable.is_none()
        };
        if entry.is_some_and(is_complete) && link.is_file() {
            FolderState::Linked
        } else {
            FolderState::Broken
        }
    }

    /// True if the worktree's repository has everything that its HEAD needs; takes its work and refreshes it.
    /// A damaged one is made again.
    fn is_usable(&self, task: &TaskId, integration: &Branch) -> bool {
        let taken = self.take_work(task, NO_SESSION).is_ok_and(|head| head.is_some());
        taken && self.refresh_worktree(task, integration).is_ok()
    }

    fn is_pristine(&self, task: &TaskId, base: &Sha) -> Result<bool, GitError> {
        let path = self.worktree_path(task);
        let Some(agent) = AgentRepo::of(&path) else { return Ok(false) };
        let at_base = agent
            .head()
            .is_ok_and(|head| head.commit == *base && head.branch == Some(Branch::of(task).full()));
        if !at_base || !self.is_unused(&agent, base)? {
            return Ok(false);
        }
        let view = self.view_of_worktree(&path, base)?;
        Ok(view.status(UntrackedFiles::ShowIgnored)?.changes.is_empty())
    }

    fn rescue_artifacts(
        &self,
        task: &TaskId,
        found: &TaskArtifacts,
        refs: &TaskRefs,
        base: Option<&Sha>,
        safe: &SafeRevisions,
    ) -> Result<Option<Rescue>, GitError> {
        let path = self.worktree_path(task);
        let start = found.branch.as_ref().or(base);
        let source = match found.folder {
            FolderState::Absent => None,
            FolderState::Healthy => Some(RescueSource::Checkout { folder: &path, start }),
            FolderState::Linked => Some(RescueSource::Linked(&path)),
            FolderState::Broken => start.map(|start| RescueSource::LooseFolder { folder: &path, start }),
            FolderState::Foreign => return Err(foreign(&path)),
        };
        let is_empty = || fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
        if source.is_none() && found.folder == FolderState::Broken && !is_empty() {
            return Err(foreign(&path));
        }
        let mut tips: Vec<Sha> = found.branch.iter().cloned().collect();
        tips.extend(refs.taken().cloned());
        let known: Vec<Sha> = refs.commits().cloned().collect();
        self.rescue_work(task, source, (&tips, &known), safe)
    }

    /// Removes the folder and these references. The folder moves away in one step, so that a half-deleted one
    /// never looks like deletions by a coder.
    fn clear(&self, task: &TaskId, found: &TaskArtifacts, refs: &TaskRefs) -> Result<(), GitError> {
        let action = format!("removing the worktree of {task}");
        let path = self.worktree_path(task);
        let trash = self.worktrees_folder().join(temporary_name(TRASH));
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
        self.forget_index(task.as_str());
        self.drop_task_refs(task, refs)?;
        if found.folder != FolderState::Absent {
            remove_tree(&trash).map_err(|error| GitError::io(&action, &trash, error))?;
        }
        Ok(())
    }
}

fn foreign(path: &Path) -> GitError {
    GitError::ForeignFolder { path: path.to_owned() }
}

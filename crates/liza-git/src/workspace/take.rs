//! Takes the work of a task out of its worktree: its commits become the project's, checked, under references
//! of ours. `refs/liza/work/TASK/GENERATION` are a session's commits, `refs/liza/keep/TASK/…` borrowed ones,
//! `refs/liza/unreferenced/TASK/…` those that a session left behind. The task's branch follows.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use liza_ids::{Generation, Sha, TaskId, Worktree};

use crate::program::error::GitError;
use crate::program::refs::Branch;
use crate::program::refs_on_disk::refs_below;
use crate::program::repo::{NO_COMMIT, Repo};
use crate::workspace::agent_repo::{AgentHead, AgentRepo};

/// The folders of references that belong to one task's worktree.
const FOLDERS: [&str; 3] = [WORK, "refs/liza/keep", SENT];

const WORK: &str = "refs/liza/work";

const SENT: &str = "refs/liza/remote/task";

/// The references of a task's worktree: its branch, the taken commits, and the borrowed ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TaskRefs(BTreeMap<String, Sha>);

impl TaskRefs {
    fn get(&self, name: &str) -> Option<&Sha> {
        self.0.get(name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn branch(&self, task: &TaskId) -> Option<&Sha> {
        self.get(&Branch::of(task).full())
    }

    pub(crate) fn without_branch(mut self, task: &TaskId) -> Self {
        self.0.remove(&Branch::of(task).full());
        self
    }

    pub(crate) fn taken(&self) -> impl Iterator<Item = &Sha> {
        self.0.iter().filter(|(name, _)| name.starts_with(WORK)).map(|(_, commit)| commit)
    }

    /// The project has these commits with everything that they contain.
    pub(crate) fn commits(&self) -> impl Iterator<Item = &Sha> {
        self.0.values()
    }
}

pub(crate) fn keep_ref(task: &TaskId, commit: &Sha) -> String {
    format!("refs/liza/keep/{task}/{commit}")
}

/// The reference to a session's commits.
pub fn work_ref(task: &TaskId, generation: Generation) -> String {
    format!("{WORK}/{task}/{generation}")
}

/// The reference to the commits that were sent to the remote.
pub fn sent_ref(task: &TaskId, generation: Generation) -> String {
    format!("{SENT}/{task}/{generation}")
}

/// True if the commits of a task's worktree were sent to the remote. Does not start git.
pub fn is_sent(root: &Path, task: &TaskId, generation: Generation) -> bool {
    let Some(agent) = AgentRepo::of(&root.join(Worktree::of(task).as_str())) else { return true };
    let Ok(head) = agent.head() else { return false };
    let sent = fs::read_to_string(root.join(".git").join(sent_ref(task, generation)));
    sent.is_ok_and(|sent| sent.trim() == head.commit.as_str())
}

/// True if the commits of a task's worktree are taken already. Does not start git. May be false although they
/// are, where git keeps its references elsewhere.
pub fn is_taken(root: &Path, task: &TaskId, generation: Generation) -> bool {
    let Some(agent) = AgentRepo::of(&root.join(Worktree::of(task).as_str())) else { return true };
    let Ok(head) = agent.head() else { return false };
    let branch = Branch::of(task).full();
    // A session that left its branch is taken under its own name only.
    let name = match head.branch.as_ref() == Some(&branch) {
        true => branch,
        false => work_ref(task, generation),
    };
    fs::read_to_string(root.join(".git").join(name)).is_ok_and(|taken| taken.trim() == head.commit.as_str())
}

impl Repo {
    /// Brings the commits of a task's worktree into the project and moves the task's branch there; returns
    /// its HEAD. `None` without a worktree.
    pub fn take_work(&self, task: &TaskId, generation: Generation) -> Result<Option<Sha>, GitError> {
        let Some(agent) = AgentRepo::of(&self.worktree_path(task)) else { return self.worktree_head(task) };
        // A heartbeat may take the same work at the same time, and move the references first.
        let again = |_| self.take_once(task, generation, &agent);
        self.take_once(task, generation, &agent).or_else(again).map(Some)
    }

    fn take_once(&self, task: &TaskId, generation: Generation, agent: &AgentRepo) -> Result<Sha, GitError> {
        let head = agent.head()?;
        let name = work_ref(task, generation);
        let refs = self.task_refs(task);
        let branch = refs.branch(task);
        if refs.get(&name) != Some(&head.commit) && branch != Some(&head.commit) {
            self.quarantine(agent, &head.commit)?
                .transfer(std::slice::from_ref(&head.commit), Some(&name))?;
            self.save_large_files(agent)?;
            if let Some(old) = refs.get(&name) {
                self.keep_unreferenced(task, old, &head.commit)?;
            }
        }
        self.follow(task, &head, branch)?;
        Ok(head.commit)
    }

    /// Moves the task's branch in the project to its commit in the worktree, unless a person has it checked out.
    fn follow(&self, task: &TaskId, head: &AgentHead, old: Option<&Sha>) -> Result<(), GitError> {
        let branch = Branch::of(task);
        let full = branch.full();
        if head.branch.as_ref() != Some(&full) || old == Some(&head.commit) {
            return Ok(());
        }
        if !self.checkouts_of(&branch)?.is_empty() {
            return Ok(());
        }
        if let Some(old) = old {
            self.keep_unreferenced(task, old, &head.commit)?;
        }
        let old = old.map_or(NO_COMMIT, Sha::as_str);
        match self.update_ref(&full, head.commit.as_str(), old, "liza: the task's worktree") {
            Err(error) if self.tip(&branch)?.as_ref() != Some(&head.commit) => Err(error),
            // Done, by us or by another process.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Keeps a commit that `new` doesn't contain, and that a reference is about to leave.
    fn keep_unreferenced(&self, task: &TaskId, old: &Sha, new: &Sha) -> Result<(), GitError> {
        if self.is_ancestor(old, new)? {
            return Ok(());
        }
        self.keep_as_unreferenced(task, old)
    }

    /// Keeps a commit under a reference that no branch list shows.
    pub(crate) fn keep_as_unreferenced(&self, task: &TaskId, commit: &Sha) -> Result<(), GitError> {
        let command = self.command(format!("keeping a commit of {task}"));
        let name = format!("refs/liza/unreferenced/{task}/{commit}");
        command.args(["update-ref", "--", &name, commit.as_str()]).check()
    }

    /// Keeps a commit that the task's worktree borrows, so that no clean-up of the project can delete it.
    pub(crate) fn keep_borrowed(&self, task: &TaskId, commit: &Sha) -> Result<(), GitError> {
        let command = self.command(format!("keeping what the worktree of {task} needs"));
        command.args(["update-ref", "--", &keep_ref(task, commit), commit.as_str()]).check()
    }

    pub(crate) fn task_refs(&self, task: &TaskId) -> TaskRefs {
        let folders = FOLDERS.map(|folder| format!("{folder}/{task}"));
        let branch = Branch::of(task).full();
        let names: Vec<&str> = folders.iter().chain([&branch]).map(String::as_str).collect();
        TaskRefs(refs_below(self.common_dir(), &names))
    }

    /// Deletes the references of a worktree that is gone, unless one of them has moved since they were read:
    /// no newer commit may be lost.
    pub(crate) fn drop_task_refs(&self, task: &TaskId, refs: &TaskRefs) -> Result<(), GitError> {
        if refs.is_empty() {
            return Ok(());
        }
        let lines: String = refs.0.iter().map(|(name, at)| format!("delete {name} {at}\n")).collect();
        let command = self.command(format!("forgetting the worktree of {task}"));
        command.args(["update-ref", "--stdin"]).stdin(lines).check()
    }
}

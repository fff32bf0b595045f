//! The commits of tasks on the remote: `refs/liza/task/TASK/GENERATION` while a task is open,
//! `refs/liza/rescue/TASK/…` for unmerged work when it is over. Only the machine whose agent has a
//! registration writes the reference of that generation.

use liza_core::model::{Generation, Sha, TaskId, WorktreeMode};
use liza_git::{GitError, PushOutcome, RefChange, Rescue, sent_ref, work_ref};

use crate::engine::{EngineError, FileLock, read};

use super::{Exchange, ProblemKind};

const TASKS: &str = "refs/liza/task";

const RESCUES: &str = "refs/liza/rescue";

/// The most commands of another sender to the remote, each of which may take its whole time limit.
const SENDER_COMMANDS: u32 = 6;

fn remote_ref(task: &TaskId, generation: Generation) -> String {
    format!("{TASKS}/{task}/{generation}")
}

/// The only sender of a task's work on this machine while it exists: a heartbeat that began before a
/// submission must not end after it, with older work.
#[derive(Debug)]
pub struct TaskSender<'e, 'p> {
    exchange: &'e Exchange<'p>,
    task: &'e TaskId,
    _lock: FileLock,
}

impl<'e, 'p> Exchange<'p> {
    /// Waits until no other process here sends the work of a task.
    pub fn sender(&'e self, task: &'e TaskId) -> Result<TaskSender<'e, 'p>, EngineError> {
        let path = FileLock::of_sender(self.project.folder(), task);
        let lock = FileLock::at(&path, SENDER_COMMANDS * self.remote.limit())?;
        Ok(TaskSender { exchange: self, task, _lock: lock })
    }

    /// `None` if another process sends it now.
    pub(crate) fn free_sender(&'e self, task: &'e TaskId) -> Result<Option<TaskSender<'e, 'p>>, EngineError> {
        let lock = FileLock::try_at(&FileLock::of_sender(self.project.folder(), task))?;
        Ok(lock.map(|lock| TaskSender { exchange: self, task, _lock: lock }))
    }
}

impl TaskSender<'_, '_> {
    pub fn send(&self, generation: Generation, commit: &Sha) -> Result<(), EngineError> {
        let (exchange, name) = (self.exchange, remote_ref(self.task, generation));
        let pushed = exchange.push_all(&[RefChange::Set { name: name.clone(), to: commit.clone() }], &name);
        exchange.noted(ProblemKind::Refused, pushed)?;
        Ok(exchange.remote.see(&sent_ref(self.task, generation), commit)?)
    }

    /// Sends submitted work that the remote lacks. Never replaces another machine's work: false if the
    /// reference has other work.
    pub fn restore(&self, generation: Generation, commit: &Sha) -> Result<bool, EngineError> {
        let (exchange, name) = (self.exchange, remote_ref(self.task, generation));
        let create = RefChange::Move { name: name.clone(), from: None, to: commit.clone() };
        let pushed = exchange.remote.push(&[create]).map_err(EngineError::from);
        let pushed = pushed.and_then(|outcome| match outcome {
            PushOutcome::Done => Ok(true),
            PushOutcome::Moved => Ok(false),
            PushOutcome::Refused { message } => Err(exchange.refused(&name, message)),
        });
        let sent = exchange.noted(ProblemKind::Refused, pushed)?;
        if sent {
            exchange.remote.see(&sent_ref(self.task, generation), commit)?;
        }
        Ok(sent)
    }
}

impl Exchange<'_> {
    /// True if work of a task on the remote contains a commit.
    pub(crate) fn has_submission(&self, task: &TaskId, commit: &Sha) -> Result<bool, EngineError> {
        let repo = self.project.repo()?;
        for (generation, tip) in self.on_remote(task)? {
            if !repo.has_commit(&tip)? {
                self.remote.fetch(&remote_ref(task, generation), &sent_ref(task, generation))?;
            }
            if tip == *commit || repo.is_ancestor(commit, &tip)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sends work that was saved before something was removed.
    pub(crate) fn send_rescue(&self, task: &TaskId, rescue: &Rescue) -> Result<(), EngineError> {
        let change = rescue_of(task, &rescue.commit);
        self.noted(ProblemKind::Refused, self.push_all(&[change], &format!("{RESCUES}/{task}")))
    }

    /// Makes sure that a submitted commit is in this repository.
    pub(crate) fn bring_submission(&self, task: &TaskId, commit: &Sha) -> Result<(), EngineError> {
        if self.project.repo()?.has_commit(commit)? {
            return Ok(());
        }
        self.noted(ProblemKind::Unreachable, self.fetch_submission(task, commit))
    }

    fn fetch_submission(&self, task: &TaskId, commit: &Sha) -> Result<(), EngineError> {
        let found = self.on_remote(task)?;
        let name = |generation: Option<&Generation>| match generation {
            Some(generation) => remote_ref(task, *generation),
            None => format!("{TASKS}/{task}/… at {}", commit.short()),
        };
        let generation = found.iter().find(|(_, at)| at == commit).map(|(generation, _)| *generation);
        let missing = || GitError::RemoteRefMissing {
            remote: self.remote().to_owned(),
            name: name(generation.as_ref()),
        };
        let Some(generation) = generation else {
            // Later work may have it in its history.
            self.fetch_all(task)?;
            return match self.project.repo()?.has_commit(commit)? {
                true => Ok(()),
                false => Err(missing().into()),
            };
        };
        let fetched = self.remote.fetch(&remote_ref(task, generation), &work_ref(task, generation))?;
        // The reference may have moved since it was listed, with the commit in its history.
        if fetched == *commit || self.project.repo()?.has_commit(commit)? {
            return Ok(());
        }
        Err(missing().into())
    }

    /// Fetches earlier work of a task before its worktree is made: to be continued where the claim keeps it,
    /// saved on a branch otherwise.
    pub(crate) fn bring_work(
        &self,
        task: &TaskId,
        mode: WorktreeMode,
        base: &Sha,
    ) -> Result<Option<Rescue>, EngineError> {
        let Some(newest) = self.latest_work(task)? else { return Ok(None) };
        let repo = self.project.repo()?;
        match mode {
            WorktreeMode::Keep => Ok(repo.continue_from(task, &newest, &self.integration)?),
            WorktreeMode::Fresh => Ok(repo.remove_worktree(task, Some(base), &self.integration)?.rescued),
        }
    }

    /// Fetches the newest work of a task on the remote.
    pub(crate) fn latest_work(&self, task: &TaskId) -> Result<Option<Sha>, EngineError> {
        let found = self.noted(ProblemKind::Unreachable, self.fetch_all(task))?;
        self.newest(task, &found)
    }

    /// The work to continue: the one that contains all others, else the submitted one, else the newest
    /// commit. Numbers of registrations don't show their order.
    fn newest(&self, task: &TaskId, found: &[(Generation, Sha)]) -> Result<Option<Sha>, EngineError> {
        let repo = self.project.repo()?;
        let tips = repo.newest(found.iter().map(|(_, commit)| commit.clone()).collect())?;
        if let [] | [_] = tips.as_slice() {
            return Ok(tips.into_iter().next());
        }
        let board = read(self.project, &[task])?;
        let submitted = board.body(task).ok().and_then(|body| body.record().review_commit.clone());
        if let Some(submitted) = submitted.filter(|commit| repo.has_commit(commit).unwrap_or(false)) {
            for tip in &tips {
                if repo.is_ancestor(&submitted, tip)? {
                    return Ok(Some(tip.clone()));
                }
            }
        }
        Ok(repo.latest(&tips)?)
    }

    fn fetch_all(&self, task: &TaskId) -> Result<Vec<(Generation, Sha)>, EngineError> {
        let (repo, found) = (self.project.repo()?, self.on_remote(task)?);
        for (generation, commit) in &found {
            let here = work_ref(task, *generation);
            if repo.has_commit(commit)? {
                self.remote.see(&here, commit)?;
            } else {
                self.remote.fetch(&remote_ref(task, *generation), &here)?;
            }
        }
        Ok(found)
    }

    fn on_remote(&self, task: &TaskId) -> Result<Vec<(Generation, Sha)>, EngineError> {
        let listed = self.remote.list(&format!("{TASKS}/{task}/*"))?;
        let parse = |(name, commit): (String, Sha)| {
            let number = name.rsplit_once('/')?.1.parse().ok()?;
            Some((Generation(number), commit))
        };
        Ok(listed.into_iter().filter_map(parse).collect())
    }

    pub(crate) fn tasks_on_remote(&self) -> Result<Vec<(TaskId, Sha)>, EngineError> {
        let listed = self.noted(ProblemKind::Unreachable, Ok(self.remote.list(&format!("{TASKS}/*"))?))?;
        let parse = |(name, commit): (String, Sha)| {
            let task = name.strip_prefix(TASKS)?.trim_start_matches('/').rsplit_once('/')?.0;
            Some((task.parse().ok()?, commit))
        };
        Ok(listed.into_iter().filter_map(parse).collect())
    }

    /// Removes the references of a task that is over. Unmerged commits are kept under another name.
    pub(crate) fn clear_task(&self, task: &TaskId) -> Result<(), EngineError> {
        self.noted(ProblemKind::Refused, self.clear_refs(task))
    }

    fn clear_refs(&self, task: &TaskId) -> Result<(), EngineError> {
        let found = self.on_remote(task)?;
        if found.is_empty() {
            return Ok(());
        }
        let repo = self.project.repo()?;
        let head = self.remote.fetch_branch(&self.integration)?;
        let mut changes = Vec::new();
        for (generation, commit) in found {
            let here = sent_ref(task, generation);
            if !repo.has_commit(&commit)? {
                self.remote.fetch(&remote_ref(task, generation), &here)?;
            }
            let is_merged = match &head {
                Some(head) => repo.is_ancestor(&commit, head)?,
                None => false,
            };
            // Two registrations may have sent the same commit.
            let rescue = rescue_of(task, &commit);
            if !is_merged && !changes.contains(&rescue) {
                changes.push(rescue);
            }
            changes.push(RefChange::Delete { name: remote_ref(task, generation), at: commit });
        }
        self.push_all(&changes, &format!("{TASKS}/{task}"))
    }

    pub(crate) fn push_all(&self, changes: &[RefChange], what: &str) -> Result<(), EngineError> {
        match self.remote.push(changes)? {
            PushOutcome::Done => Ok(()),
            PushOutcome::Moved => Err(self.refused(what, "it has moved meanwhile".to_owned())),
            PushOutcome::Refused { message } => Err(self.refused(what, message)),
        }
    }
}

/// Keeps a commit on the remote under a name that no task uses.
fn rescue_of(task: &TaskId, commit: &Sha) -> RefChange {
    RefChange::Set { name: format!("{RESCUES}/{task}/{commit}"), to: commit.clone() }
}

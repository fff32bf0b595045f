//! The only way to change the blackboard: executes a command, then runs its effects outside the blackboard,
//! for commands, supervisors and screens. Sequences of commands and git operations are in `lifecycle/`.

mod error;
mod exchange;
mod liveness;
mod locks;
mod receipts;
mod stop_files;
mod stopping;
mod worktrees;

use std::cell::{Cell, RefCell};
use std::fs;
use std::io;

use liza_core::model::{
    Actor, Board, Effect, Revision, Section, Sha, State, StopFile, StopFiles, TaskId, Timestamp,
};
use liza_core::protocol::{CompleteSprint, Operation, Request};
use liza_git::{Branch, Repo, Rescue};
use liza_host::secrets::Masker;
use liza_sandbox::confine::remove_check_caches;
use liza_store::{Call, Host, Notice, Outcome};

use crate::project::{Project, now};
use crate::session::conversations::conversations_of;
use liza_report::summary;

pub use error::EngineError;
pub use exchange::{Exchange, Published, TaskSender, failed_since, remote_problem};
pub use liveness::{LivenessLock, LockAttempt};
pub use locks::FileLock;
pub use receipts::{MergeWords, is_stated_merge};
pub use stop_files::ESCALATION;
pub use stopping::{clear_stopping, is_stopping, mark_stopping};
pub use worktrees::is_needed;
pub use worktrees::{Discarded, discard, discard_locked, lock_task, prepare, try_lock_task};

/// Executes commands for one caller in one project.
#[derive(Debug)]
pub struct Engine<'p> {
    project: &'p Project,
    actor: Actor,
    if_revision: Cell<Option<Revision>>,
    fixed_now: Option<Timestamp>,
    notices: RefCell<Vec<Notice>>,
}

/// A command that was written; its effects have not run yet.
#[must_use = "its effects have not run yet: pass it to `Engine::finish`"]
#[derive(Debug)]
pub struct Submitted<R> {
    pub revision: Revision,
    pub reply: R,
    effects: Vec<Effect>,
}

/// A command that was written and whose effects have run.
#[derive(Debug)]
pub struct Executed<R> {
    pub revision: Revision,
    pub reply: R,
    pub effects: EffectResults,
}

#[derive(Debug, Default)]
pub struct EffectResults {
    /// Unmerged work of removed worktrees, saved before the removal.
    pub rescued: Vec<(TaskId, Rescue)>,
    /// Worktrees that could not be removed, and the reasons; `recover` removes them.
    pub left: Vec<(TaskId, EngineError)>,
    /// The revision at which the sprint was completed, if it was.
    pub sprint_completed: Option<Revision>,
}

impl<'p> Engine<'p> {
    pub fn new(project: &'p Project, actor: Actor) -> Self {
        let (if_revision, notices) = Default::default();
        Self { project, actor, if_revision, fixed_now: None, notices }
    }

    /// Makes the first write fail if its target has changed since that revision.
    #[must_use]
    pub fn if_revision(self, revision: Option<Revision>) -> Self {
        self.if_revision.set(revision);
        self
    }

    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        Self { fixed_now: Some(now), ..self }
    }

    pub fn project(&self) -> &'p Project {
        self.project
    }

    pub fn actor(&self) -> Actor {
        self.actor
    }

    /// Repairs of the store while it executed commands.
    pub fn notices(&self) -> Vec<Notice> {
        self.notices.borrow().clone()
    }

    /// Opened when it is first needed.
    pub fn repo(&self) -> Result<&'p Repo, EngineError> {
        Ok(self.project.repo()?)
    }

    pub fn snapshot(&self) -> Result<State, EngineError> {
        Ok(self.project.store().snapshot()?)
    }

    pub fn read(&self, tasks: &[&TaskId]) -> Result<Board, EngineError> {
        read(self.project, tasks)
    }

    pub fn execute<C: Operation>(&self, command: C) -> Result<Executed<C::Reply>, EngineError> {
        let submitted = self.submit(command)?;
        self.finish(submitted)
    }

    /// Writes the changes of a command without running its effects, for a caller that must release a lock first.
    pub fn submit<C: Operation>(&self, command: C) -> Result<Submitted<C::Reply>, EngineError> {
        let call = Call { actor: self.actor, if_revision: self.if_revision.take(), command };
        let Outcome { answer, written } = self.project.store().submit(call, self)?;
        self.notices.borrow_mut().extend(written.notices);
        match answer {
            Ok(reply) => Ok(Submitted { revision: written.revision, reply, effects: written.effects }),
            Err(refusal) => {
                self.run(written.effects)?;
                Err(refusal.into())
            }
        }
    }

    pub fn finish<R>(&self, submitted: Submitted<R>) -> Result<Executed<R>, EngineError> {
        let Submitted { revision, reply, effects } = submitted;
        let effects = self.run(effects)?;
        Ok(Executed { revision: effects.sprint_completed.unwrap_or(revision), reply, effects })
    }

    /// Checks a command against the rules without a lock and without a write, as if these stop files were present.
    pub fn check<C: Operation>(&self, stop_files: StopFiles, command: C) -> Result<C::Reply, EngineError> {
        let (actor, if_revision) = (self.actor, self.if_revision.get());
        let request = Request { actor, now: self.now(), stop_files, if_revision, command };
        Ok(self.project.store().check(request)?)
    }

    /// The only place where effects are interpreted.
    fn run(&self, effects: Vec<Effect>) -> Result<EffectResults, EngineError> {
        let mut results = EffectResults::default();
        for effect in effects {
            match effect {
                Effect::RemoveStopFile(file) => {
                    self.project.store().change_stop_rows(&[], &[file])?;
                    stop_files::remove(self.project.folder(), file)?;
                }
                Effect::RemoveWorktree(task) => self.remove_worktree(task, &mut results),
                Effect::WriteSprintSummary => self.write_summary(),
                Effect::CompleteSprint => results.sprint_completed = self.complete_sprint(),
            }
        }
        Ok(results)
    }

    fn remove_worktree(&self, task: TaskId, results: &mut EffectResults) {
        match discard(self.project, &task) {
            Ok(Discarded::Removed(removed)) => {
                let _ = fs::remove_dir_all(conversations_of(self.project.folder(), &task));
                remove_check_caches(self.project.folder(), &task);
                results.rescued.extend(removed.rescued.map(|rescue| (task, rescue)));
            }
            Ok(Discarded::Needed) => {}
            Err(error) => results.left.push((task, error)),
        }
    }

    /// Ignores errors: the checkpoint counts without a summary, and `liza checkpoint` reports the reason.
    fn write_summary(&self) {
        if let Ok(state) = self.project.state() {
            let is_tested = self.project.is_tested(&state);
            let _ = summary::write(self.project.store(), &state, is_tested, self.now());
        }
    }

    /// Completes the sprint as the system, independent of the caller that ended its last task. A refusal
    /// means that another process was faster or the planner has added a task; a missed completion is made up
    /// later.
    fn complete_sprint(&self) -> Option<Revision> {
        let system = Engine { fixed_now: self.fixed_now, ..Engine::new(self.project, Actor::Human) };
        let done = system.execute(CompleteSprint).ok()?;
        Some(done.revision)
    }

    pub fn integration_head(&self, integration: &Branch) -> Result<Sha, EngineError> {
        let missing = || EngineError::NoIntegrationBranch { branch: integration.clone() };
        self.repo()?.tip(integration)?.ok_or_else(missing)
    }
}

impl Host for Engine<'_> {
    fn now(&self) -> Timestamp {
        self.fixed_now.unwrap_or_else(now)
    }

    fn stop_files(&self) -> StopFiles {
        self.project.stop_files()
    }

    fn create_stop_files(&self, files: &[StopFile], now: Timestamp) -> io::Result<()> {
        files.iter().try_for_each(|file| stop_files::create(self.project.folder(), *file, now))
    }

    fn masked(&self, text: &str) -> String {
        Masker::of_process().mask(text).into_owned()
    }
}

pub fn integration_branch(board: &Board) -> Result<Branch, EngineError> {
    Ok(Branch::for_integration(&board.config()?.integration_branch)?)
}

/// The settings, the goal and the agents, and the records of these tasks.
pub fn read(project: &Project, tasks: &[&TaskId]) -> Result<Board, EngineError> {
    let tasks: Vec<TaskId> = tasks.iter().map(|task| (*task).clone()).collect();
    Ok(project.store().read_parts(&[Section::Config, Section::Goal, Section::Agents], &tasks)?)
}

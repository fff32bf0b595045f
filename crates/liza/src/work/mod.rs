//! The flows in which blackboard and git take turns: claim, review, merge, recovery.
//!
//! Commands and supervisors call the same code. No flow holds the blackboard's lock while git runs, and every flow
//! can be cut off at any step: `recover` settles what is left.

mod claim;
mod error;
mod life;
mod locks;
mod merge;
mod recover;
mod review;
mod tree;

use std::cell::{Cell, RefCell};

use liza_core::Command;
use liza_core::agent::Actor;
use liza_core::board::{Board, Section, State};
use liza_core::command::Halt;
use liza_core::effect::Effect;
use liza_core::ids::{Revision, Sha, TaskId};
use liza_core::value::Fields;
use liza_store::Notice;

use crate::git::{Branch, Repo};
use crate::project::Project;

pub use claim::Claimed;
pub use error::WorkError;
pub use life::{Asked, Life};
pub use locks::FileLock;
pub use merge::Merged;
pub use recover::{Finding, Kind, Report};
pub use tree::{Discarded, discard};

/// One caller at work in one project.
#[derive(Debug)]
pub struct Work<'p> {
    project: &'p Project,
    actor: Actor,
    if_revision: Cell<Option<Revision>>,
    notices: RefCell<Vec<Notice>>,
}

/// What a command on the blackboard came to.
#[derive(Debug)]
pub struct Written {
    /// The revision that now stands.
    pub revision: Revision,
    /// What the rules told.
    pub reply: Fields,
    /// What is to be done in the world.
    pub effects: Vec<Effect>,
}

impl<'p> Work<'p> {
    /// Work in the caller's name.
    pub fn new(project: &'p Project, actor: Actor) -> Self {
        let (if_revision, notices) = Default::default();
        Self { project, actor, if_revision, notices }
    }

    /// The first write of the flow is refused when its target has changed since that revision.
    #[must_use]
    pub fn if_revision(self, revision: Option<Revision>) -> Self {
        self.if_revision.set(revision);
        self
    }

    /// What the store found and settled on the way.
    pub fn notices(&self) -> Vec<Notice> {
        self.notices.borrow().clone()
    }

    /// The project's repository, opened when it is first needed.
    pub fn repo(&self) -> Result<&Repo, WorkError> {
        Ok(self.project.repo()?)
    }

    fn snapshot(&self) -> Result<State, WorkError> {
        Ok(self.project.store().snapshot()?)
    }

    /// The settings and the agents, and these tasks.
    fn glance(&self, tasks: &[&TaskId]) -> Result<Board, WorkError> {
        glance(self.project, tasks)
    }

    fn submit(&self, command: Command) -> Result<Written, WorkError> {
        self.submit_under(self.project.halt(), command)
    }

    /// Submits as if these stop files stood.
    fn submit_under(&self, halt: Halt, command: Command) -> Result<Written, WorkError> {
        let outcome = self.project.submit_under(halt, self.actor, self.if_revision.take(), command)?;
        self.notices.borrow_mut().extend(outcome.notices);
        match outcome.refusal {
            Some(refusal) => Err(WorkError::Refused(Box::new(refusal))),
            None => {
                Ok(Written { revision: outcome.revision, reply: outcome.reply, effects: outcome.effects })
            }
        }
    }

    /// The head of the integration branch.
    fn head_of(&self, integration: &Branch) -> Result<Sha, WorkError> {
        let missing = || WorkError::NoIntegrationBranch { branch: integration.clone() };
        self.repo()?.tip(integration)?.ok_or_else(missing)
    }
}

/// The branch that approved work is merged to.
pub fn integration_branch(board: &Board) -> Result<Branch, WorkError> {
    let config = board.config.ready().cloned().unwrap_or_default();
    Ok(config.integration_branch.parse()?)
}

fn glance(project: &Project, tasks: &[&TaskId]) -> Result<Board, WorkError> {
    let tasks: Vec<TaskId> = tasks.iter().map(|task| (*task).clone()).collect();
    Ok(project.store().read_parts(&[Section::Config, Section::Agents], &tasks)?)
}

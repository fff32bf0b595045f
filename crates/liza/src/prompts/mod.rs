//! The prompt of a session: pure text from the blackboard and a few facts.
//!
//! Reads nothing and decides nothing about state; whoever starts the session gathers the facts and saves the text.

mod bootstrap;
mod coder;
mod context;
mod planner;
mod planner_steps;
mod prompt_text;
mod reviewer;

use std::path::PathBuf;

use liza_core::model::{AgentId, Refusal, Role, State, TaskId, Timestamp};
use liza_core::rules::triggers::Trigger;

use crate::contracts::Contract;
use prompt_text::PromptText;

/// What every session is told, whatever it is for. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    /// The project's root.
    pub project: PathBuf,
    /// `.liza/state.yaml` of the project.
    pub state_file: PathBuf,
    /// The folder with the specifications.
    pub specs: PathBuf,
    /// The contract for this role.
    pub contract: Contract,
    /// How to call liza.
    pub program: PathBuf,
    /// Who the session is.
    pub agent: AgentId,
    /// When it starts.
    pub now: Timestamp,
}

/// Whether a commit could be merged to the integration branch now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreviewedMerge {
    /// Without conflict.
    Clean,
    /// These files conflict.
    Conflicts(Vec<String>),
}

/// How far the integration branch has moved on since the task's base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staleness {
    /// Commits on the integration branch since then.
    pub commits: u32,
    /// Whether the task's branch would merge.
    pub merge: PreviewedMerge,
}

/// What a session is started for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// A coder works on its claimed task.
    Code {
        /// Which.
        task: TaskId,
        /// Where, absolute.
        worktree: PathBuf,
        /// How far the integration branch has moved, where git could tell.
        staleness: Option<Staleness>,
    },
    /// A code reviewer judges a submitted commit.
    Review {
        /// Which task.
        task: TaskId,
        /// Where, absolute.
        worktree: PathBuf,
    },
    /// The planner was woken.
    Plan {
        /// By what, first things first.
        triggers: Vec<Trigger>,
    },
}

impl Job {
    /// The role that does it.
    pub fn role(&self) -> Role {
        match self {
            Job::Code { .. } => Role::Coder,
            Job::Review { .. } => Role::CodeReviewer,
            Job::Plan { .. } => Role::Planner,
        }
    }
}

/// The whole prompt of a session; refused where the task's record is not there.
pub fn prompt(state: &State, brief: &Brief, job: &Job) -> Result<String, Refusal> {
    let mut page = PromptText::default();
    bootstrap::write(&mut page, brief, job);
    match job {
        Job::Code { task, worktree, staleness } => {
            let facts = coder::Facts { worktree, staleness: staleness.as_ref() };
            coder::write(&mut page, state, brief, task, &facts)?;
        }
        Job::Review { task, worktree } => reviewer::write(&mut page, state, brief, task, worktree)?,
        Job::Plan { triggers } => planner::write(&mut page, state, brief, triggers),
    }
    Ok(page.finish())
}

//! The prompt of a session: pure text from the blackboard and a few facts.
//!
//! Reads no file and changes no state; the supervisor collects the facts and saves the text.

mod attempts;
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
use prompt_text::PromptText;

use crate::contracts::Contract;

/// How a session ends; most agent programs cannot choose an exit code.
const END_TURN: &str = "end your turn now (with exit code 42 if you can choose one)";

/// The facts that every prompt contains. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    pub project: PathBuf,
    /// `.liza/state.yaml` of the project.
    pub state_file: PathBuf,
    /// The folder with the specifications.
    pub specs: PathBuf,
    /// The contract for this role.
    pub contract: Contract,
    pub program: PathBuf,
    /// The agent that the session belongs to.
    pub agent: AgentId,
    pub now: Timestamp,
    /// A checkout of the integration branch's head in which a planner can run things.
    pub integration_copy: Option<PathBuf>,
    /// The folders that the session can write; empty if it is not confined.
    pub writable: Vec<PathBuf>,
    /// Whether the session reaches nothing but its model in the network.
    pub model_only: bool,
}

/// Whether a commit could be merged to the integration branch now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreviewedMerge {
    Clean,
    Conflicts(Vec<String>),
}

/// How far the integration branch has moved since the task's base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staleness {
    /// New commits on the integration branch.
    pub commits: u32,
    /// Whether the task's branch would merge cleanly.
    pub merge: PreviewedMerge,
}

/// What a session is started for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// A coder works on its claimed task.
    Code {
        task: TaskId,
        worktree: PathBuf,
        /// How far the integration branch has moved, if git could find out.
        staleness: Option<Staleness>,
        /// What the integration branch has and the task's branch lacks, newest first, one line for each commit.
        other_side: Vec<String>,
    },
    /// A code reviewer judges a submitted commit.
    Review {
        task: TaskId,
        worktree: PathBuf,
        /// Files of the change that agent programs read as instructions, from the top of the worktree.
        instructions: Vec<String>,
    },
    /// The planner decides about triggers.
    Plan {
        /// What woke it, the most important first.
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

/// Returns the whole prompt of a session; refused if the task does not exist.
pub fn prompt(state: &State, brief: &Brief, job: &Job) -> Result<String, Refusal> {
    let mut page = PromptText::default();
    bootstrap::write(&mut page, state, brief, job);
    match job {
        Job::Code { task, worktree, staleness, other_side } => {
            let facts = coder::Facts { worktree, staleness: staleness.as_ref(), other_side };
            coder::write(&mut page, state, brief, task, &facts)?;
        }
        Job::Review { task, worktree, instructions } => {
            let facts = reviewer::Facts { worktree, instructions };
            reviewer::write(&mut page, state, brief, task, &facts)?;
        }
        Job::Plan { triggers } => planner::write(&mut page, state, brief, triggers),
    }
    Ok(page.finish())
}

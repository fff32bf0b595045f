//! The prompt of a session: pure text from the blackboard and a few facts. Reads no file and changes no
//! state; the supervisor collects the facts and saves the text.

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

/// Most agent programs cannot choose an exit code.
const END_TURN: &str = "end your turn now (with exit code 42 if you can choose one)";

/// All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    pub project: PathBuf,
    /// `.liza/state.yaml` of the project.
    pub state_file: PathBuf,
    pub specs: PathBuf,
    /// The folder with the checkouts of agents.
    pub worktrees: PathBuf,
    pub contract: Contract,
    pub program: PathBuf,
    pub agent: AgentId,
    pub now: Timestamp,
    /// A checkout of the integration branch's head in which a planner can run things.
    pub integration_copy: Option<PathBuf>,
    /// The folders that the session can write; empty if it is not confined.
    pub writable: Vec<PathBuf>,
    /// The session reaches no host but its model's.
    pub model_only: bool,
}

/// The result of a trial merge to the integration branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreviewedMerge {
    Clean,
    Conflicts(Vec<String>),
}

/// The distance of the integration branch from the task's base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staleness {
    pub commits: u32,
    pub merge: PreviewedMerge,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    Code {
        task: TaskId,
        worktree: PathBuf,
        /// `None` if git could not find out.
        staleness: Option<Staleness>,
        /// Commits on the integration branch that the task's branch lacks, newest first, one line each.
        other_side: Vec<String>,
    },
    Review {
        task: TaskId,
        worktree: PathBuf,
        /// Files of the change that agent programs read as instructions, from the top of the worktree.
        instructions: Vec<String>,
    },
    Plan {
        /// The most important first.
        triggers: Vec<Trigger>,
    },
}

impl Job {
    pub fn role(&self) -> Role {
        match self {
            Job::Code { .. } => Role::Coder,
            Job::Review { .. } => Role::CodeReviewer,
            Job::Plan { .. } => Role::Planner,
        }
    }
}

/// The longest prompt of a reviewer without its contract, and the most steps by which its lists are cut until it has that length:
/// the work makes them long, not the task.
const REVIEW_MAX: usize = 8 << 10;
const CUTS_MAX: usize = 5;

/// Returns the whole prompt of a session; refused if the task doesn't exist.
pub fn prompt(state: &State, brief: &Brief, job: &Job) -> Result<String, Refusal> {
    let mut text = page(state, brief, job, 0)?;
    for cut in 1..=CUTS_MAX {
        if job.role() != Role::CodeReviewer || text.len() <= REVIEW_MAX + brief.contract.text.len() {
            break;
        }
        text = page(state, brief, job, cut)?;
    }
    Ok(text)
}

fn page(state: &State, brief: &Brief, job: &Job, cut: usize) -> Result<String, Refusal> {
    let mut page = PromptText::with_lists_cut(cut);
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

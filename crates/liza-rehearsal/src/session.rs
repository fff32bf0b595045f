//! One session: its prompt, its transcript, and the words that playbook texts may refer to. `programs` and
//! `git` add the commands.

use std::cell::{Cell, RefCell};
use std::path::{Component, Path, PathBuf};

use crate::error::RehearsalError;
use crate::prompt::{CodingJob, Job, PlanningJob, Prompt, ReviewJob};
use crate::transcript::Transcript;

pub(crate) struct Session {
    pub(crate) prompt: Prompt,
    pub(crate) transcript: Transcript,
    pub(crate) generation: Option<u64>,
    /// The change under review was read.
    pub(crate) diff_read: Cell<bool>,
    pub(crate) checks: RefCell<Vec<String>>,
}

impl Session {
    pub(crate) fn new(prompt: Prompt, transcript: Transcript, generation: Option<u64>) -> Self {
        Self { prompt, transcript, generation, diff_read: Cell::new(false), checks: RefCell::default() }
    }

    /// Returns the task's worktree; for the planner, the project.
    pub(crate) fn work_dir(&self) -> &Path {
        match &self.prompt.job {
            Job::Code(job) => &job.worktree,
            Job::Review(job) => &job.worktree,
            Job::Plan(_) => &self.prompt.project,
        }
    }

    pub(crate) fn coding_job(&self) -> Result<&CodingJob, RehearsalError> {
        match &self.prompt.job {
            Job::Code(job) => Ok(job),
            Job::Review(_) | Job::Plan(_) => Err(RehearsalError::NotApplicable("only a coder has a task")),
        }
    }

    pub(crate) fn review_job(&self) -> Result<&ReviewJob, RehearsalError> {
        match &self.prompt.job {
            Job::Review(job) => Ok(job),
            Job::Code(_) | Job::Plan(_) => {
                Err(RehearsalError::NotApplicable("only a code reviewer has a review"))
            }
        }
    }

    pub(crate) fn planning_job(&self) -> Result<&PlanningJob, RehearsalError> {
        match &self.prompt.job {
            Job::Plan(job) => Ok(job),
            Job::Code(_) | Job::Review(_) => Err(RehearsalError::NotApplicable("only the planner plans")),
        }
    }

    /// Empty for the planner.
    pub(crate) fn task(&self) -> &str {
        self.prompt.task().unwrap_or_default()
    }

    pub(crate) fn say(&self, text: &str) {
        self.transcript.say(text);
    }

    /// Replaces `{task}`, `{agent}` and `{iteration}` in a text of the playbook.
    pub(crate) fn expand(&self, text: &str) -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        let iteration = self.coding_job().map(|job| job.iteration).unwrap_or(1);
        text.replace("{task}", self.task())
            .replace("{agent}", &self.prompt.agent)
            .replace("{iteration}", &iteration.to_string())
    }

    /// Returns the place of a playbook's path in the worktree.
    pub(crate) fn worktree_path(&self, path: &Path) -> Result<PathBuf, RehearsalError> {
        let path = PathBuf::from(self.expand(&path.to_string_lossy()));
        let stays_inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        match path.components().all(stays_inside) {
            true => Ok(self.work_dir().join(path)),
            false => Err(RehearsalError::OutsideWorktree(path)),
        }
    }
}

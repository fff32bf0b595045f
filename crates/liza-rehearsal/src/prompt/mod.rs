//! Reads a prompt as an agent would: its identity, its job, and its folders, from documented fields only.

mod section;

use std::path::PathBuf;

use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::{Error as ValueError, StrDeserializer};

use crate::protocol::{Role, TriggerKind};

pub use section::PromptError;
use section::Section;

/// The parts of a prompt that a session acts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub agent: String,
    pub project: PathBuf,
    /// The project's `.liza` folder.
    pub liza_folder: PathBuf,
    pub liza: PathBuf,
    pub job: Job,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// `=== ASSIGNED TASK ===`
    Code(CodingJob),
    /// `=== REVIEW TASK ===`
    Review(ReviewJob),
    /// `=== PLANNING CONTEXT ===`
    Plan(PlanningJob),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodingJob {
    pub task: String,
    pub worktree: PathBuf,
    /// The commit where the work started.
    pub base: Option<String>,
    pub description: String,
    pub done_when: String,
    /// The attempt of this coder, from 1.
    pub iteration: u32,
    /// True if there is a rejection to answer.
    pub rejected: bool,
    /// The head to merge, if the task's merge failed.
    pub merge_head: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewJob {
    pub task: String,
    pub worktree: PathBuf,
    pub commit: String,
    /// The commit where the work started.
    pub base: Option<String>,
    /// The review of this coder's work, from 1.
    pub cycle: u32,
    /// A rejection must report on the issues of the earlier one.
    pub prior_required: bool,
    /// The work repairs a failed merge.
    pub fix: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanningJob {
    /// The most important first.
    pub triggers: Vec<Trigger>,
    pub goal: String,
    pub vision: PathBuf,
    pub pending: Vec<PendingTask>,
    /// An earlier session has left drafts.
    pub has_drafts: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    pub kind: TriggerKind,
    /// The task, discovery, sprint or goal that it is about.
    pub subject: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingTask {
    pub task: String,
    pub description: String,
    /// Empty for a failed merge.
    pub reason: String,
    pub failed_merges: u32,
    /// A coder has started it.
    pub has_work: bool,
}

impl Prompt {
    pub fn read(text: &str) -> Result<Self, PromptError> {
        let context = Section::find(text, "BOOTSTRAP CONTEXT")?;
        let title = context.require("ROLE")?;
        let job = match Role::ALL.into_iter().find(|role| role.title() == title) {
            Some(Role::Planner) => Job::Plan(PlanningJob::read(text)?),
            Some(Role::Coder) => Job::Code(CodingJob::read(text)?),
            Some(Role::CodeReviewer) => Job::Review(ReviewJob::read(text)?),
            None => return Err(PromptError::BadField { field: "ROLE", value: title }),
        };
        let state_file = PathBuf::from(context.require("STATE FILE")?);
        Ok(Self {
            agent: context.id("AGENT ID")?,
            project: context.require("PROJECT")?.into(),
            liza_folder: state_file.parent().map(PathBuf::from).unwrap_or_default(),
            liza: context.require("LIZA")?.into(),
            job,
        })
    }

    pub fn role(&self) -> Role {
        match self.job {
            Job::Code(_) => Role::Coder,
            Job::Review(_) => Role::CodeReviewer,
            Job::Plan(_) => Role::Planner,
        }
    }

    /// Returns the ID of the task; the planner has none.
    pub fn task(&self) -> Option<&str> {
        match &self.job {
            Job::Code(job) => Some(&job.task),
            Job::Review(job) => Some(&job.task),
            Job::Plan(_) => None,
        }
    }
}

impl CodingJob {
    fn read(text: &str) -> Result<Self, PromptError> {
        let section = Section::find(text, "ASSIGNED TASK")?;
        let merge_head = match section.has("INTEGRATION FIX") {
            true => Some(section.commit("HEAD TO MERGE IN")?),
            false => None,
        };
        Ok(Self {
            task: section.id("TASK ID")?,
            worktree: section.require("WORKTREE")?.into(),
            base: section.optional_commit("BASE"),
            description: section.get("DESCRIPTION").unwrap_or_default(),
            done_when: section.get("DONE WHEN").unwrap_or_default(),
            iteration: section.number("ITERATION")?,
            rejected: section.has_line("PRIOR REJECTION ("),
            merge_head,
        })
    }
}

impl ReviewJob {
    fn read(text: &str) -> Result<Self, PromptError> {
        let section = Section::find(text, "REVIEW TASK")?;
        Ok(Self {
            task: section.id("TASK ID")?,
            worktree: section.require("WORKTREE")?.into(),
            commit: section.commit("COMMIT TO REVIEW")?,
            base: section.optional_commit("BASE"),
            cycle: section.number("REVIEW CYCLE")?,
            prior_required: section.require("PRIOR FEEDBACK STATUS")?.starts_with("required"),
            fix: section.has("INTEGRATION FIX"),
        })
    }
}

impl PlanningJob {
    fn read(text: &str) -> Result<Self, PromptError> {
        let section = Section::find(text, "PLANNING CONTEXT")?;
        let first = section.require("WAKE TRIGGER")?;
        let triggers: Vec<Trigger> = section.quoted_after("WAKE TRIGGER").filter_map(Trigger::read).collect();
        if triggers.is_empty() && first != "NONE" {
            return Err(PromptError::BadField { field: "WAKE TRIGGER", value: first });
        }
        Ok(Self {
            triggers,
            goal: section.get("GOAL").unwrap_or_default(),
            vision: section.get("VISION").unwrap_or_default().into(),
            pending: PendingTask::read_all(&section),
            has_drafts: section.has_line("DRAFTS left"),
        })
    }
}

impl Trigger {
    /// Reads `KIND subject: detail`.
    fn read(line: &str) -> Option<Self> {
        let (kind, rest) = line.split_once(' ')?;
        let (subject, _) = rest.split_once(':')?;
        let kind: StrDeserializer<'_, ValueError> = kind.into_deserializer();
        Some(Self { kind: TriggerKind::deserialize(kind).ok()?, subject: subject.to_owned() })
    }
}

impl PendingTask {
    /// Reads the blocks that begin with `TASK:`.
    fn read_all(section: &Section<'_>) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for line in &section.lines {
            let Some((field, value)) = line.split_once(": ") else { continue };
            match (field, found.last_mut()) {
                ("TASK", _) => {
                    let task = value.split(' ').next().unwrap_or_default().to_owned();
                    found.push(Self { task, ..Self::default() });
                }
                ("Description", Some(pending)) => pending.description = value.to_owned(),
                ("Blocked by", Some(pending)) => pending.reason = value.to_owned(),
                ("Work so far", Some(pending)) => pending.has_work = true,
                ("Failed merges", Some(pending)) => pending.failed_merges = value.parse().unwrap_or(1),
                _ => {}
            }
        }
        found
    }
}

//! Reads a prompt as an agent would: who it is, what it has to do, and where.
//!
//! Looks at sections and documented fields only; a line that begins with `> ` is never taken for a field.

use std::path::PathBuf;
use std::str::FromStr;

use liza_core::model::{AgentId, Role, Sha, TaskId};
use liza_core::rules::triggers::TriggerKind;

/// Why a text is not a prompt that can be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// A section is not there.
    #[error("the prompt has no section {0}")]
    NoSection(&'static str),
    /// A field is not there.
    #[error("{section} of the prompt has no {field}")]
    NoField {
        /// Where it was looked for.
        section: &'static str,
        /// Which one.
        field: &'static str,
    },
    /// A field makes no sense.
    #[error("{field} of the prompt makes no sense: {value:?}")]
    BadField {
        /// Which one.
        field: &'static str,
        /// What it says.
        value: String,
    },
}

/// A prompt, as far as it matters for playing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Who plays.
    pub agent: AgentId,
    /// The project's root.
    pub project: PathBuf,
    /// The blackboard's folder.
    pub folder: PathBuf,
    /// How to call liza.
    pub program: PathBuf,
    /// What is to be done.
    pub job: Job,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// `=== ASSIGNED TASK ===`
    Code(Assigned),
    /// `=== REVIEW TASK ===`
    Review(Review),
    /// `=== PLANNING CONTEXT ===`
    Plan(Planning),
}

/// A coder's task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    /// Which.
    pub task: TaskId,
    /// Where.
    pub worktree: PathBuf,
    /// What the work began from.
    pub base: Option<Sha>,
    /// What to build.
    pub description: String,
    /// How one sees that it is done.
    pub done_when: String,
    /// Which attempt of this coder it is.
    pub iteration: u32,
    /// Whether a rejection has to be answered.
    pub rejected: bool,
    /// The head to merge in, where the merge failed.
    pub fix: Option<Sha>,
}

/// A reviewer's task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// Which.
    pub task: TaskId,
    /// Where.
    pub worktree: PathBuf,
    /// What is judged.
    pub commit: Sha,
    /// What the work began from.
    pub base: Option<Sha>,
    /// Which review of this coder's work it is.
    pub cycle: u32,
    /// Whether a rejection has to say what became of the earlier ones.
    pub prior_required: bool,
    /// Whether the work was approved before and could not be merged.
    pub fix: bool,
}

/// What the planner was woken for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planning {
    /// By what, first things first.
    pub wakes: Vec<Wake>,
    /// The goal.
    pub goal: String,
    /// Where the vision is.
    pub vision: PathBuf,
    /// What is said about tasks that wait for a decision.
    pub waiting: Vec<Waiting>,
    /// Whether an earlier session has left drafts.
    pub drafts: bool,
}

/// One reason to be woken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake {
    /// Of what kind.
    pub kind: TriggerKind,
    /// The task, discovery, sprint or goal.
    pub subject: String,
}

/// A task that waits for the planner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Which.
    pub task: String,
    /// What it was to build.
    pub description: String,
    /// What is in the way; empty for a failed merge.
    pub reason: String,
    /// How often its merge failed.
    pub failed_merges: u32,
    /// Whether somebody has begun it.
    pub begun: bool,
}

impl Prompt {
    /// Reads a prompt.
    ///
    /// # Errors
    ///
    /// When a section or a field is missing or makes no sense.
    pub fn read(text: &str) -> Result<Self, PromptError> {
        let start = Section::find(text, "BOOTSTRAP CONTEXT")?;
        let role = start.need("ROLE")?;
        let role = [Role::Planner, Role::Coder, Role::CodeReviewer]
            .into_iter()
            .find(|known| known.title() == role)
            .ok_or(PromptError::BadField { field: "ROLE", value: role })?;
        let job = match role {
            Role::Planner => Job::Plan(Planning::read(text)?),
            Role::Coder => Job::Code(Assigned::read(text)?),
            Role::CodeReviewer => Job::Review(Review::read(text)?),
        };
        let state = PathBuf::from(start.need("STATE FILE")?);
        Ok(Self {
            agent: start.parse("AGENT ID")?,
            project: start.need("PROJECT")?.into(),
            folder: state.parent().map(PathBuf::from).unwrap_or_default(),
            program: start.need("LIZA")?.into(),
            job,
        })
    }

    /// The role that is played.
    pub fn role(&self) -> Role {
        match self.job {
            Job::Code(_) => Role::Coder,
            Job::Review(_) => Role::CodeReviewer,
            Job::Plan(_) => Role::Planner,
        }
    }

    /// The task, where one is at hand.
    pub fn task(&self) -> Option<&TaskId> {
        match &self.job {
            Job::Code(job) => Some(&job.task),
            Job::Review(job) => Some(&job.task),
            Job::Plan(_) => None,
        }
    }
}

impl Assigned {
    fn read(text: &str) -> Result<Self, PromptError> {
        let section = Section::find(text, "ASSIGNED TASK")?;
        let fix = match section.has("INTEGRATION FIX") {
            true => Some(section.parse("HEAD TO MERGE IN")?),
            false => None,
        };
        Ok(Self {
            task: section.parse("TASK ID")?,
            worktree: section.need("WORKTREE")?.into(),
            base: section.get("BASE").and_then(|base| base.parse().ok()),
            description: section.get("DESCRIPTION").unwrap_or_default(),
            done_when: section.get("DONE WHEN").unwrap_or_default(),
            iteration: section.number("ITERATION")?,
            rejected: section.lines.iter().any(|line| line.starts_with("PRIOR REJECTION (")),
            fix,
        })
    }
}

impl Review {
    fn read(text: &str) -> Result<Self, PromptError> {
        let section = Section::find(text, "REVIEW TASK")?;
        Ok(Self {
            task: section.parse("TASK ID")?,
            worktree: section.need("WORKTREE")?.into(),
            commit: section.parse("COMMIT TO REVIEW")?,
            base: section.get("BASE").and_then(|base| base.parse().ok()),
            cycle: section.number("REVIEW CYCLE")?,
            prior_required: section.need("PRIOR FEEDBACK STATUS")?.starts_with("required"),
            fix: section.has("INTEGRATION FIX"),
        })
    }
}

impl Planning {
    fn read(text: &str) -> Result<Self, PromptError> {
        let section = Section::find(text, "PLANNING CONTEXT")?;
        let first = section.need("WAKE TRIGGER")?;
        let wakes: Vec<Wake> = section.quoted_after("WAKE TRIGGER").filter_map(wake).collect();
        if wakes.is_empty() && first != "NONE" {
            return Err(PromptError::BadField { field: "WAKE TRIGGER", value: first });
        }
        Ok(Self {
            wakes,
            goal: section.get("GOAL").unwrap_or_default(),
            vision: section.get("VISION").unwrap_or_default().into(),
            waiting: section.waiting(),
            drafts: section.lines.iter().any(|line| line.starts_with("DRAFTS left")),
        })
    }
}

/// The trigger with that name.
pub(super) fn trigger(name: &str) -> Option<TriggerKind> {
    use TriggerKind as Kind;
    let all = [
        Kind::InitialPlanning,
        Kind::HypothesisExhausted,
        Kind::BlockedTasks,
        Kind::IntegrationFailed,
        Kind::ImmediateDiscovery,
        Kind::DeadDependency,
        Kind::SprintCompleted,
    ];
    all.into_iter().find(|kind| kind.to_string() == name)
}

/// `KIND subject: detail`
fn wake(line: &str) -> Option<Wake> {
    let (kind, rest) = line.split_once(' ')?;
    let (subject, _) = rest.split_once(':')?;
    Some(Wake { kind: trigger(kind)?, subject: subject.to_owned() })
}

/// A section of a prompt, up to its instructions.
struct Section<'t> {
    name: &'static str,
    lines: Vec<&'t str>,
}

impl<'t> Section<'t> {
    fn find(text: &'t str, name: &'static str) -> Result<Self, PromptError> {
        let heading = format!("=== {name} ===");
        let mut lines = text.lines().skip_while(|line| *line != heading);
        lines.next().ok_or(PromptError::NoSection(name))?;
        let lines = lines.take_while(|line| !line.starts_with("===") && *line != "INSTRUCTIONS:").collect();
        Ok(Self { name, lines })
    }

    fn place(&self, field: &str) -> Option<usize> {
        let named = |line: &&str| line.strip_prefix(field).is_some_and(|rest| rest.starts_with(':'));
        self.lines.iter().position(named)
    }

    fn has(&self, field: &str) -> bool {
        self.place(field).is_some()
    }

    /// A field: on its line without the explanation in brackets, or quoted below.
    fn get(&self, field: &str) -> Option<String> {
        let at = self.place(field)?;
        let value = self.lines.get(at)?.get(field.len() + 1..)?.trim();
        if !value.is_empty() {
            return Some(match field {
                "LIZA" | "STATE FILE" | "HEAD TO MERGE IN" => without_brackets(value),
                _ => value.to_owned(),
            });
        }
        Some(self.quoted_after(field).collect::<Vec<_>>().join("\n"))
    }

    fn need(&self, field: &'static str) -> Result<String, PromptError> {
        self.get(field)
            .filter(|value| !value.is_empty())
            .ok_or(PromptError::NoField { section: self.name, field })
    }

    fn parse<T: FromStr>(&self, field: &'static str) -> Result<T, PromptError> {
        let value = self.need(field)?;
        value.parse().map_err(|_| PromptError::BadField { field, value })
    }

    /// The first number of `2 of 10`.
    fn number(&self, field: &'static str) -> Result<u32, PromptError> {
        let value = self.need(field)?;
        let first = value.split(' ').next().unwrap_or_default().parse();
        first.map_err(|_| PromptError::BadField { field, value })
    }

    /// The quoted lines below a field, and below what belongs to it.
    fn quoted_after(&self, field: &str) -> impl Iterator<Item = &'t str> {
        let from = self.place(field).map_or(self.lines.len(), |at| at + 1);
        let below = self.lines.get(from..).unwrap_or_default().iter().copied();
        below
            .skip_while(|line| line.starts_with("ALSO WAITING:"))
            .take_while(|line| line.starts_with('>'))
            .map(|line| line.trim_start_matches('>').trim_start())
    }

    /// The `TASK:` blocks.
    fn waiting(&self) -> Vec<Waiting> {
        let mut found: Vec<Waiting> = Vec::new();
        for line in &self.lines {
            let Some((field, value)) = line.split_once(": ") else { continue };
            match (field, found.last_mut()) {
                ("TASK", _) => found.push(Waiting {
                    task: value.split(' ').next().unwrap_or_default().to_owned(),
                    description: String::new(),
                    reason: String::new(),
                    failed_merges: 0,
                    begun: false,
                }),
                ("Description", Some(task)) => task.description = value.to_owned(),
                ("Blocked by", Some(task)) => task.reason = value.to_owned(),
                ("Work so far", Some(task)) => task.begun = true,
                ("Failed merges", Some(task)) => task.failed_merges = value.parse().unwrap_or(1),
                _ => {}
            }
        }
        found
    }
}

/// What the builders add for people comes in brackets at the end.
fn without_brackets(value: &str) -> String {
    value.rsplit_once(" (").map_or(value, |(value, _)| value).to_owned()
}

//! The playbook: for each role its scenes, when each is played, and its steps.
//!
//! Only a description: reading it does nothing. Every mistake in it is told with line and column.

use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use liza_core::agent::Role;
use liza_core::trigger::TriggerKind;
use liza_store::yaml::{self, YamlError};
use serde::de::{Deserialize, Deserializer, Error as _};

use super::prompt::trigger;
use super::step::{FileText, Step};

/// The story of the demo.
const DEMO: &str = include_str!("demo.yaml");

/// Why there is no playbook.
#[derive(Debug, thiserror::Error)]
pub enum PlaybookError {
    /// The file cannot be read.
    #[error("cannot read the playbook {}: {source}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not a playbook.
    #[error("{}{}: {error}", path.display(), At(error))]
    Broken {
        /// Which file.
        path: PathBuf,
        /// What is wrong, and where.
        error: YamlError,
    },
}

/// `:LINE:COLUMN`, and the key.
struct At<'e>(&'e YamlError);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.0.position {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        match &self.0.key {
            Some(key) => write!(f, ": {key}"),
            None => Ok(()),
        }
    }
}

/// A whole playbook. Without a scene for it, a session does the obvious right thing.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Playbook {
    /// The project that the story is about; for whoever sets the stage, not for the players.
    pub project: Option<Sample>,
    /// The planner's scenes.
    pub planner: Vec<Scene<ForPlanner>>,
    /// The coders' scenes.
    pub coder: Vec<Scene<ForCoder>>,
    /// The code reviewers' scenes.
    pub reviewer: Vec<Scene<ForReviewer>>,
}

/// A sample project.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Its goal.
    pub goal: String,
    /// Its files before anybody works on it.
    pub files: Vec<FileText>,
}

/// A scene.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, bound = "R: Part")]
pub struct Scene<R> {
    /// When it is played; always where nothing is said.
    #[serde(default)]
    pub when: When,
    /// What is done.
    #[serde(default, rename = "do")]
    pub steps: Vec<StepOf<R>>,
    /// How the session ends.
    #[serde(default = "stop")]
    pub exit: u8,
}

/// The exit code of a session that has done its part.
fn stop() -> u8 {
    42
}

/// When a scene is played: when all that it says is true.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// The task (of the planner: whatever the trigger is about); `*` stands for anything.
    pub task: Option<String>,
    /// The agent; `*` stands for anything.
    pub agent: Option<String>,
    /// The coder's attempt, from 1.
    pub iteration: Option<u32>,
    /// The review of this coder's work, from 1.
    pub cycle: Option<u32>,
    /// Whether a failed merge is being repaired.
    pub fix: Option<bool>,
    /// What woke the planner.
    pub trigger: Option<WakeName>,
    /// The how-manieth session of this role for this task (of the planner: at all), from 1.
    pub session: Option<u32>,
}

/// A wake trigger by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WakeName(pub TriggerKind);

impl<'de> Deserialize<'de> for WakeName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        trigger(&name).map(Self).ok_or_else(|| D::Error::custom(format!("{name:?} is not a wake trigger")))
    }
}

/// Whose scene it is.
pub trait Part {
    /// The role that plays it.
    const ROLE: Role;
}

/// The planner's.
#[derive(Debug, Clone, Copy)]
pub enum ForPlanner {}
/// A coder's.
#[derive(Debug, Clone, Copy)]
pub enum ForCoder {}
/// A code reviewer's.
#[derive(Debug, Clone, Copy)]
pub enum ForReviewer {}

impl Part for ForPlanner {
    const ROLE: Role = Role::Planner;
}
impl Part for ForCoder {
    const ROLE: Role = Role::Coder;
}
impl Part for ForReviewer {
    const ROLE: Role = Role::CodeReviewer;
}

/// A step that this role can play.
#[derive(Debug, Clone)]
pub struct StepOf<R>(pub Step, PhantomData<R>);

impl<'de, R: Part> Deserialize<'de> for StepOf<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let step = Step::deserialize(deserializer)?;
        match step.role() {
            Some(role) if role != R::ROLE => {
                let (theirs, ours) = (role.title(), R::ROLE.title());
                let hint = "`misbehave: {out-of-role: [...]}` calls what the role has no right to";
                Err(D::Error::custom(format!("a step of the {theirs}, not of the {ours}; {hint}")))
            }
            Some(_) | None => Ok(Self(step, PhantomData)),
        }
    }
}

impl Playbook {
    /// Reads a playbook file.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is not a playbook.
    pub fn load(path: &Path) -> Result<Self, PlaybookError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| PlaybookError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// Reads a playbook; `path` is what errors call it.
    ///
    /// # Errors
    ///
    /// When it is not one.
    pub fn parse(text: &str, path: &Path) -> Result<Self, PlaybookError> {
        yaml::read(text).map_err(|error| PlaybookError::Broken { path: path.to_owned(), error })
    }

    /// The story of the demo, sample project included.
    ///
    /// # Errors
    ///
    /// When the embedded text is not a playbook, which a test excludes.
    pub fn demo() -> Result<Self, PlaybookError> {
        Self::parse(DEMO, Path::new("demo.yaml"))
    }

    /// The text of the demo's playbook, for `LIZA_PLAYBOOK`.
    pub fn demo_text() -> &'static str {
        DEMO
    }
}

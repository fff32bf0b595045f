//! Agent programs as templates: what is run, with which arguments, how the prompt goes in, where and with which
//! environment.
//!
//! Starts nothing. The prompt is never an argument: it would hit the system's limit and show in process lists.

mod builtin;
mod config;
pub mod usage;

use std::path::{Path, PathBuf};

use liza_core::agent::Role;
use liza_core::config::Config;
use liza_core::ids::{AgentId, TaskId};

use crate::sys::find_program;

pub use config::count;
use usage::Stream;

/// The provider where neither the command line nor the config names one.
pub const DEFAULT: &str = "claude";

/// How the prompt reaches the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompt {
    /// On standard input.
    Stdin,
    /// As a file that an argument names by `{prompt}`.
    File,
}

/// How one agent program is called.
///
/// Arguments and environment may hold `{worktree}` (the working folder), `{project}`, `{git}` (the repository's
/// `.git`), `{worktree_git}` (what git keeps for the working folder: its index, its HEAD), `{liza}` (the project's
/// `.liza`), `{prompt}` (the file with the prompt), `{agent}`, `{role}`, `{task}` and `{model}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// What it is called here.
    pub name: String,
    /// The program, by name or path; nothing stands for liza itself.
    pub program: Option<String>,
    /// Arguments of every session.
    pub arguments: Vec<String>,
    /// Further ones where a model is asked for.
    pub model: Vec<String>,
    /// Further ones of sessions that write code.
    pub writing: Vec<String>,
    /// Further ones of sessions that only read: planners and code reviewers.
    pub reading: Vec<String>,
    /// The last ones of every session.
    pub last: Vec<String>,
    /// Instead of all these in an interactive session; nothing where the program cannot do that.
    pub interactive: Vec<String>,
    /// How the prompt goes in.
    pub prompt: Prompt,
    /// Further variables.
    pub environment: Vec<(String, String)>,
    /// What kind of events it writes to its output.
    pub stream: Stream,
    /// How to get the program.
    pub install: String,
}

/// A provider as chosen for a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// How it is called.
    pub template: Template,
    /// The model, where one was chosen.
    pub model: Option<String>,
    /// Where the program is; nothing where it is not installed.
    pub program: Option<PathBuf>,
}

/// Why there is no provider.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// Nobody knows that name.
    #[error("there is no provider {name:?}; known: {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Those that are known.
        known: Vec<String>,
    },
    /// The config says something about it that makes no sense.
    #[error("config.{place}: {problem}")]
    Config {
        /// Where.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// The program is not installed.
    #[error("{program} is needed for the provider {name:?} and was not found")]
    Missing {
        /// The provider.
        name: String,
        /// The program.
        program: String,
        /// How to get it.
        install: String,
    },
    /// It cannot be used like that.
    #[error("the provider {name:?} has no interactive mode")]
    NotInteractive {
        /// The provider.
        name: String,
    },
}

/// What a session is, as far as its command line needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// Whose session.
    pub agent: AgentId,
    /// On which task.
    pub task: Option<&'a TaskId>,
    /// Where it works.
    pub directory: &'a Path,
    /// The project's root.
    pub project: &'a Path,
    /// The repository's `.git`.
    pub git: &'a Path,
    /// What git keeps for the working folder.
    pub worktree_git: &'a Path,
    /// The file with its prompt.
    pub prompt: &'a Path,
    /// Whether a person sits before it.
    pub interactive: bool,
}

/// A command line that is ready to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Further variables.
    pub environment: Vec<(String, String)>,
    /// Whether the prompt goes in on standard input.
    pub on_stdin: bool,
}

impl Provider {
    /// The provider for a role: as asked for, else as the config says for the role, else the default.
    ///
    /// # Errors
    ///
    /// When nobody knows it, or the config is wrong.
    pub fn choose(config: &Config, role: Role, asked: Option<&str>) -> Result<Self, ProviderError> {
        let (template, model) = Template::choose(config, role, asked)?;
        let program = match &template.program {
            None => std::env::current_exe().ok(),
            Some(name) => find_program(name),
        };
        Ok(Self { template, model, program })
    }

    /// Where the program is.
    ///
    /// # Errors
    ///
    /// When it is not installed, with how to get it.
    pub fn installed(&self) -> Result<&Path, ProviderError> {
        let missing = || ProviderError::Missing {
            name: self.template.name.clone(),
            program: self.template.program.clone().unwrap_or_else(|| "liza".to_owned()),
            install: self.template.install.clone(),
        };
        self.program.as_deref().ok_or_else(missing)
    }

    /// Whether it can be talked with.
    ///
    /// # Errors
    ///
    /// When it has no interactive mode.
    pub fn interactive(&self) -> Result<(), ProviderError> {
        match self.template.interactive.is_empty() {
            true => Err(ProviderError::NotInteractive { name: self.template.name.clone() }),
            false => Ok(()),
        }
    }

    /// The command line of one session.
    ///
    /// # Errors
    ///
    /// When an interactive session is asked of a program that has none.
    pub fn command_line(&self, setting: &Setting<'_>) -> Result<CommandLine, ProviderError> {
        let template = &self.template;
        if setting.interactive {
            self.interactive()?;
        }
        let fill = |text: &String| self.fill(text, setting);
        let arguments = if setting.interactive {
            template.interactive.iter().map(fill).collect()
        } else {
            let role = match setting.agent.role() {
                Role::Coder => &template.writing,
                Role::Planner | Role::CodeReviewer => &template.reading,
            };
            let model = if self.model.is_some() { template.model.as_slice() } else { &[] };
            let all = template.arguments.iter().chain(model).chain(role).chain(&template.last);
            all.map(fill).collect()
        };
        let environment = template.environment.iter().map(|(name, value)| (name.clone(), fill(value)));
        let named = || self.template.program.clone().unwrap_or_default().into();
        Ok(CommandLine {
            program: self.program.clone().unwrap_or_else(named),
            arguments,
            environment: environment.collect(),
            on_stdin: template.prompt == Prompt::Stdin && !setting.interactive,
        })
    }

    fn fill(&self, text: &str, setting: &Setting<'_>) -> String {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let values = [
            ("{worktree}", path(setting.directory)),
            ("{project}", path(setting.project)),
            ("{git}", path(setting.git)),
            ("{worktree_git}", path(setting.worktree_git)),
            ("{liza}", path(&setting.project.join(".liza"))),
            ("{prompt}", path(setting.prompt)),
            ("{agent}", setting.agent.to_string()),
            ("{role}", setting.agent.role().to_string()),
            ("{task}", setting.task.map(ToString::to_string).unwrap_or_default()),
            ("{model}", self.model.clone().unwrap_or_default()),
        ];
        values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }
}

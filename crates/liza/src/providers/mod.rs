//! Agent programs: which one runs for a role, with which arguments, prompt and environment.
//!
//! Starts nothing. The prompt is never an argument: it could exceed the system's limit and would show in process lists.

mod builtin;
mod config;
mod error;
mod template;
pub(crate) mod usage;

use std::path::{Path, PathBuf};

use liza_core::model::{AgentId, Config, Role, TaskId};
use strum::VariantArray as _;

use crate::sys::find_program;

use builtin::BuiltIn;
pub(crate) use config::agent_count;
pub use error::ProviderError;
use template::{CommandTemplate, PromptDelivery};
use usage::EventFormat;

/// The provider chosen for a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// How it is called.
    template: CommandTemplate,
    /// The model, if one was chosen.
    model: Option<String>,
    /// The path of the program; `None` if it is not installed.
    program: Option<PathBuf>,
}

/// What the command line of a session depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionDetails<'a> {
    /// The agent.
    pub(crate) agent: AgentId,
    /// The task, if it has one.
    pub(crate) task: Option<&'a TaskId>,
    /// The working folder.
    pub(crate) directory: &'a Path,
    /// The project's root.
    pub(crate) project: &'a Path,
    /// The repository's `.git`.
    pub(crate) git: &'a Path,
    /// Where git keeps the index and HEAD of the working folder.
    pub(crate) worktree_git: &'a Path,
    /// The file with the prompt.
    pub(crate) prompt: &'a Path,
    /// Whether a person takes part.
    pub(crate) interactive: bool,
    /// Whether Liza confines it.
    pub(crate) confined: bool,
}

/// A command line that is ready to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// The program.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// Environment variables to add.
    pub(crate) environment: Vec<(String, String)>,
    /// Whether the prompt goes to standard input.
    pub(crate) on_stdin: bool,
}

impl Provider {
    /// The provider for a role: the one asked for, else the role's in the config, else the default.
    ///
    /// # Errors
    ///
    /// When there is no such provider, or the config is wrong.
    pub fn choose(config: &Config, role: Role, asked: Option<&str>) -> Result<Self, ProviderError> {
        let (template, model) = config::choose_template(config, role, asked)?;
        let program = match &template.program {
            None => std::env::current_exe().ok(),
            Some(name) => find_program(name),
        };
        Ok(Self { template, model, program })
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.template.name
    }

    /// The format of the events in its output.
    pub(crate) fn events(&self) -> EventFormat {
        self.template.events
    }

    /// Adds environment variables for its sessions.
    pub fn add_environment(&mut self, variables: impl IntoIterator<Item = (String, String)>) {
        self.template.environment.extend(variables);
    }

    /// The path of the program.
    ///
    /// # Errors
    ///
    /// When it is not installed; the error says how to install it.
    pub(crate) fn installed_program(&self) -> Result<&Path, ProviderError> {
        let missing = || ProviderError::Missing {
            name: self.template.name.clone(),
            program: self.template.program.clone().unwrap_or_else(|| "liza".to_owned()),
            install: self.template.install.clone(),
        };
        self.program.as_deref().ok_or_else(missing)
    }

    /// Checks that it can run an interactive session.
    ///
    /// # Errors
    ///
    /// When it has no interactive mode.
    pub(crate) fn require_interactive(&self) -> Result<(), ProviderError> {
        match self.template.interactive_args.is_empty() {
            true => Err(ProviderError::NotInteractive { name: self.template.name.clone() }),
            false => Ok(()),
        }
    }

    /// The command line of one session.
    ///
    /// # Errors
    ///
    /// When the session is interactive and the program has no such mode.
    pub(crate) fn command_line(&self, session: &SessionDetails<'_>) -> Result<CommandLine, ProviderError> {
        let template = &self.template;
        if session.interactive {
            self.require_interactive()?;
        }
        let fill = |text: &String| self.fill(text, session);
        let protection = if session.confined { &template.confined_args } else { &template.unconfined_args };
        let arguments = if session.interactive {
            protection.iter().chain(&template.interactive_args).map(fill).collect()
        } else {
            let role = match session.agent.role() {
                Role::Coder => &template.writing_args,
                Role::Planner | Role::CodeReviewer => &template.reading_args,
            };
            let model = if self.model.is_some() { template.model_args.as_slice() } else { &[] };
            let all =
                template.args.iter().chain(protection).chain(model).chain(role).chain(&template.last_args);
            all.map(fill).collect()
        };
        let environment = template.environment.iter().map(|(name, value)| (name.clone(), fill(value)));
        let named = || self.template.program.clone().unwrap_or_default().into();
        Ok(CommandLine {
            program: self.program.clone().unwrap_or_else(named),
            arguments,
            environment: environment.collect(),
            on_stdin: template.prompt == PromptDelivery::Stdin && !session.interactive,
        })
    }

    /// Replaces the placeholders in a text of the template.
    fn fill(&self, text: &str, session: &SessionDetails<'_>) -> String {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let values = [
            ("{worktree}", path(session.directory)),
            ("{project}", path(session.project)),
            ("{git}", path(session.git)),
            ("{worktree_git}", path(session.worktree_git)),
            ("{liza}", path(&session.project.join(".liza"))),
            ("{prompt}", path(session.prompt)),
            ("{agent}", session.agent.to_string()),
            ("{role}", session.agent.role().to_string()),
            ("{task}", session.task.map(ToString::to_string).unwrap_or_default()),
            ("{model}", self.model.clone().unwrap_or_default()),
        ];
        values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }
}

/// The programs that the built-in providers need.
pub(crate) fn builtin_programs() -> Vec<String> {
    BuiltIn::VARIANTS.iter().filter_map(|provider| provider.template().program).collect()
}

//! Agent programs: the one for a role, its arguments, prompt and environment. Starts nothing. The prompt is
//! never an argument: it could exceed the system's limit and would show in process lists.

mod builtin;
mod checkout_settings;
mod claude;
mod clock_time;
mod codex;
mod config;
mod copilot;
mod error;
pub mod event;
mod fault;
mod gemini;
mod goose;
pub mod guard;
mod installed;
mod json_line;
mod log_line;
mod opencode;
pub mod readers;
mod rehearsal;
mod request_logs;
mod rollout;
mod settings;
pub mod side_log;
pub mod stream;
mod template;
mod tool_answer;
mod tool_calls;
pub mod usage;
mod vibe;

#[cfg(test)]
mod fuzz_tests;

use std::path::{Path, PathBuf};

use liza_core::model::{AgentId, Config, Price, Repair, Role, TaskId};
use liza_sandbox::sys::find_program;

pub use builtin::{builtin_names, places_of};
pub use checkout_settings::{SettingFiles, is_instruction};
use config::ChosenTemplate;
pub use config::{agent_count, check_sections, role_network};
pub use error::ProviderError;
use event::EventFormat;
pub use installed::{
    InstalledClient, LoginAdvice, LoginPlaces, default_provider, has_choice, installed_clients,
    missing_logins,
};
pub use log_line::is_aside;
pub use template::{ClientHome, Dialect, FaultSigns};
use template::{CommandTemplate, PromptDelivery};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    name: String,
    template: CommandTemplate,
    model: Option<String>,
    effort: Option<String>,
    /// `None` if it is not installed.
    program: Option<PathBuf>,
    /// Installed providers that take over while this one is held.
    fallbacks: Vec<Provider>,
}

/// The facts that a session's command line depends on.
#[derive(Debug, Clone, Copy)]
pub struct SessionDetails<'a> {
    pub agent: AgentId,
    pub task: Option<&'a TaskId>,
    pub directory: &'a Path,
    pub project: &'a Path,
    pub git: &'a Path,
    /// The folder in which git keeps the index and HEAD of the working folder.
    pub worktree_git: &'a Path,
    pub prompt: &'a Path,
    pub scratch: &'a Path,
    pub conversation: Option<&'a str>,
    /// The rest of the budget.
    pub dollars: Option<f64>,
    /// A person takes part.
    pub interactive: bool,
    pub confined: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// The prompt goes to standard input.
    pub on_stdin: bool,
    /// The file in which the program leaves its last event.
    pub result_file: Option<PathBuf>,
}

impl Provider {
    /// The provider for a role: the requested one, else the role's in the config, else the default.
    pub fn choose(config: &Config, role: Role, asked: Option<&str>) -> Result<Self, ProviderError> {
        Self::choose_or(config, role, asked, config::DEFAULT_PROVIDER)
    }

    pub fn choose_or(
        config: &Config,
        role: Role,
        asked: Option<&str>,
        default: &str,
    ) -> Result<Self, ProviderError> {
        let (first, others) = config::choose_templates(config, role, asked, default)?;
        let others = others.into_iter().map(Self::new).filter(|other| other.program.is_some());
        Ok(Self { fallbacks: others.collect(), ..Self::new(first) })
    }

    fn new(ChosenTemplate { name, template, model, effort }: ChosenTemplate) -> Self {
        let program = match template.program.as_str() {
            "" => std::env::current_exe().ok(),
            name => find_program(name),
        };
        Self { name, template, model, effort, program, fallbacks: Vec::new() }
    }

    /// Its name and those of the providers that take over while it is held.
    pub fn names(&self) -> Vec<String> {
        self.all().map(|provider| provider.name.clone()).collect()
    }

    /// The provider at that place of [`Provider::names`].
    pub fn nth(&self, index: usize) -> Option<&Self> {
        self.all().nth(index)
    }

    fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.fallbacks)
    }

    pub fn login_repair(&self, places: &LoginPlaces<'_>) -> Option<Repair> {
        places.repair(&self.template)
    }

    /// True if a variable has a key for it, which is used instead of a login in a file.
    pub fn has_key(&self, places: &LoginPlaces<'_>) -> bool {
        places.has_key(&self.template)
    }

    /// The variables of the person's environment that its sessions need to reach its model.
    pub fn login_variables(&self, places: &LoginPlaces<'_>) -> Vec<String> {
        places.login_variables(&self.template)
    }

    /// The names of the provider and of those that take over, with the rights of their sessions.
    pub fn rights(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all().map(|provider| (provider.name.as_str(), provider.template.rights.as_str()))
    }

    /// The places of its files.
    pub fn home(&self) -> &ClientHome {
        &self.template.home
    }

    pub fn can_resume(&self) -> bool {
        !self.template.resume_args.is_empty()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The hosts of its model, and those that variables of the session name.
    pub fn model_hosts(&self, variable: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        let named = self.template.address_variables.iter().filter_map(|name| variable(name));
        let named = named.filter(|address| !address.trim().is_empty());
        self.template.model_hosts.iter().cloned().chain(named).collect()
    }

    pub fn dialect(&self) -> Dialect {
        Dialect { format: self.template.events, faults: self.template.faults.clone() }
    }

    /// The price of its tokens, if it doesn't report the cost itself.
    pub fn price(&self, config: &Config) -> Option<Price> {
        config.prices.get(self.model.as_ref()?).copied()
    }

    /// Checks that a budget in dollars can be kept with it and the providers that take over.
    pub fn check_budget(&self, config: &Config) -> Result<(), ProviderError> {
        match self.without_cost(config).filter(|_| config.budget.counts_dollars()) {
            Some(Self { name, model, .. }) => {
                Err(ProviderError::NoPrice { name: name.clone(), model: model.clone() })
            }
            None => Ok(()),
        }
    }

    /// The first provider, of it and those that take over, whose sessions cost an unknown amount.
    pub fn without_cost(&self, config: &Config) -> Option<&Self> {
        let unknown =
            |provider: &&Self| !provider.template.events.reports_cost() && provider.price(config).is_none();
        self.all().find(unknown)
    }

    /// The problem that a limit of tokens ends no session of it, or of one that takes over, and what to do about it.
    pub fn uncounted_tokens(&self, config: &Config) -> Option<(String, String)> {
        let reports_none = |provider: &&Self| provider.template.events == EventFormat::None;
        let Self { name, .. } = self.all().find(reports_none).filter(|_| config.budget.counts_tokens())?;
        let problem = format!(
            "{name} reports no tokens (events: none), so a limit of tokens ends none of its sessions"
        );
        let remedy = format!(
            "if its output has the form of another program's: liza config providers.{name}.events FORMAT, such as claude"
        );
        Some((problem, remedy))
    }

    pub fn add_environment(&mut self, variables: impl IntoIterator<Item = (String, String)>) {
        self.template.env.extend(variables);
    }

    pub fn installed_program(&self) -> Result<&Path, ProviderError> {
        let missing = || ProviderError::Missing {
            name: self.name.clone(),
            program: self.template.program.clone(),
            install: self.template.install.clone(),
        };
        self.program.as_deref().ok_or_else(missing)
    }

    pub fn require_interactive(&self) -> Result<(), ProviderError> {
        match self.template.interactive_args.is_empty() {
            true => Err(ProviderError::NotInteractive { name: self.name.clone() }),
            false => Ok(()),
        }
    }

    pub fn command_line(&self, session: &SessionDetails<'_>) -> Result<CommandLine, ProviderError> {
        let template = &self.template;
        if session.interactive {
            self.require_interactive()?;
        }
        let fill = |text: &String| self.fill(text, session);
        let role = match session.agent.role() {
            Role::Coder => &template.writing_args,
            Role::Planner | Role::CodeReviewer => &template.reading_args,
        };
        let with_model = self.model.is_some();
        let model = if with_model { template.model_args.as_slice() } else { &[] };
        let effort = if self.effort.is_some() { template.effort_args.as_slice() } else { &[] };
        let protection = if session.confined { &template.confined_args } else { &template.unconfined_args };
        let (first, last) = match session.interactive {
            true => (&template.interactive_args, [].as_slice()),
            false => (&template.args, template.last_args.as_slice()),
        };
        let is_resumed = session.conversation.is_some() && !session.interactive;
        let resume = if is_resumed { template.resume_args.as_slice() } else { &[] };
        let is_limited = session.dollars.is_some() && !session.interactive;
        let budget = if is_limited { template.budget_args.as_slice() } else { &[] };
        let arguments = first.iter().chain(protection).chain(model).chain(effort).chain(role).chain(budget);
        let arguments = arguments.chain(resume).chain(last);
        let arguments = arguments.map(fill).collect();
        let environment = template.env.iter().chain(template.model_env.iter().filter(|_| with_model));
        let environment = environment.map(|(name, value)| (name.clone(), fill(value)));
        let named = || self.template.program.clone().into();
        Ok(CommandLine {
            program: self.program.clone().unwrap_or_else(named),
            arguments,
            environment: environment.collect(),
            on_stdin: template.prompt == PromptDelivery::Stdin && !session.interactive,
            result_file: template.result_file.as_ref().map(|name| session.scratch.join(name)),
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
            ("{scratch}", path(session.scratch)),
            ("{agent}", session.agent.to_string()),
            ("{role}", session.agent.role().to_string()),
            ("{task}", session.task.map(ToString::to_string).unwrap_or_default()),
            ("{conversation}", session.conversation.unwrap_or_default().to_owned()),
            ("{model}", self.model.clone().unwrap_or_default()),
            ("{effort}", self.effort.clone().unwrap_or_default()),
            ("{dollars}", session.dollars.map(|left| format!("{:.4}", left.max(0.0001))).unwrap_or_default()),
        ];
        values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }
}

/// The format of a client's output; plain text if there is no such client.
pub fn event_format(config: &Config, client: &str) -> EventFormat {
    config::find_template(config, client).map(|template| template.events).unwrap_or_default()
}

pub fn builtin_programs() -> Vec<String> {
    let programs = builtin::built_in().map(|(_, template)| template.program.clone());
    programs.filter(|program| !program.is_empty()).collect()
}

//! The call of an agent program, with placeholders for facts that are only known at the start of a session.

use strum::{EnumString, VariantNames};

use super::event::EventFormat;

/// The first message of an interactive session: short, and the same for all.
pub(super) const BEGIN: &str = "Read the file {prompt} and do what it says.";

/// The hosts of models for programs that can use many.
pub(super) const MANY_MODELS: &str = "api.anthropic.com api.openai.com generativelanguage.googleapis.com \
                                      api.mistral.ai openrouter.ai";

/// The keys of models for programs that can use many.
pub(super) const MANY_KEYS: &str = "ANTHROPIC_* OPENAI_* GEMINI_API_KEY GOOGLE_API_KEY MISTRAL_API_KEY \
                                    OPENROUTER_API_KEY GROQ_API_KEY XAI_API_KEY DEEPSEEK_API_KEY OLLAMA_HOST";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum PromptDelivery {
    #[default]
    Stdin,
    /// In a file that an argument names with `{prompt}`.
    File,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginSign {
    Variable(&'static str),
    File(ClientFile),
    /// A line of this file begins with this text.
    Setting(ClientFile, &'static str),
    /// This file of Codex chooses a provider, and the variable that it names for its key is set.
    CodexProvider(ClientFile),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientFile {
    pub variable: Option<&'static str>,
    /// Below the home folder, without the variable.
    pub folder: &'static str,
    pub name: &'static str,
}

impl ClientFile {
    pub const fn new(variable: &'static str, folder: &'static str, name: &'static str) -> Self {
        Self { variable: Some(variable), folder, name }
    }
}

/// The call of one agent program.
///
/// Placeholders in arguments and environment: `{worktree}` (the working folder), `{project}`, `{git}` (the
/// repository's `.git`), `{worktree_git}` (git's folder with the index and HEAD of the working folder),
/// `{liza}` (the project's `.liza`), `{prompt}` (the file with the prompt), `{scratch}` (the folder for
/// temporary files), `{agent}`, `{role}`, `{task}`, `{model}`,
/// `{effort}`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandTemplate {
    pub name: String,
    /// The program, by name or path; `None` for liza itself.
    pub program: Option<String>,
    pub args: Vec<String>,
    pub model_args: Vec<String>,
    /// For the model's effort; empty if the program has no argument for it.
    pub effort_args: Vec<String>,
    pub writing_args: Vec<String>,
    /// For planners and code reviewers.
    pub reading_args: Vec<String>,
    /// For a session that Liza does not confine: the program's own protection.
    pub unconfined_args: Vec<String>,
    /// For a session that Liza confines: the program's own protection would not work inside.
    pub confined_args: Vec<String>,
    /// Resume the conversation `{conversation}`, before the last ones; empty if the program cannot.
    pub resume_args: Vec<String>,
    /// For a budget in dollars: the program ends its session at `{dollars}`.
    pub budget_args: Vec<String>,
    pub last_args: Vec<String>,
    /// Used before those for confinement, the model and the role; empty if the program has no interactive mode.
    pub interactive_args: Vec<String>,
    pub prompt: PromptDelivery,
    pub environment: Vec<(String, String)>,
    pub model_environment: Vec<(String, String)>,
    pub events: EventFormat,
    /// The file in `{scratch}` in which the program leaves its last event.
    pub result_file: Option<String>,
    /// The hosts of its model and of its login.
    pub model_hosts: Vec<String>,
    pub address_variables: Vec<String>,
    /// Further variables of the person's environment that it needs to reach its model; `*` matches any text.
    pub pass_env: Vec<String>,
    /// The same while the first variable is set.
    pub pass_env_if: Vec<(&'static str, Vec<String>)>,
    pub login: String,
    /// The text that follows it, or replaces it.
    pub login_more: Option<&'static str>,
    /// The signs of a login, the most likely one first.
    pub login_signs: Vec<LoginSign>,
    pub rights: &'static str,
    pub install: String,
}

impl CommandTemplate {
    /// A program without arguments that reads its prompt on standard input.
    pub fn new(name: &str, program: Option<&str>, install: &str) -> Self {
        let program = program.map(str::to_owned);
        Self { name: name.to_owned(), program, install: install.to_owned(), ..Self::default() }
    }
}

pub(super) fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

pub(super) fn words_and(line: &str, text: &str) -> Vec<String> {
    line.split_whitespace().chain([text]).map(str::to_owned).collect()
}

//! How an agent program is called, with placeholders for what is only known when a session starts.
//!
//! Plain data; looks nothing up.

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

/// How the prompt reaches the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum PromptDelivery {
    #[default]
    Stdin,
    /// In a file that an argument names with `{prompt}`.
    File,
}

/// A sign that a program is logged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginSign {
    /// This environment variable is set.
    Variable(&'static str),
    File(ClientFile),
    /// A line of this file begins with this text.
    Setting(ClientFile, &'static str),
    /// This file of Codex chooses a provider, and the variable that it names for its key is set.
    CodexProvider(ClientFile),
}

/// A file of an agent program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientFile {
    /// The variable that names its folder.
    pub variable: Option<&'static str>,
    /// Its folder below the home folder, without that variable.
    pub folder: &'static str,
    /// Its name in the folder.
    pub name: &'static str,
}

impl ClientFile {
    pub const fn new(variable: &'static str, folder: &'static str, name: &'static str) -> Self {
        Self { variable: Some(variable), folder, name }
    }
}

/// How one agent program is called.
///
/// Arguments and environment may contain `{worktree}` (the working folder), `{project}`, `{git}` (the repository's
/// `.git`), `{worktree_git}` (where git keeps the index and HEAD of the working folder), `{liza}` (the project's
/// `.liza`), `{prompt}` (the file with the prompt), `{scratch}` (the session's folder for temporary files), `{agent}`,
/// `{role}`, `{task}` and `{model}`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandTemplate {
    /// The name of the provider.
    pub name: String,
    /// The program, by name or path; `None` for liza itself.
    pub program: Option<String>,
    pub args: Vec<String>,
    /// Arguments added when a model is chosen.
    pub model_args: Vec<String>,
    /// Arguments added for sessions that write code.
    pub writing_args: Vec<String>,
    /// Arguments added for sessions that only read: planners and code reviewers.
    pub reading_args: Vec<String>,
    /// Arguments added for a session that Liza does not confine: the program's own protection.
    pub unconfined_args: Vec<String>,
    /// Arguments added for a session that Liza confines: the program's own protection would not work inside.
    pub confined_args: Vec<String>,
    /// Arguments added to resume the conversation `{conversation}`, before the last ones; empty if the program cannot.
    pub resume_args: Vec<String>,
    /// Arguments added when a budget in dollars applies: the program ends its session at `{dollars}`.
    pub budget_args: Vec<String>,
    /// The last arguments of every session.
    pub last_args: Vec<String>,
    /// The arguments of an interactive session, before those for confinement, the model and the role; empty if the program has
    /// no such mode.
    pub interactive_args: Vec<String>,
    /// How the prompt reaches the program.
    pub prompt: PromptDelivery,
    pub environment: Vec<(String, String)>,
    /// Environment variables added when a model is chosen.
    pub model_environment: Vec<(String, String)>,
    /// The events that the program writes to its output.
    pub events: EventFormat,
    /// The file in `{scratch}` in which the program leaves its last event.
    pub result_file: Option<String>,
    /// The hosts of its model, and of what it needs to stay logged in.
    pub model_hosts: Vec<String>,
    /// Variables with the address of a model.
    pub address_variables: Vec<String>,
    /// Variables of the person's environment that it needs to reach its model, besides the signs of a login and the addresses.
    /// One `*` in a name stands for any text.
    pub pass_env: Vec<String>,
    /// The same while the first variable is set.
    pub pass_env_if: Vec<(&'static str, Vec<String>)>,
    /// The command that logs in.
    pub login: String,
    /// What follows it, or replaces it.
    pub login_more: Option<&'static str>,
    /// How a login is recognized, the most likely sign first.
    pub login_signs: Vec<LoginSign>,
    /// What its sessions may do, for people.
    pub rights: &'static str,
    /// The command that installs the program.
    pub install: String,
}

impl CommandTemplate {
    /// A program without arguments that reads its prompt on standard input.
    pub fn new(name: &str, program: Option<&str>, install: &str) -> Self {
        let program = program.map(str::to_owned);
        Self { name: name.to_owned(), program, install: install.to_owned(), ..Self::default() }
    }
}

/// The words of a line, which are separated by spaces.
pub(super) fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// The words of a line, and a text as the last word.
pub(super) fn words_and(line: &str, text: &str) -> Vec<String> {
    line.split_whitespace().chain([text]).map(str::to_owned).collect()
}

//! How an agent program is called, with placeholders for what is only known when a session starts.
//!
//! Plain data; looks nothing up.

use strum::{EnumString, VariantNames};

use super::usage::EventFormat;

/// How the prompt reaches the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum PromptDelivery {
    /// On standard input.
    #[default]
    Stdin,
    /// In a file that an argument names with `{prompt}`.
    File,
}

/// How one agent program is called.
///
/// Arguments and environment may contain `{worktree}` (the working folder), `{project}`, `{git}` (the repository's
/// `.git`), `{worktree_git}` (where git keeps the index and HEAD of the working folder), `{liza}` (the project's
/// `.liza`), `{prompt}` (the file with the prompt), `{agent}`, `{role}`, `{task}` and `{model}`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommandTemplate {
    /// The name of the provider.
    pub(crate) name: String,
    /// The program, by name or path; `None` for liza itself.
    pub(crate) program: Option<String>,
    /// Arguments of every session.
    pub(crate) args: Vec<String>,
    /// Arguments added when a model is chosen.
    pub(crate) model_args: Vec<String>,
    /// Arguments added for sessions that write code.
    pub(crate) writing_args: Vec<String>,
    /// Arguments added for sessions that only read: planners and code reviewers.
    pub(crate) reading_args: Vec<String>,
    /// Arguments added for a session that Liza does not confine: the program's own protection.
    pub(crate) unconfined_args: Vec<String>,
    /// Arguments added for a session that Liza confines: the program's own protection would not work inside.
    pub(crate) confined_args: Vec<String>,
    /// The last arguments of every session.
    pub(crate) last_args: Vec<String>,
    /// The arguments of an interactive session, instead of all others but those for confinement; empty if the program has no such mode.
    pub(crate) interactive_args: Vec<String>,
    /// How the prompt reaches the program.
    pub(crate) prompt: PromptDelivery,
    /// Environment variables.
    pub(crate) environment: Vec<(String, String)>,
    /// The events that the program writes to its output.
    pub(crate) events: EventFormat,
    /// The command that installs the program.
    pub(crate) install: String,
}

impl CommandTemplate {
    /// A program without arguments that reads its prompt on standard input.
    pub(super) fn new(name: &str, program: Option<&str>, install: &str) -> Self {
        let program = program.map(str::to_owned);
        Self { name: name.to_owned(), program, install: install.to_owned(), ..Self::default() }
    }
}

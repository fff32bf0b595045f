//! An agent program: how it is called, where its files are, how it logs in and fails. The built-in ones are in
//! `builtin.jsonc`; an entry of `config.providers` has the same keys.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use liza_core::model::{FaultKind, Value};
use serde::{Deserialize, Serialize};
use strum::{EnumString, VariantNames};

use super::event::EventFormat;
use super::settings::{Setting, WrongSetting, one_of, settings};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum PromptDelivery {
    #[default]
    Stdin,
    /// In a file that an argument names with `{prompt}`.
    File,
}

impl Setting for PromptDelivery {
    fn accept(&mut self, value: &Value) -> Result<(), WrongSetting> {
        *self = one_of(value)?;
        Ok(())
    }
}

/// A sign of a login: `NAME` of a variable, `~/FILE`, or a map about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginSign {
    Variable(String),
    File(FileSign),
}

impl Setting for Vec<LoginSign> {
    fn accept(&mut self, value: &Value) -> Result<(), WrongSetting> {
        let Value::List(items) = value else { return Err(WrongSetting::must_be("a list")) };
        let signs: Result<_, _> = items.iter().map(LoginSign::read).collect();
        *self = signs?;
        Ok(())
    }
}

settings! {
    FileSign {
        /// Below the home folder, with `~/`.
        file: String,
        /// A line of it begins with this text.
        line: Option<String>,
        /// It chooses a provider as Codex does, and the variable that it names for its key is set.
        codex_provider: bool,
    }
}

impl LoginSign {
    pub(super) fn read(value: &Value) -> Result<Self, WrongSetting> {
        let mut sign = FileSign::default();
        match value.as_text() {
            Some(name) if !name.contains('/') => return Ok(Self::Variable(name.to_owned())),
            Some(file) => sign.file = file.to_owned(),
            None => sign.accept(value)?,
        }
        match sign.file.starts_with("~/") {
            true => Ok(Self::File(sign)),
            false => Err(WrongSetting::must_be("names of variables and files that begin with ~/")),
        }
    }

    /// What makes this sign, for a program whose entry names no command that logs in.
    pub(super) fn to_make(&self) -> String {
        match self {
            Self::Variable(name) => format!("set {name}"),
            Self::File(FileSign { file, .. }) => format!("log in, which makes {file}"),
        }
    }
}

settings! {
    /// Signs of one kind of error.
    #[derive(Serialize, Deserialize)]
    FaultSigns {
        /// Parts of the program's error messages, in any case.
        words: Vec<String>,
        exits: Vec<i32>,
    }
}

pub(super) type Faults = BTreeMap<FaultKind, FaultSigns>;

settings! {
    /// The places of a program's settings, login and conversations.
    ClientHome {
        /// The variable that names its folder.
        variable: Option<String>,
        /// Below the home folder, without the variable.
        folder: String,
        /// Copied into the folder of each session.
        files: Vec<String>,
        /// Copied as well; one that the program refreshes is written back.
        logins: Vec<String>,
        /// Without the variable: files beside the folder, and their places if the folder is another one.
        beside: BTreeMap<String, String>,
        /// Further variables that name folders inside a private one.
        variables: BTreeMap<String, String>,
        /// Below the folder: the conversations, if one of them can be resumed.
        conversations: Option<String>,
    }
}

settings! {
    /// Placeholders in arguments and environment: `{worktree}` (the working folder), `{project}`, `{git}` (the
    /// repository's `.git`), `{worktree_git}` (git's folder with the index and HEAD of the working folder),
    /// `{liza}` (the project's `.liza`), `{prompt}` (the file with the prompt), `{scratch}` (the folder for
    /// temporary files), `{agent}`, `{role}`, `{task}`, `{model}`, `{effort}`, `{conversation}`, `{dollars}`.
    CommandTemplate {
        /// By name or path; empty for liza itself.
        program: String,
        args: Vec<String>,
        model_args: Vec<String>,
        /// For the model's effort; empty if the program has no argument for it.
        effort_args: Vec<String>,
        writing_args: Vec<String>,
        /// For planners and code reviewers.
        reading_args: Vec<String>,
        /// For a session that Liza does not confine: the program's own protection.
        unconfined_args: Vec<String>,
        /// For a session that Liza confines: the program's own protection would not work inside.
        confined_args: Vec<String>,
        /// Resume the conversation `{conversation}`, before the last ones; empty if the program cannot.
        resume_args: Vec<String>,
        /// For a budget in dollars: the program ends its session at `{dollars}`.
        budget_args: Vec<String>,
        last_args: Vec<String>,
        /// Used before those for confinement, the model and the role; empty if the program has no interactive mode.
        interactive_args: Vec<String>,
        prompt: PromptDelivery,
        env: BTreeMap<String, String>,
        model_env: BTreeMap<String, String>,
        events: EventFormat,
        /// The file in `{scratch}` in which the program leaves its last event.
        result_file: Option<String>,
        faults: Faults,
        /// The hosts of its model and of its login.
        model_hosts: BTreeSet<String>,
        /// Variables that name further hosts.
        address_variables: BTreeSet<String>,
        /// Further variables of the person's environment that it needs to reach its model; `*` matches any text.
        pass_env: BTreeSet<String>,
        /// The same while the first variable is set.
        pass_env_if: BTreeMap<String, Vec<String>>,
        home: ClientHome,
        /// Names of files and folders of a checkout from which it takes settings, hooks, plugins or its environment.
        in_checkouts: Vec<String>,
        login: String,
        /// The text that follows it, or replaces it.
        login_more: Option<String>,
        /// The signs of a login, the most likely one first.
        login_signs: Vec<LoginSign>,
        rights: String,
        install: String,
    }
}

impl CommandTemplate {
    /// The name of its program's file, by which a known one is recognized.
    pub(super) fn stem(&self) -> &str {
        Path::new(&self.program).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }

    /// A program that is called in another way than a known one, but has its files, logins and errors.
    pub(super) fn like(known: &Self) -> Self {
        let known = known.clone();
        Self {
            faults: known.faults,
            model_hosts: known.model_hosts,
            address_variables: known.address_variables,
            pass_env: known.pass_env,
            pass_env_if: known.pass_env_if,
            home: known.home,
            in_checkouts: known.in_checkouts,
            login: known.login,
            login_more: known.login_more,
            login_signs: known.login_signs,
            ..Self::default()
        }
    }
}

/// How the output of a program is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dialect {
    pub format: EventFormat,
    pub faults: Faults,
}

impl Dialect {
    pub(super) fn of_exit(&self, code: i32) -> Option<FaultKind> {
        self.faults.iter().find(|(_, signs)| signs.exits.contains(&code)).map(|(kind, _)| *kind)
    }

    pub(super) fn of_words(&self, message: &str) -> Option<FaultKind> {
        let message = message.to_lowercase();
        let is_sign = |word: &String| message.contains(&word.to_lowercase());
        self.faults.iter().find(|(_, signs)| signs.words.iter().any(is_sign)).map(|(kind, _)| *kind)
    }
}

impl From<EventFormat> for Dialect {
    fn from(format: EventFormat) -> Self {
        Self { format, faults: Faults::new() }
    }
}

//! A command to copy, as words: a screen runs it from these, and nothing takes its text apart.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use liza_core::model::Role;
use liza_core::text::shell_word;

/// The placeholder for a text that a person types.
pub const OPEN: &str = "...";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct CommandLine {
    /// The words after `liza`; empty if another program answers.
    #[serde(skip)]
    words: Vec<String>,
    text: String,
}

impl CommandLine {
    pub fn liza<W: ToString>(words: impl IntoIterator<Item = W>) -> Self {
        let words: Vec<String> = words.into_iter().map(|word| word.to_string()).collect();
        let shown = |word: &String| match word.is_empty() || word == OPEN {
            true => format!(" \"{word}\""),
            false => format!(" {}", shell_word(word)),
        };
        let text = format!("liza{}", words.iter().map(shown).collect::<String>());
        Self { words, text }
    }

    /// A line for a shell that no screen runs.
    pub fn shell(text: impl Into<String>) -> Self {
        Self { words: Vec::new(), text: text.into() }
    }

    pub fn words(&self) -> &[String] {
        &self.words
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// With the words and the text apart, for a file that is read again.
    pub fn keep<S: Serializer>(line: &Self, serializer: S) -> Result<S::Ok, S::Error> {
        (&line.words, &line.text).serialize(serializer)
    }

    pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (words, text): (Vec<String>, String) = Deserialize::deserialize(deserializer)?;
        Ok(Self { words, text })
    }
}

/// A command of Liza from words of any kind.
macro_rules! liza {
    ($($word:expr),+ $(,)?) => {
        $crate::command_line::CommandLine::liza([$(::std::string::ToString::to_string(&$word)),+])
    };
}
pub(crate) use liza;

/// The commands that start a team or an agent, with the programs of the last run.
#[derive(Debug, Clone)]
pub struct StartCommands {
    pub run: CommandLine,
    /// One for each role, in the order of [`Role::ALL`].
    pub agents: [CommandLine; 3],
}

impl StartCommands {
    pub fn agent(&self, role: Role) -> &CommandLine {
        let [planner, coder, reviewer] = &self.agents;
        match role {
            Role::Planner => planner,
            Role::Coder => coder,
            Role::CodeReviewer => reviewer,
        }
    }
}

impl Default for StartCommands {
    fn default() -> Self {
        Self { run: liza!("run"), agents: Role::ALL.map(|role| liza!("agent", role.id_prefix())) }
    }
}

impl Deref for CommandLine {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl<T: AsRef<str> + ?Sized> PartialEq<T> for CommandLine {
    fn eq(&self, other: &T) -> bool {
        self.text == other.as_ref()
    }
}

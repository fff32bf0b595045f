//! The list of built-in providers; each has a file of its own with its command line and its events.

use strum::{EnumString, IntoStaticStr, VariantArray, VariantNames};

use super::template::CommandTemplate;
use super::{claude, codex, gemini, goose, opencode, rehearsal, vibe};

/// A built-in provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum BuiltIn {
    Claude,
    Codex,
    Gemini,
    #[strum(to_string = "vibe", serialize = "mistral")]
    Vibe,
    Opencode,
    Goose,
    Rehearsal,
}

impl BuiltIn {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// How its program is called.
    pub fn template(self) -> CommandTemplate {
        match self {
            Self::Claude => claude::template(),
            Self::Codex => codex::template(),
            Self::Gemini => gemini::template(),
            Self::Vibe => vibe::template(),
            Self::Opencode => opencode::template(),
            Self::Goose => goose::template(),
            Self::Rehearsal => rehearsal::template(),
        }
    }
}

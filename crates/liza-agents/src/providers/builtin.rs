//! The list of built-in providers; each has a file of its own with its command line, its places and its events.

use std::path::Path;

use strum::{EnumString, IntoStaticStr, VariantArray, VariantNames};

use super::places::ClientPlaces;
use super::template::CommandTemplate;
use super::{claude, codex, gemini, goose, opencode, rehearsal, vibe};

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
    pub fn name(self) -> &'static str {
        self.into()
    }

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

    /// The places of its program's files; none for liza itself.
    pub(crate) fn places(self) -> Option<&'static ClientPlaces> {
        match self {
            Self::Claude => Some(&claude::PLACES),
            Self::Codex => Some(&codex::PLACES),
            Self::Gemini => Some(&gemini::PLACES),
            Self::Vibe => Some(&vibe::PLACES),
            Self::Opencode => Some(&opencode::PLACES),
            Self::Goose => Some(&goose::PLACES),
            Self::Rehearsal => None,
        }
    }
}

/// Looks up a known program by the name of its file.
pub fn places_of(program: &Path) -> Option<&'static ClientPlaces> {
    let name = program.file_stem()?.to_str()?;
    known_places().find(|places| places.program == name)
}

pub fn known_places() -> impl Iterator<Item = &'static ClientPlaces> {
    <BuiltIn as VariantArray>::VARIANTS.iter().filter_map(|one| one.places())
}

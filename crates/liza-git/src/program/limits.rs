//! The rights of a git command, and the programs of the configuration that it may run. Decides from the
//! settings that git lists.

use std::cell::LazyCell;
use std::ffi::OsStr;
use std::path::Path;

use liza_sandbox::confine::KeptFilters;
use liza_sandbox::sys::confinement::Grants;

use crate::program::accepted_programs::AcceptedPrograms;
use crate::program::leftovers::VIEW;
use crate::program::programs::{Overrides, ProgramSetting};

#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// Replacements of settings that name programs.
    pub overrides: Overrides,
    /// `None` if it is not confined.
    pub grants: Option<Grants>,
    /// The filters that run below keepers.
    pub filters: KeptFilters,
    /// The repository may lack objects, which cannot be fetched from a room.
    pub partial: bool,
}

/// The replacements of programs in the repository's own configuration, for a git that starts in `cwd`.
pub(crate) fn overrides(settings: &[u8], accepted: Option<&AcceptedPrograms>, cwd: &Path) -> Overrides {
    let known = LazyCell::new(|| accepted.map(AcceptedPrograms::read).unwrap_or_default());
    let among_agents_files = is_among_agents_files(accepted, cwd);
    let may_run = |setting: &ProgramSetting, local: bool| {
        let Some(place) = accepted else { return !local };
        (!local || place.may_run(setting, &known))
            && (!among_agents_files || place.may_run_among_agents_files(&setting.value))
    };
    Overrides::parse(settings, may_run)
}

/// True if git starts in a checkout of an agent, or in a copy of its files.
pub(crate) fn is_among_agents_files(accepted: Option<&AcceptedPrograms>, cwd: &Path) -> bool {
    let Some(place) = accepted else { return false };
    let is_theirs =
        |part: &OsStr| part == ".worktrees" || part.as_encoded_bytes().starts_with(VIEW.as_bytes());
    // A project can itself be in a folder with such a name.
    cwd.strip_prefix(place.root()).unwrap_or(cwd).iter().any(is_theirs)
}

//! What this program was built without: each verb and setting that needs it says so, and how to install it.

use super::ui::error::CommandError;
use super::ui::exit_code::Exit;

/// The line that installs the whole program.
pub(crate) const INSTALL: &str = "cargo install --path crates/liza";

/// What a person gets by installing the whole program; none if this is the whole program.
pub(crate) fn rest_of_the_program() -> Option<String> {
    let is_whole = cfg!(all(feature = "database", feature = "screen", feature = "web", feature = "webhook"));
    let rest = "This is the program without its screen, browser pages, database and webhooks; with them";
    (!is_whole).then(|| format!("{rest}: {INSTALL}"))
}

/// Refuses what needs a part that was left out of this program.
pub(crate) fn missing_feature(what: &str) -> CommandError {
    CommandError::refused("missing_feature", format!("this liza was built without {what}"))
        .hint(format!("in the clone of Liza, the whole program: {INSTALL}"))
        .exit(Exit::Missing)
}

/// Refuses a setting that this program could not follow.
pub(crate) fn check_setting(key: &str) -> Result<(), CommandError> {
    match key {
        "escalation_webhook" if !cfg!(feature = "webhook") => Err(missing_feature("webhooks")),
        _ => Ok(()),
    }
}

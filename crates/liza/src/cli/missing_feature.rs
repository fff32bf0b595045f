//! The features that this program was built without.

use super::ui::error::{CommandError, INSTALL};

/// The parts that this program lacks, and the line that installs them; none if it is the whole program.
pub(crate) fn rest_of_the_program() -> Option<String> {
    let is_whole = cfg!(all(feature = "database", feature = "screen", feature = "web", feature = "webhook"));
    let rest = "This is the program without its screen, browser pages, database and webhooks; with them";
    (!is_whole).then(|| format!("{rest}: {INSTALL}"))
}

/// Refuses a setting that this program could not follow.
pub(crate) fn check_setting(key: &str) -> Result<(), CommandError> {
    match key {
        "escalation_webhook" if !cfg!(feature = "webhook") => Err(CommandError::missing_feature("webhooks")),
        _ => Ok(()),
    }
}

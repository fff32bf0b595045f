//! The agent programs of this machine, as a command sees them, and the places of their logins.

use std::ffi::OsStr;

use liza_agents::providers::{LoginPlaces, default_provider};

use super::context::Context;

/// The agent program if none is named: one that is installed, and best one with a login.
pub(crate) fn default_client(context: &Context) -> &'static str {
    with_places(context, default_provider).unwrap_or("claude")
}

/// Calls `look` with the places of this command: its home folder and variables.
pub(crate) fn with_places<T>(context: &Context, look: impl FnOnce(&LoginPlaces<'_>) -> T) -> T {
    let home = context.environment.home();
    let variable = |name: &str| context.environment.raw(name).map(OsStr::to_owned);
    look(&LoginPlaces { home: home.as_deref(), variable: &variable })
}

//! The terminal screen: what the team does, live, and keys for what a person decides.
//!
//! Split in three: `model` is what the screen knows, `update` changes it and says what to do, `draw` paints it. Everything
//! that touches the world is in `screen`, `action_queue`, `source` and `terminal`. Every action is a command
//! line that is shown, in its dialog or while it runs, and is executed by the code of the command line, so nothing here
//! changes the blackboard by itself.

mod action_queue;
mod dialog;
mod draw;
mod input_field;
mod keys;
mod model;
mod page;
mod screen;
mod source;
mod styled;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;
mod update;

use std::sync::Arc;

use liza_host::local_time::LocalTime;
use liza_team::project::Project;

pub(crate) use screen::{LiveScreen, show};
pub(crate) use theme::{Theme, ThemeName};

/// What the screen is shown for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScreenMode {
    /// To look at a team, wherever it runs: the person leaves the screen, the team keeps running.
    Observer,
    /// For the team that this process runs: leaving it stops the team.
    Team,
}

/// Executes commands as the person at the terminal.
pub(crate) trait CommandLine: Send + Sync {
    /// Executes `liza WORDS` for a terminal of that width.
    fn execute(&self, words: &[String], columns: u16) -> CommandResult;
}

/// What a command printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandResult {
    /// Whether it succeeded.
    pub(crate) succeeded: bool,
    /// The text, with the styles of the command line.
    pub(crate) text: String,
}

/// What a screen needs.
#[derive(Clone)]
pub(crate) struct ScreenSetup {
    /// The project that it shows.
    pub(crate) project: Project,
    /// What it is shown for.
    pub(crate) mode: ScreenMode,
    /// What kind of project it is, if that is worth a word.
    pub(crate) label: Option<&'static str>,
    /// Its colours.
    pub(crate) theme: Theme,
    /// The zone of its times.
    pub(crate) times: LocalTime,
    /// Executes its actions.
    pub(crate) commands: Arc<dyn CommandLine>,
}

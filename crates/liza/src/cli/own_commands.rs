//! Commands that this process runs itself, for a screen or a page.

use std::ffi::OsString;
use std::sync::Arc;

use liza_team::channel::TerminalFacts;
use liza_team::project::Project;

use super::context::Context;
use super::ui::buffer_console::BufferConsole;
use super::ui::exit_code::Exit;

/// The output of a command.
pub(super) struct CommandOutput {
    pub(super) succeeded: bool,
    /// The text, with the styles of the command line.
    pub(super) text: String,
}

/// Runs commands in this process and keeps their output.
pub(super) struct OwnCommands {
    pub(super) context: Context,
    pub(super) project: Project,
}

impl OwnCommands {
    pub(super) fn new(context: &Context, project: &Project) -> Self {
        Self { context: context.clone(), project: project.clone() }
    }

    /// Executes `liza WORDS` for a terminal of that width.
    pub(super) fn execute(&self, words: &[String], columns: u16) -> CommandOutput {
        let columns = usize::from(columns);
        let terminal = TerminalFacts {
            columns: Some(columns),
            fixed_columns: Some(columns),
            output: true,
            color: true,
            error_color: true,
        };
        let console = Arc::new(BufferConsole::new(String::new(), terminal));
        let mut caller = self.context.caller_in(&self.project, console.clone());
        let width = columns.to_string();
        caller.environment = caller.environment.with([("COLUMNS", Some(width.as_str()))].into_iter());
        let utc = self.context.screen.utc.then_some("--utc");
        let words = words.iter().map(String::as_str).chain(utc);
        let arguments = std::iter::once("liza").chain(words).map(OsString::from).collect();
        let exit = (self.context.services.run)(arguments, caller);
        let text: String = console.take().into_iter().map(|(_, text)| text).collect();
        CommandOutput { succeeded: exit == Exit::Success, text }
    }
}

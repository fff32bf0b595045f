//! The terminal screen for commands: when it can be shown, and how it runs its actions as this command line.

use std::ffi::OsString;
use std::sync::Arc;

use liza_team::channel::TerminalFacts;
use liza_team::project::Project;
use liza_team::run::is_rehearsal_copy;

use crate::tui::{CommandLine, CommandResult, ScreenMode, ScreenSetup, Theme, ThemeName, show};

use super::context::Context;
use super::session::BufferConsole;
use super::ui::console::Stream;
use super::ui::error::CommandError;
use super::ui::exit_code::Exit;
use super::ui::output::{Color, Reply, Screen};

/// Whether a screen can be shown: a person reads it and can press keys.
pub(crate) fn is_possible(context: &Context) -> bool {
    let Screen { json, quiet, console, .. } = &context.screen;
    let dumb = context.environment.text("TERM").is_none_or(|term| term == "dumb");
    let is_terminal = console.is_terminal(Stream::Output) && console.is_terminal(Stream::Input);
    // A terminal without a size shows nothing.
    !json && !quiet && !dumb && is_terminal && console.columns().is_some()
}

/// What a screen of this project needs.
pub(crate) fn setup(context: &Context, project: &Project, mode: ScreenMode, theme: ThemeName) -> ScreenSetup {
    let colored = match context.screen.color {
        Color::Auto => context.screen.console.has_color(Stream::Output),
        Color::Always => true,
        Color::Never => false,
    };
    let name = if colored { theme } else { ThemeName::Plain };
    ScreenSetup {
        project: project.clone(),
        mode,
        label: is_rehearsal_copy(project).then_some("REHEARSAL IN A COPY"),
        theme: Theme::new(name, context.environment.text("COLORFGBG")),
        times: context.screen.local_time(),
        commands: Arc::new(OwnCommands::new(context, project)),
    }
}

/// Shows the screen of a team that runs elsewhere, until the person leaves it.
pub(crate) fn show_team(
    context: &Context,
    project: &Project,
    theme: ThemeName,
) -> Result<Reply, CommandError> {
    if !is_possible(context) {
        return Err(CommandError::refused("no_terminal", "the screen needs a terminal")
            .hint("in a pipe or a script: liza status, liza log -f"));
    }
    let shown = show(&setup(context, project, ScreenMode::Observer, theme));
    shown
        .map_err(|error| CommandError::refused("no_terminal", format!("cannot use the terminal: {error}")))?;
    Ok(Reply::already_written())
}

/// Runs commands in this process and keeps what they print.
pub(super) struct OwnCommands {
    context: Context,
    project: Project,
}

impl OwnCommands {
    /// Commands of this caller in that project.
    pub(super) fn new(context: &Context, project: &Project) -> Self {
        Self { context: context.clone(), project: project.clone() }
    }
}

impl CommandLine for OwnCommands {
    fn execute(&self, words: &[String], columns: u16) -> CommandResult {
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
        CommandResult { succeeded: exit == Exit::Success, text }
    }
}

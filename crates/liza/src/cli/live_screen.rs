//! The terminal screen for commands: a check that it can be shown, and its actions as this command line.

use std::io;
use std::process::Command;
use std::sync::Arc;

use liza_team::project::{Project, now};
use liza_team::run::front::{self, FRONT};
use liza_team::run::is_rehearsal_copy;
use liza_team::supervisor::{MessageLevel, TeamMessage};
use liza_tui::{CommandLine, CommandResult, LiveScreen, LogLine, ScreenMode, ScreenSetup, Theme, show};

use super::context::Context;
use super::own_commands::OwnCommands;
use super::screen_source::ProjectSource;
use super::ui::console::Stream;
use super::ui::error::CommandError;
use super::ui::output::{Color, Reply, Screen};
use super::ui::theme_name::ThemeName;

/// True if a screen can be shown: a person reads it and can press keys.
pub(crate) fn is_possible(context: &Context) -> bool {
    let Screen { json, quiet, console, .. } = &context.screen;
    let dumb = context.environment.text("TERM").is_none_or(|term| term == "dumb");
    let is_terminal = console.is_terminal(Stream::Output) && console.is_terminal(Stream::Input);
    // A terminal without a size shows nothing.
    !json && !quiet && !dumb && is_terminal && console.columns().is_some()
}

/// The setup of a screen of this project.
fn setup(context: &Context, project: &Project, mode: ScreenMode, theme: ThemeName) -> ScreenSetup {
    let colored = match context.screen.color {
        Color::Auto => context.screen.console.has_color(Stream::Output),
        Color::Always => true,
        Color::Never => false,
    };
    let name = match theme {
        _ if !colored => liza_tui::ThemeName::Plain,
        ThemeName::Auto => liza_tui::ThemeName::Auto,
        ThemeName::Dark => liza_tui::ThemeName::Dark,
        ThemeName::Light => liza_tui::ThemeName::Light,
        ThemeName::Plain => liza_tui::ThemeName::Plain,
    };
    ScreenSetup {
        source: Arc::new(ProjectSource::new(project.clone())),
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

/// The screen of a team that this process runs.
pub(crate) struct TeamScreen(LiveScreen);

impl TeamScreen {
    /// Shows the screen; none in a program without screens.
    pub(crate) fn start(context: &Context, project: &Project) -> Option<Self> {
        Some(Self(LiveScreen::start(setup(context, project, ScreenMode::Team, ThemeName::Auto))))
    }

    /// Shows a message of the team; false if the screen has ended, so that the message has to be shown otherwise.
    pub(crate) fn report(&self, message: &TeamMessage) -> bool {
        let is_alert = match message.level {
            MessageLevel::Debug => return true,
            MessageLevel::Info => false,
            MessageLevel::Alert => true,
        };
        let who = message.agent.map_or_else(|| "liza".to_owned(), |agent| agent.to_string());
        // Without the sign of an alarm: its width differs between terminals, and the line has a colour.
        self.0.report(LogLine {
            time: message.happened.unwrap_or_else(now),
            who,
            text: message.text.clone(),
            is_alert,
            earlier: message.happened.is_some(),
        })
    }
}

impl CommandLine for OwnCommands {
    fn execute(&self, words: &[String], columns: u16) -> CommandResult {
        let output = OwnCommands::execute(self, words, columns);
        CommandResult { succeeded: output.succeeded, text: output.text }
    }

    fn in_terminal(&self, words: &[String]) -> io::Result<bool> {
        let mut command = Command::new(&self.context.program);
        command.arg("-C").arg(self.project.root()).args(words);
        Ok(command.status()?.success())
    }

    fn detach(&self) -> io::Result<()> {
        let front = front::waiting(self.context.environment.text(FRONT));
        let front = front.ok_or(io::Error::from(io::ErrorKind::Unsupported))?;
        let liza = match is_rehearsal_copy(&self.project) {
            true => format!("liza -C {}", self.project.root().display()),
            false => "liza".to_owned(),
        };
        let text = format!(
            "the team goes on in the background as process {}\nwatch it: {liza} tui; end it: {liza} stop",
            std::process::id()
        );
        front::detach(&self.project, front, &text)
    }
}

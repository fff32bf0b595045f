//! The terminal screen: the team's work, live, and keys for a person's decisions.
//!
//! View in, command line out: reads no file, starts nothing and has no clock. `model` is the state, `update`
//! changes it and returns effects, `draw` paints it. The terminal and threads are in `screen`; the data comes
//! from a [`ScreenSource`]. Every action is a command line that the screen shows and the code of the command
//! line executes.

#![forbid(unsafe_code)]

mod draw;
mod model;
mod screen;
mod styled;
#[cfg(test)]
mod tests;
mod theme;
mod update;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

use liza_core::model::{AgentId, TaskId};
use liza_host::local_time::LocalTime;
use liza_status::view::View;
use model::Event;

pub use model::LogLine;
pub use screen::{LiveScreen, show};
pub use theme::{Theme, ThemeName};

/// The purpose of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenMode {
    /// To look at a team, wherever it runs: the person leaves the screen, the team keeps running.
    Observer,
    /// For the team that this process runs: it ends with the screen, unless the person detaches it.
    Team,
}

/// Executes commands as the person at the terminal.
pub trait CommandLine: Send + Sync {
    /// Executes `liza WORDS` for a terminal of that width.
    fn execute(&self, words: &[String], columns: u16) -> CommandResult;

    /// Runs `liza WORDS` with the terminal for itself until it has ended; true if it succeeded.
    fn in_terminal(&self, _words: &[String]) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Lets the team of this process go on without its terminal.
    fn detach(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandResult {
    pub succeeded: bool,
    /// The text, with the styles of the command line.
    pub text: String,
}

/// The source of the screen's content.
pub trait ScreenSource: Send + Sync {
    /// Starts to feed the screen; ends when `ended` is set or the feed is closed.
    fn start(&self, mode: ScreenMode, feed: Feed, ended: Arc<AtomicBool>);

    /// The newest prompt of an agent, about that task.
    fn newest_prompt(&self, agent: Option<AgentId>, task: Option<&TaskId>) -> Option<String>;
}

/// The way into the screen. Every method is false once the screen has ended.
#[derive(Debug, Clone)]
pub struct Feed(Sender<Event>);

impl Feed {
    /// Shows a view, or the reason why there is none.
    pub fn view(&self, view: Result<View, String>) -> bool {
        let event = view.map_or_else(Event::Unreadable, |view| Event::View(Arc::new(view)));
        self.0.send(event).is_ok()
    }

    pub fn log(&self, lines: Vec<LogLine>) -> bool {
        lines.is_empty() || self.0.send(Event::Log(lines)).is_ok()
    }
}

#[derive(Clone)]
pub struct ScreenSetup {
    pub source: Arc<dyn ScreenSource>,
    pub mode: ScreenMode,
    /// The kind of the project, if that is worth a word.
    pub label: Option<&'static str>,
    pub theme: Theme,
    /// The zone of its times.
    pub times: LocalTime,
    pub commands: Arc<dyn CommandLine>,
}

//! Prints a team's messages as a stream of lines; in a terminal with a progress line below them.
//!
//! Messages go to standard output; alerts and the progress line go to standard error.

use std::sync::{Mutex, PoisonError};

use liza_core::model::Role;
use liza_host::local_time::LocalTime;
use liza_team::project::now;
use liza_team::supervisor::{MessageLevel, TeamMessage};

use super::console::Stream;
use super::layout::clean;
use super::layout::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, cut, one_line, pad, paint, printable, width, wrap};
use super::output::{Color, Screen};

/// The longest name is `code-reviewer-10`.
const NAME: usize = 16;

/// The time and the space after it.
const TIME: usize = 9;

/// Below this many columns, names are not padded.
const NARROW: usize = 60;

/// Clears the line that the cursor is in.
const CLEAR: &str = "\r\x1b[2K";

pub(crate) struct EventPrinter {
    screen: Screen,
    times: LocalTime,
    least: MessageLevel,
    /// The progress line, if one is wanted; empty while there is none.
    progress: Option<Mutex<String>>,
    silent: bool,
    /// True if the messages are shown on the terminal screen instead.
    live_screen: bool,
    /// The messages that were printed before that screen, which covers them.
    covered: Mutex<Vec<TeamMessage>>,
}

impl EventPrinter {
    /// Prints every message of at least that level.
    pub(crate) fn new(screen: Screen, least: MessageLevel) -> Self {
        Self {
            times: screen.local_time(),
            screen,
            least,
            progress: None,
            live_screen: false,
            silent: false,
            covered: Mutex::default(),
        }
    }

    /// With a progress line, if standard error is a terminal.
    pub(crate) fn with_progress(mut self) -> Self {
        let terminal = self.screen.console.is_terminal(Stream::Error);
        let wanted = terminal && !self.screen.json && !self.screen.quiet;
        self.progress = wanted.then(Mutex::default);
        self
    }

    /// With the terminal screen instead of lines while the team runs.
    pub(crate) fn with_live_screen(mut self) -> Self {
        self.live_screen = true;
        self
    }

    pub(crate) fn has_live_screen(&self) -> bool {
        self.live_screen
    }

    /// Prints a message: time, agent, text.
    pub(crate) fn print(&self, message: &TeamMessage) {
        let time = self.times.of_day(now());
        let agent = message.agent.map_or("liza".to_owned(), |agent| agent.to_string());
        let style = match message.agent.map(|agent| agent.role()) {
            Some(Role::Planner) => CYAN,
            Some(Role::Coder) => GREEN,
            Some(Role::CodeReviewer) => YELLOW,
            None => BOLD,
        };
        // Reasons, violations and file names are written by agents: they must not control the terminal.
        let sign = message.alarm.map(|level| format!("{} ", level.sign())).unwrap_or_default();
        let what = sign + &self.times.in_text(&one_line(&clean(&message.text)));
        let color = |text: &str| {
            if message.level == MessageLevel::Alert { paint(RED, text) } else { text.to_owned() }
        };
        let columns = self.columns();
        let narrow = columns.is_some_and(|columns| columns < NARROW);
        let name = if narrow { agent } else { pad(&agent, NAME) };
        let indent = if narrow { TIME } else { TIME + NAME + 1 };
        let first = if narrow { indent + width(&name) + 1 } else { indent };
        let lines = hanging(&what, first, indent, columns);
        let text: Vec<String> = lines.iter().map(|line| color(line)).collect();
        let text = text.join(&format!("\n{}", " ".repeat(indent)));
        self.write(message.level, &format!("{} {} {text}", paint(DIM, &time), paint(style, &name)));
    }

    /// Prints a text that is not a message of the team.
    pub(crate) fn print_text(&self, text: &str) {
        self.keep(MessageLevel::Info, text);
        let text = self.columns().map_or(text.to_owned(), |columns| wrap(text, columns).join("\n"));
        self.write(MessageLevel::Info, &text);
    }

    /// Prints something that a person should know before the team starts.
    pub(crate) fn print_note(&self, text: &str) {
        self.keep(MessageLevel::Alert, text);
        let text = format!("liza: {text}");
        let is_terminal = self.screen.console.is_terminal(Stream::Error);
        let lines = if is_terminal { wrap(&text, self.screen.columns()) } else { vec![text] };
        self.screen.note(&lines.join("\n"));
    }

    /// The printed messages that the terminal screen would hide, one message per line.
    pub(crate) fn take_covered(&self) -> Vec<TeamMessage> {
        std::mem::take(&mut *self.covered.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn keep(&self, level: MessageLevel, text: &str) {
        if self.live_screen {
            let line = |text: &str| TeamMessage::of_team(level, text.trim());
            let mut covered = self.covered.lock().unwrap_or_else(PoisonError::into_inner);
            covered.extend(text.lines().map(line));
        }
    }

    /// The most columns of a line; lines in a file are never wrapped.
    fn columns(&self) -> Option<usize> {
        self.screen.console.is_terminal(Stream::Output).then(|| self.screen.columns())
    }

    /// Prints nothing: what happens is shown in another way.
    pub(crate) fn silent(mut self) -> Self {
        self.silent = true;
        self
    }

    fn write(&self, level: MessageLevel, text: &str) {
        if self.silent {
            return;
        }
        if level == MessageLevel::Alert {
            self.above_progress(|| self.screen.note(text));
        } else if level >= self.least && !self.screen.json && !self.screen.quiet {
            self.above_progress(|| self.screen.out(text));
        }
    }

    pub(crate) fn shows_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Replaces the progress line.
    pub(crate) fn progress(&self, text: &str) {
        let Some(progress) = &self.progress else { return };
        let mut shown = progress.lock().unwrap_or_else(PoisonError::into_inner);
        if *shown != text {
            text.clone_into(&mut shown);
            self.draw(&shown);
        }
    }

    fn above_progress(&self, write: impl FnOnce()) {
        let Some(progress) = &self.progress else { return write() };
        let shown = progress.lock().unwrap_or_else(PoisonError::into_inner);
        self.write_raw(CLEAR);
        write();
        self.draw(&shown);
    }

    fn draw(&self, text: &str) {
        let line = cut(text, self.screen.columns().saturating_sub(1));
        let line = printable(&paint(DIM, &line), self.screen.color != Color::Never);
        self.write_raw(&format!("{CLEAR}{line}"));
    }

    fn write_raw(&self, text: &str) {
        // If standard error is closed, no one sees the progress line.
        let _ = self.screen.console.write(Stream::Error, text);
    }
}

impl Drop for EventPrinter {
    fn drop(&mut self) {
        if self.progress.is_some() {
            self.write_raw(CLEAR);
        }
    }
}

/// The text wrapped at words; the first line starts at one column and the others at another.
fn hanging(text: &str, first: usize, indent: usize, columns: Option<usize>) -> Vec<String> {
    let Some(columns) = columns else { return vec![text.to_owned()] };
    let filler = "x".repeat(first.saturating_sub(indent));
    let lines = wrap(&format!("{filler}{text}"), columns.saturating_sub(indent).max(10));
    let mut lines = lines.into_iter();
    let head = lines.next().map(|line| line.strip_prefix(&filler).unwrap_or(&line).to_owned());
    head.into_iter().chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: AG-16
    #[test]
    fn long_lines_are_broken_at_words_and_stay_in_their_column() {
        let lines = hanging("farewell BLOCKED: what fits which hour", 17, 9, Some(40));
        assert_eq!(lines, ["farewell BLOCKED: what", "fits which hour"]);
        let lines = hanging("whisper submitted for review", 26, 26, Some(46));
        assert_eq!(lines, ["whisper submitted", "for review"]);
        // A file gets every line as it is.
        assert_eq!(hanging("one  two", 26, 26, None), ["one  two"]);
    }
}

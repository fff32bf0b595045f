//! What supervisors say, as a stream of lines; in a terminal with a line below it that says how far the work is.
//!
//! Lines go to standard output, alerts and the progress line to standard error: a file gets the story only.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

use liza_core::model::Role;

use crate::project::now;
use crate::supervisor::{Line, Weight};

use super::input::clean;
use super::layout::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, columns, cut, one_line, pad, paint, width, wrap};
use super::output::{Color, Screen};

/// The longest name is `code-reviewer-10`.
const NAME: usize = 16;

/// The time and the space after it.
const TIME: usize = 9;

/// Below this many columns, names are not padded.
const NARROW: usize = 60;

/// Takes the line that the cursor is in away.
const CLEAR: &str = "\r\x1b[2K";

/// Tells what happens.
pub(crate) struct EventPrinter {
    screen: Screen,
    least: Weight,
    /// The progress line, where one is wanted; empty while there is none.
    below: Option<Mutex<String>>,
}

impl EventPrinter {
    /// Tells everything that weighs at least as much.
    pub(crate) fn new(screen: Screen, least: Weight) -> Self {
        Self { screen, least, below: None }
    }

    /// With a line for the progress, where somebody sits before a terminal.
    pub(crate) fn with_progress(mut self) -> Self {
        let wanted = io::stderr().is_terminal() && !self.screen.json && !self.screen.quiet;
        self.below = wanted.then(Mutex::default);
        self
    }

    /// Tells a line: when, who, what.
    pub(crate) fn tell(&self, line: &Line) {
        let time = now().to_string();
        let time = time.get(11..19).unwrap_or_default();
        let who = line.agent.map_or("liza".to_owned(), |agent| agent.to_string());
        let style = match line.agent.map(|agent| agent.role()) {
            Some(Role::Planner) => CYAN,
            Some(Role::Coder) => GREEN,
            Some(Role::CodeReviewer) => YELLOW,
            None => BOLD,
        };
        // Reasons, violations and file names are what agents wrote: they must not steer the terminal.
        let what = one_line(&clean(&line.text));
        let color = |text: &str| {
            if line.weight == Weight::Alert { paint(RED, text) } else { text.to_owned() }
        };
        let room = self.room();
        // Beside a column of names there must be room for words.
        let narrow = room.is_some_and(|columns| columns < NARROW);
        let name = if narrow { who } else { pad(&who, NAME) };
        let indent = if narrow { TIME } else { TIME + NAME + 1 };
        let first = if narrow { indent + width(&name) + 1 } else { indent };
        let lines = hanging(&what, first, indent, room);
        let text: Vec<String> = lines.iter().map(|line| color(line)).collect();
        let text = text.join(&format!("\n{}", " ".repeat(indent)));
        self.say(line.weight, &format!("{} {} {text}", paint(DIM, time), paint(style, &name)));
    }

    /// How many columns a line may take; in a file it is never broken.
    fn room(&self) -> Option<usize> {
        io::stdout().is_terminal().then(columns)
    }

    fn say(&self, weight: Weight, text: &str) {
        if weight == Weight::Alert {
            self.above(|| self.screen.note(text));
        } else if weight >= self.least && !self.screen.json && !self.screen.quiet {
            self.above(|| self.screen.out(text));
        }
    }

    /// Says something that is no event.
    pub(crate) fn say_plainly(&self, text: &str) {
        let text = self.room().map_or(text.to_owned(), |columns| wrap(text, columns).join("\n"));
        self.say(Weight::News, &text);
    }

    /// Whether there is a progress line.
    pub(crate) fn shows_progress(&self) -> bool {
        self.below.is_some()
    }

    /// Shows how far the work is.
    pub(crate) fn progress(&self, text: &str) {
        let Some(below) = &self.below else { return };
        let mut shown = below.lock().unwrap_or_else(PoisonError::into_inner);
        if *shown != text {
            text.clone_into(&mut shown);
            self.draw(&shown);
        }
    }

    /// Writes something above the progress line.
    fn above(&self, write: impl FnOnce()) {
        let Some(below) = &self.below else { return write() };
        let shown = below.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = write_raw(CLEAR);
        write();
        self.draw(&shown);
    }

    fn draw(&self, text: &str) {
        let line = cut(text, columns().saturating_sub(1));
        let line = if self.screen.color == Color::Never { line } else { paint(DIM, &line) };
        let _ = write_raw(&format!("{CLEAR}{line}"));
    }
}

impl Drop for EventPrinter {
    fn drop(&mut self) {
        if self.below.is_some() {
            let _ = write_raw(CLEAR);
        }
    }
}

/// The text broken at words, where the first line begins at one column and the others at another.
fn hanging(text: &str, first: usize, indent: usize, room: Option<usize>) -> Vec<String> {
    let Some(columns) = room else { return vec![text.to_owned()] };
    let filler = "x".repeat(first.saturating_sub(indent));
    let lines = wrap(&format!("{filler}{text}"), columns.saturating_sub(indent).max(10));
    let mut lines = lines.into_iter();
    let head = lines.next().map(|line| line.strip_prefix(&filler).unwrap_or(&line).to_owned());
    head.into_iter().chain(lines).collect()
}

fn write_raw(text: &str) -> io::Result<()> {
    let mut error = io::stderr().lock();
    error.write_all(text.as_bytes())?;
    error.flush()
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

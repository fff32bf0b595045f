//! The output of a command: text for people, one JSON object for programs. A closed pipe is not an error.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use liza_core::text::{ERROR_START, HINT_START};
use liza_host::local_time::LocalTime;
use serde::Serialize;
use serde_json::json;

use super::console::{Console, Stream};
use super::error::CommandError;
use super::exit_code::Exit;
use super::layout::{clean, printable, printable_json, wrap_sentences};

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// In a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    /// The revision of the blackboard now.
    pub(crate) revision: Option<u64>,
    /// For programs.
    pub(crate) result: serde_json::Value,
    /// For people; may contain colour.
    pub(crate) text: String,
    /// True if the text is sentences, which are wrapped in a terminal; otherwise it has its layout.
    pub(crate) sentences: bool,
    /// True if everything is written already.
    pub(crate) written: bool,
    pub(crate) exit: Exit,
}

impl Reply {
    pub(crate) fn new(text: impl Into<String>, result: serde_json::Value) -> Self {
        Self { result, text: text.into(), ..Self::default() }
    }

    #[must_use]
    pub(crate) fn sentences(mut self) -> Self {
        self.sentences = true;
        self
    }

    /// The reply of a command that wrote its output as it ran.
    pub(crate) fn already_written() -> Self {
        Self { written: true, ..Self::default() }
    }

    #[must_use]
    pub(crate) fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    #[must_use]
    pub(crate) fn at(mut self, revision: u64) -> Self {
        self.revision = Some(revision);
        self
    }
}

/// The form and the place of the output.
#[derive(Clone)]
pub(crate) struct Screen {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    pub(crate) utc: bool,
    pub(crate) color: Color,
    /// The value of COLUMNS.
    pub(crate) fixed_columns: Option<usize>,
    pub(crate) console: Arc<dyn Console>,
}

impl Screen {
    pub(crate) fn new(console: Arc<dyn Console>, color: Color, fixed_columns: Option<usize>) -> Self {
        Self { json: false, quiet: false, utc: false, color, fixed_columns, console }
    }

    /// The width: COLUMNS, else the terminal's, else 80.
    pub(crate) fn columns(&self) -> usize {
        self.fixed_columns.or_else(|| self.console.columns()).unwrap_or(80).clamp(30, 200)
    }

    /// The same for a page whose text must be complete: in a pipe, where no one has set COLUMNS, lines have any length.
    pub(crate) fn page_columns(&self) -> usize {
        let is_piped = self.fixed_columns.is_none() && !self.console.is_terminal(Stream::Output);
        if is_piped { usize::from(u16::MAX) } else { self.columns() }
    }

    pub(crate) fn local_time(&self) -> LocalTime {
        if self.utc { LocalTime::utc() } else { LocalTime::of_system() }
    }

    pub(crate) fn reply(&self, reply: &Reply) {
        if reply.written {
            return;
        }
        if self.json {
            let object = json!({"ok": true, "revision": reply.revision, "result": reply.result});
            self.out(&object.to_string());
        } else if !self.quiet && !reply.text.is_empty() {
            let text = reply.text.trim_end_matches('\n');
            match reply.sentences {
                true => self.out(&self.wrapped(Stream::Output, text)),
                false => self.out(text),
            }
        }
    }

    /// Reports the error of a command: to programs on standard output, to people on standard error.
    pub(crate) fn error(&self, error: &CommandError) {
        if self.json {
            let CommandError { code, message, hint, exit, details } = error;
            let mut error = json!({"code": code, "exit": exit.code(), "message": message, "hint": hint});
            if let serde_json::Value::Object(object) = &mut error {
                object.extend(details.clone());
            }
            self.out(&json!({"ok": false, "error": error}).to_string());
            return;
        }
        // Errors quote files, which can contain anything.
        let message = clean(&error.message);
        let message = if self.utc { message } else { self.local_time().in_text(&message) };
        self.note(&format!("{ERROR_START}{message}"));
        if let Some(hint) = &error.hint {
            self.note(&format!("{HINT_START}{hint}"));
        }
    }

    /// Writes a line to standard error, wrapped if that is a terminal.
    pub(crate) fn note(&self, text: &str) {
        // If standard error is closed, there is nowhere left to report it.
        let _ = self.write_line(Stream::Error, &self.wrapped(Stream::Error, text));
    }

    /// Sentences wrapped at words if the stream is a terminal; a program reads lines as they are.
    fn wrapped<'t>(&self, stream: Stream, text: &'t str) -> Cow<'t, str> {
        match self.console.is_terminal(stream) {
            true => wrap_sentences(text, self.columns()).into(),
            false => text.into(),
        }
    }

    /// Writes a line to standard output.
    pub(crate) fn out(&self, text: &str) {
        let _ = self.write_line(Stream::Output, text);
    }

    /// The text as a person sees it there.
    pub(crate) fn printable(&self, stream: Stream, text: &str) -> String {
        let colored = match self.color {
            Color::Auto => self.console.has_color(stream),
            Color::Always => true,
            Color::Never => false,
        };
        printable(text, colored)
    }

    fn write_line(&self, stream: Stream, text: &str) -> io::Result<()> {
        // The last place that everything passes: texts of agents and of files come from everywhere.
        let line = if self.json && stream == Stream::Output {
            printable_json(text)
        } else {
            self.printable(stream, text)
        };
        self.console.write(stream, &format!("{line}\n"))
    }

    /// Writes a line to standard output; false once its reader has closed it.
    pub(crate) fn stream(&self, text: &str) -> bool {
        (text.is_empty() || self.write_line(Stream::Output, text).is_ok()) && !self.console.is_closed()
    }
}

pub(crate) fn to_json(reply: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(reply).unwrap_or(serde_json::Value::Null)
}

//! What goes to the screen: text for people, one JSON object for programs. A closed pipe is no error.

use std::io::{self, Write};

use anstream::{AutoStream, ColorChoice};
use liza_core::model::{Fields, Value};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use super::error::CommandError;
use super::exit_code::Exit;
use super::input::clean;

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Color {
    /// In a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What a command has to tell.
#[derive(Debug, Clone, Default)]
pub(super) struct Reply {
    /// The revision that now stands.
    pub(super) revision: Option<u64>,
    /// For programs.
    pub(super) result: serde_json::Value,
    /// For people; may carry colour.
    pub(super) text: String,
    /// Whether all has been said already.
    pub(super) said: bool,
    /// How the program ends.
    pub(super) exit: Exit,
}

impl Reply {
    /// A reply with both faces.
    pub(super) fn new(text: impl Into<String>, result: serde_json::Value) -> Self {
        Self { revision: None, result, text: text.into(), said: false, exit: Exit::Success }
    }

    /// The end of a command that has told everything as it went.
    pub(super) fn said() -> Self {
        Self { said: true, ..Self::default() }
    }

    /// With another ending: it was told, and it is not good.
    #[must_use]
    pub(super) fn ending(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// At that revision.
    #[must_use]
    pub(super) fn at(mut self, revision: u64) -> Self {
        self.revision = Some(revision);
        self
    }
}

/// How and where to write.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Screen {
    /// One JSON object instead of text.
    pub(super) json: bool,
    /// No text on success.
    pub(super) quiet: bool,
    /// Colour.
    pub(super) color: Color,
}

impl Screen {
    fn choice(self) -> ColorChoice {
        match self.color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        }
    }

    /// Writes a command's reply to standard output.
    pub(super) fn reply(self, reply: &Reply) {
        if reply.said {
            return;
        }
        if self.json {
            let object = json!({"ok": true, "revision": reply.revision, "result": reply.result});
            self.out(&object.to_string());
        } else if !self.quiet && !reply.text.is_empty() {
            self.out(reply.text.trim_end_matches('\n'));
        }
    }

    /// Tells why a command failed: to programs on standard output, to people on standard error.
    pub(super) fn error(self, error: &CommandError) {
        if self.json {
            let CommandError { code, message, hint, exit, details } = error;
            let mut error = json!({"code": code, "exit": exit.code(), "message": message, "hint": hint});
            if let serde_json::Value::Object(object) = &mut error {
                object.extend(details.clone());
            }
            self.out(&json!({"ok": false, "error": error}).to_string());
            return;
        }
        // Errors quote what anybody may have written into a file.
        self.note(&format!("liza: {}", clean(&error.message)));
        if let Some(hint) = &error.hint {
            self.note(&format!("  hint: {hint}"));
        }
    }

    /// Tells something on the side, on standard error.
    pub(super) fn note(self, text: &str) {
        // Whoever closed the pipe does not want to hear more; there is nobody to tell about it.
        let _ = writeln!(AutoStream::new(io::stderr().lock(), self.choice()), "{text}");
    }

    /// Writes a line to standard output.
    pub(super) fn out(self, text: &str) {
        let _ = self.write(text);
    }

    fn write(self, text: &str) -> io::Result<()> {
        let mut out = AutoStream::new(io::stdout().lock(), self.choice());
        writeln!(out, "{text}").and_then(|()| out.flush())
    }

    /// Writes what there is to standard output; false when nobody listens any more.
    pub(super) fn stream(self, text: &str) -> bool {
        (text.is_empty() || self.write(text).is_ok()) && !reader_is_gone()
    }
}

/// Whether the other end of a pipe has been closed: nothing need be written to notice.
fn reader_is_gone() -> bool {
    let out = io::stdout();
    let mut pipe = [PollFd::new(&out, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let told = matches!(poll(&mut pipe, Some(&now)), Ok(1));
    told && pipe[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// The blackboard's values as JSON.
pub(super) fn to_json(fields: &Fields) -> serde_json::Value {
    serde_json::to_value(Value::Map(fields.clone())).unwrap_or(serde_json::Value::Null)
}

/// One value of a reply as a word for people; empty where it says none.
pub(super) fn word(reply: &Fields, key: &str) -> String {
    reply.get(key).map(ToString::to_string).unwrap_or_default()
}

//! The streams of a command that a supervisor executes for a session, or a screen for its person: everything
//! is kept until the command has ended, so that no lock is held while a session reads slowly. They lead to no
//! terminal, but report the width and the colours of the one that shows the text later.

use std::io;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use liza_team::channel::{TerminalFacts, WrittenTo};

use crate::cli::ui::console::{Console, OwnTerminal, Stream};

pub(in crate::cli) struct BufferConsole {
    input: String,
    terminal: TerminalFacts,
    written: Mutex<Vec<(WrittenTo, String)>>,
}

impl BufferConsole {
    pub(in crate::cli) fn new(input: String, terminal: TerminalFacts) -> Self {
        Self { input, terminal, written: Mutex::default() }
    }

    /// The written texts, in their order.
    pub(in crate::cli) fn take(&self) -> Vec<(WrittenTo, String)> {
        std::mem::take(&mut *self.written.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Console for BufferConsole {
    fn read_input(&self, limit: u64) -> io::Result<Vec<u8>> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).min(self.input.len());
        Ok(self.input.as_bytes().get(..limit).unwrap_or_default().to_vec())
    }

    fn read_line(&self) -> io::Result<String> {
        Ok(self.input.lines().next().unwrap_or_default().to_owned())
    }

    fn write(&self, stream: Stream, text: &str) -> io::Result<()> {
        let to = match stream {
            Stream::Output => WrittenTo::Output,
            Stream::Error => WrittenTo::Error,
            Stream::Input => return Err(io::ErrorKind::Unsupported.into()),
        };
        self.written.lock().unwrap_or_else(PoisonError::into_inner).push((to, text.to_owned()));
        Ok(())
    }

    fn is_terminal(&self, stream: Stream) -> bool {
        match stream {
            Stream::Output => self.terminal.output,
            Stream::Input | Stream::Error => false,
        }
    }

    fn is_file(&self, _: Stream) -> bool {
        false
    }

    fn is_pipe(&self) -> bool {
        false
    }

    fn has_color(&self, stream: Stream) -> bool {
        match stream {
            Stream::Output => self.terminal.color,
            Stream::Error => self.terminal.error_color,
            Stream::Input => false,
        }
    }

    fn columns(&self) -> Option<usize> {
        self.terminal.columns
    }

    fn terminal(&self) -> String {
        "unknown".to_owned()
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn for_child(&self, _: Stream) -> io::Result<Stdio> {
        Err(io::Error::other("a command of a session, a screen or a page starts no program here"))
    }

    fn own_terminal(&self) -> Option<OwnTerminal> {
        None
    }
}

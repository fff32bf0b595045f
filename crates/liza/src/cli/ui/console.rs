//! The streams of a command. The process's own streams are one console; a session's channel is another.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};

use anstream::{AutoStream, ColorChoice};
use liza_sandbox::sys::process::terminal_name;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Input,
    Output,
    Error,
}

/// The input and output of a command.
pub(crate) trait Console: Send + Sync {
    /// Reads all of standard input, at most `limit` bytes.
    fn read_input(&self, limit: u64) -> io::Result<Vec<u8>>;
    /// Reads one line of standard input; empty at the end of the input.
    fn read_line(&self) -> io::Result<String>;
    /// Writes text to standard output or standard error, as it is.
    fn write(&self, stream: Stream, text: &str) -> io::Result<()>;
    fn is_terminal(&self, stream: Stream) -> bool;
    /// True if the stream is a file on a disk.
    fn is_file(&self, stream: Stream) -> bool;
    /// True if standard output is a pipe. A socket is none: it can be closed for input only.
    fn is_pipe(&self) -> bool;
    /// True if text to that stream is coloured unless the caller says otherwise.
    fn has_color(&self, stream: Stream) -> bool;
    /// The columns of the terminal; `None` if they are not known.
    fn columns(&self) -> Option<usize>;
    /// The name of the terminal, or `unknown`.
    fn terminal(&self) -> String;
    /// True if the reader of standard output has closed it. Writes nothing.
    fn is_closed(&self) -> bool;
    fn for_child(&self, stream: Stream) -> io::Result<Stdio>;
    /// The terminal that a pager may take over. A console that keeps its text has none: a screen, a page in
    /// the browser and a session get the text.
    fn own_terminal(&self) -> Option<OwnTerminal>;
}

/// The right to let a program draw on this process's terminal and read its keys. Only [`ProcessConsole`] gives it.
#[derive(Debug)]
pub(crate) struct OwnTerminal(());

impl OwnTerminal {
    /// Starts a program that draws its input on the terminal.
    pub(crate) fn start(&self, command: &mut Command) -> io::Result<Child> {
        command.stdin(Stdio::piped()).stdout(Stdio::inherit()).stderr(Stdio::inherit()).spawn()
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProcessConsole;

impl Console for ProcessConsole {
    fn read_input(&self, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn read_line(&self) -> io::Result<String> {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        Ok(line)
    }

    fn write(&self, stream: Stream, text: &str) -> io::Result<()> {
        match stream {
            Stream::Output => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
            Stream::Error => io::stderr().lock().write_all(text.as_bytes()),
            Stream::Input => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn is_terminal(&self, stream: Stream) -> bool {
        match stream {
            Stream::Input => io::stdin().is_terminal(),
            Stream::Output => io::stdout().is_terminal(),
            Stream::Error => io::stderr().is_terminal(),
        }
    }

    fn is_file(&self, stream: Stream) -> bool {
        let kind = |status: rustix::io::Result<rustix::fs::Stat>| {
            status.is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::RegularFile)
        };
        match stream {
            Stream::Input => kind(fstat(io::stdin())),
            Stream::Output => kind(fstat(io::stdout())),
            Stream::Error => kind(fstat(io::stderr())),
        }
    }

    fn is_pipe(&self) -> bool {
        fstat(io::stdout()).is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Fifo)
    }

    fn has_color(&self, stream: Stream) -> bool {
        let choice = match stream {
            Stream::Output => AutoStream::choice(&io::stdout()),
            Stream::Error => AutoStream::choice(&io::stderr()),
            Stream::Input => ColorChoice::Never,
        };
        choice != ColorChoice::Never
    }

    fn columns(&self) -> Option<usize> {
        let out = io::stdout();
        let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(&out).ok()).flatten();
        size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
    }

    fn terminal(&self) -> String {
        terminal_name()
    }

    fn is_closed(&self) -> bool {
        let out = io::stdout();
        let mut pipe = [PollFd::new(&out, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let polled = matches!(poll(&mut pipe, Some(&now)), Ok(1));
        polled && pipe[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }

    fn for_child(&self, stream: Stream) -> io::Result<Stdio> {
        let descriptor = match stream {
            Stream::Input => io::stdin().as_fd().try_clone_to_owned(),
            Stream::Output => io::stdout().as_fd().try_clone_to_owned(),
            Stream::Error => io::stderr().as_fd().try_clone_to_owned(),
        };
        Ok(descriptor?.into())
    }

    fn own_terminal(&self) -> Option<OwnTerminal> {
        io::stdout().is_terminal().then_some(OwnTerminal(()))
    }
}

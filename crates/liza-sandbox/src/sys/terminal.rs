//! The terminal of a program that a person talks with: a pseudo terminal of its own, whose bytes are copied to the person's
//! terminal and back. No program of an agent ever holds that one.
#![allow(unsafe_code, reason = "a new process has to lead its terminal; the block says why it is sound")]

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{getpgrp, ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    Action, OptionalActions, QueueSelector, Termios, tcflow, tcflush, tcgetattr, tcgetpgrp, tcgetwinsize,
    tcsetattr, tcsetwinsize,
};
use signal_hook::consts::SIGWINCH;

/// What a program may have left on, off again: an unfinished sequence, modes and margins (a soft reset), the other screen, mouse
/// and paste reports, a hidden cursor, other codes for keys, keys that type words, other characters.
const RESET: &str = "\x1b\\\x1b[!p\x1b[?1047l\x1b[?9;1000;1001;1002;1003;1004;1005;1006;1015;1016;2004l\x1b[?7;25h\
    \x1b[>4m\x1b[<99u\x1bP0|\x1b\\\x1b(B\x0f";

/// Asks a terminal for its state, and its answer. It answers in order, so whatever it was asked before is answered then.
const ASK: &str = "\x1b[5n";
const ANSWER: &[u8] = b"\x1b[0n";

/// The longest time for that answer, and the silence after it: a program may have asked the same.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
const SILENCE: Duration = Duration::from_millis(100);

/// The longest time for the last output, to a terminal that may be stopped.
const OUTPUT_LIMIT: Duration = Duration::from_secs(2);

/// The pause between two looks whether a program has stopped the output of its terminal.
const LOOK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The terminal of this process; dropping it puts its modes back, and resets it if they were changed.
#[derive(Debug)]
pub struct PersonsTerminal {
    terminal: File,
    settings: Termios,
}

impl PersonsTerminal {
    /// `None` without a terminal, or if this process is in the background.
    pub fn open() -> Option<Self> {
        // Opened anew: with the flags of this process only, and never waiting.
        let terminal = File::from(open("/dev/tty", flags() | OFlags::NONBLOCK, Mode::empty()).ok()?);
        let settings = tcgetattr(&terminal).ok()?;
        let is_ours = tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp());
        is_ours.then_some(Self { terminal, settings })
    }

    fn make_raw(&self) -> io::Result<()> {
        let mut raw = self.settings.clone();
        raw.make_raw();
        Ok(tcsetattr(&self.terminal, OptionalActions::Now, &raw)?)
    }

    /// Resets the terminal, and reads what it answers to programs that have ended: the person's shell would take it for typed words.
    fn reset(&self) -> io::Result<()> {
        if std::env::var_os("TERM").is_some_and(|name| name != "dumb") {
            self.write_all([RESET, ASK].concat().as_bytes(), Instant::now() + OUTPUT_LIMIT)?;
            self.read_answers()?;
        }
        Ok(tcflush(&self.terminal, QueueSelector::IFlush)?)
    }

    fn write_all(&self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            if !self.waits_for(PollFlags::OUT, deadline.saturating_duration_since(Instant::now()))? {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let written = would_block((&self.terminal).write(bytes))?.unwrap_or(0);
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    fn read_answers(&self) -> io::Result<()> {
        let (begun, mut read) = (Instant::now(), Vec::new());
        while begun.elapsed() < ANSWER_LIMIT {
            let is_answered = read.windows(ANSWER.len()).any(|part| part == ANSWER);
            let limit = if is_answered { SILENCE } else { ANSWER_LIMIT.saturating_sub(begun.elapsed()) };
            if !self.waits_for(PollFlags::IN, limit)? || !fill(&self.terminal, &mut read)? {
                break;
            }
        }
        Ok(())
    }

    /// False if nothing of it comes within `limit`.
    fn waits_for(&self, what: PollFlags, limit: Duration) -> io::Result<bool> {
        let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
        Ok(poll(&mut [PollFd::new(&self.terminal, what)], Some(&limit))? > 0)
    }
}

impl Drop for PersonsTerminal {
    fn drop(&mut self) {
        // Errors mean that the terminal is gone.
        let Ok(now) = tcgetattr(&self.terminal) else { return };
        if now.local_modes != self.settings.local_modes {
            let _ = self.reset();
            let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.settings);
        }
    }
}

/// A new terminal for a program, with the modes and the size of the person's.
#[derive(Debug)]
pub struct OwnTerminal {
    person: PersonsTerminal,
    /// The end that Liza reads and writes.
    ours: File,
    /// The end of the program.
    theirs: OwnedFd,
}

impl OwnTerminal {
    pub fn new(person: PersonsTerminal) -> io::Result<Self> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        fcntl_setfd(&ours, FdFlags::CLOEXEC)?;
        fcntl_setfl(&ours, OFlags::NONBLOCK)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let theirs = open(ptsname(&ours, Vec::new())?, flags(), Mode::empty())?;
        tcsetattr(&theirs, OptionalActions::Now, &person.settings)?;
        tcsetwinsize(&theirs, tcgetwinsize(&person.terminal)?)?;
        Ok(Self { person, ours: ours.into(), theirs })
    }

    /// Makes it the output of a stage, which makes it the terminal of its program.
    pub fn connect(&self, command: &mut Command) -> io::Result<()> {
        command.stdout(self.theirs.try_clone()?).stderr(self.theirs.try_clone()?);
        Ok(())
    }

    /// Makes it the terminal of a program that no stage starts.
    pub fn lead(&self, command: &mut Command) -> io::Result<()> {
        self.connect(command)?;
        command.stdin(Stdio::from(self.theirs.try_clone()?));
        // SAFETY: between fork and exec only two system calls are made, which take no lock and no memory.
        unsafe { command.pre_exec(lead_terminal) };
        Ok(())
    }

    /// Copies from now on, in a thread, until the result is dropped. The person's terminal is then as it was before.
    pub fn copy(self) -> io::Result<CopiedTerminal> {
        let ((resized, signal), (ended, end)) = (UnixStream::pair()?, io::pipe()?);
        resized.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGWINCH, signal)?;
        self.person.make_raw()?;
        let thread = thread::spawn(move || {
            // Errors mean that the person's terminal is gone; the program's goes with it.
            let _ = self.copy_until(&ended, &resized).and_then(|()| self.copy_rest());
        });
        Ok(CopiedTerminal { end: Some(end), thread: Some(thread) })
    }

    fn copy_until(&self, ended: &io::PipeReader, mut resized: &UnixStream) -> io::Result<()> {
        let (mut typed, mut shown) = (Vec::new(), Vec::new());
        // Reads only what can be written: who writes too much has to wait, and nobody else.
        let wanted = |read: &[u8], to_write: &[u8]| {
            let reads = if read.is_empty() { PollFlags::IN } else { PollFlags::empty() };
            if to_write.is_empty() { reads } else { reads | PollFlags::OUT }
        };
        loop {
            let mut ready = [
                PollFd::new(&self.person.terminal, wanted(&typed, &shown)),
                PollFd::new(&self.ours, wanted(&shown, &typed)),
                PollFd::new(resized, PollFlags::IN),
                PollFd::new(ended, PollFlags::IN),
            ];
            match poll(&mut ready, Some(&LOOK)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let [person, _, _, is_over] = ready.each_ref().map(|end| !end.revents().is_empty());
            if person && ready[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            // Only the person stops the output (Ctrl-S): what a program stopped, no key would start again.
            let _ = tcflow(&self.theirs, Action::OOn);
            if would_block(resized.read(&mut [0; 64]))?.is_some() {
                tcsetwinsize(&self.ours, tcgetwinsize(&self.person.terminal)?)?;
            }
            pass(&self.person.terminal, &self.ours, &mut typed)?;
            pass(&self.ours, &self.person.terminal, &mut shown)?;
            if is_over {
                return self.person.write_all(&shown, Instant::now() + OUTPUT_LIMIT);
            }
        }
    }

    /// Copies what was written before the end.
    fn copy_rest(&self) -> io::Result<()> {
        let (mut shown, deadline) = (Vec::new(), Instant::now() + OUTPUT_LIMIT);
        while fill(&self.ours, &mut shown)? && Instant::now() < deadline {
            self.person.write_all(&shown, deadline)?;
            shown.clear();
        }
        Ok(())
    }
}

/// A terminal while it is copied.
#[derive(Debug)]
pub struct CopiedTerminal {
    end: Option<io::PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for CopiedTerminal {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn flags() -> OFlags {
    OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC
}

/// Reads one part if the last one was written, and writes what it can.
fn pass(from: &File, mut to: &File, bytes: &mut Vec<u8>) -> io::Result<()> {
    if bytes.is_empty() && fill(from, bytes)? && bytes.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if !bytes.is_empty() {
        let written = would_block(to.write(bytes))?.unwrap_or(0);
        bytes.drain(..written);
    }
    Ok(())
}

/// Reads one part; false if nothing is there.
fn fill(mut from: &File, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let mut part = [0; 4096];
    let Some(length) = would_block(from.read(&mut part))? else { return Ok(false) };
    bytes.extend_from_slice(part.get(..length).unwrap_or_default());
    Ok(true)
}

/// `None` if the call would have had to wait.
fn would_block(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        result => result.map(Some),
    }
}

/// The terminal that is the output of this process, for its input; nothing if it is none.
pub(crate) fn input_from_output() -> io::Result<File> {
    let output = rustix::stdio::stdout();
    match rustix::termios::isatty(output) {
        true => Ok(output.try_clone_to_owned()?.into()),
        false => File::open(Path::new("/dev/null")),
    }
}

/// Makes this process lead the terminal on its standard input, with job control.
pub(crate) fn lead_terminal() -> io::Result<()> {
    // Fails for a process that leads a session already.
    let _ = setsid();
    Ok(ioctl_tiocsctty(rustix::stdio::stdin())?)
}

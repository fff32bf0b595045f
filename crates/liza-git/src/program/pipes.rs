//! Writes to and reads from a running git at the same time, so that neither side blocks.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// More output than this means that the command was wrong.
const STDOUT_CAP: usize = 256 << 20;

/// The beginning of an error message is enough.
const STDERR_CAP: usize = 64 << 10;

pub(crate) struct Pipes<'a> {
    stdin: Option<ChildStdin>,
    unsent: &'a [u8],
    stdout: CappedReader,
    stderr: CappedReader,
}

struct CappedReader {
    /// `None` when it is closed.
    source: Option<Box<dyn OutputPipe>>,
    bytes: Vec<u8>,
    cap: usize,
    /// More than `cap` is an error; otherwise the rest is dropped.
    strict: bool,
}

trait OutputPipe: Read + AsFd {}
impl<T: Read + AsFd> OutputPipe for T {}

impl<'a> Pipes<'a> {
    /// Takes the pipes of `child`, which will read `input`; reads at most `wanted` bytes of its output.
    pub(crate) fn new(child: &mut Child, input: &'a [u8], wanted: Option<usize>) -> Self {
        let reader = |source, cap, strict| CappedReader { source, bytes: Vec::new(), cap, strict };
        let out = child.stdout.take().map(|out| Box::new(out) as Box<dyn OutputPipe>);
        let error = child.stderr.take().map(|error| Box::new(error) as Box<dyn OutputPipe>);
        Self {
            stdin: child.stdin.take(),
            unsent: input,
            stdout: reader(out, wanted.unwrap_or(STDOUT_CAP), wanted.is_none()),
            stderr: reader(error, STDERR_CAP, false),
        }
    }

    /// Reads and writes until both outputs are closed, git has ended, or the deadline has passed.
    pub(crate) fn transfer(mut self, child: &mut Child, deadline: Instant) -> io::Result<Self> {
        while self.is_open() {
            let now = Instant::now();
            if now >= deadline {
                break;
            }
            let idle = !self.step((deadline - now).min(Duration::from_millis(100)))?;
            // A background process of a hook may hold the pipes open forever.
            if idle && child.try_wait()?.is_some() {
                // Reads the output between the two checks.
                while self.is_open() && Instant::now() < deadline && self.step(Duration::ZERO)? {}
                break;
            }
        }
        Ok(self)
    }

    fn is_open(&self) -> bool {
        self.stdout.source.is_some() || self.stderr.source.is_some()
    }

    /// Transfers ready bytes; false if none are ready within `timeout`.
    fn step(&mut self, timeout: Duration) -> io::Result<bool> {
        let (mut read_stdout, mut read_stderr, mut write) = (false, false, false);
        {
            let mut fds = Vec::with_capacity(3);
            let mut flags = Vec::with_capacity(3);
            if let Some(source) = &self.stdout.source {
                fds.push(PollFd::from_borrowed_fd(source.as_fd(), PollFlags::IN));
                flags.push(&mut read_stdout);
            }
            if let Some(source) = &self.stderr.source {
                fds.push(PollFd::from_borrowed_fd(source.as_fd(), PollFlags::IN));
                flags.push(&mut read_stderr);
            }
            if let Some(stdin) = &self.stdin {
                fds.push(PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::OUT));
                flags.push(&mut write);
            }
            let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(timeout.subsec_nanos()) };
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) => return Ok(false),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            flags.into_iter().zip(&fds).for_each(|(flag, fd)| *flag = !fd.revents().is_empty());
        }
        if read_stdout {
            self.stdout.read()?;
        }
        if read_stderr {
            self.stderr.read()?;
        }
        if write {
            self.write();
        }
        Ok(true)
    }

    /// Writes a piece small enough that a ready pipe takes it without blocking.
    fn write(&mut self) {
        let (piece, rest) = self.unsent.split_at(self.unsent.len().min(512));
        let sent = self.stdin.as_mut().is_some_and(|stdin| stdin.write_all(piece).is_ok());
        self.unsent = rest;
        // A git that stopped reading reports the reason itself.
        if !sent || rest.is_empty() {
            self.stdin = None;
        }
    }

    /// Standard output and standard error.
    pub(crate) fn into_bytes(self) -> (Vec<u8>, Vec<u8>) {
        (self.stdout.bytes, self.stderr.bytes)
    }
}

impl CappedReader {
    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        let Some(source) = self.source.as_mut() else { return Ok(()) };
        match source.read(&mut buffer) {
            Ok(0) => self.source = None,
            Ok(count) => {
                let room = self.cap.saturating_sub(self.bytes.len());
                if self.strict && count > room {
                    return Err(io::Error::other(format!("git wrote more than {} bytes", self.cap)));
                }
                self.bytes.extend_from_slice(&buffer[..count.min(room)]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

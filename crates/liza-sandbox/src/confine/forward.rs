//! The person's end of a port in a room: a process of its own serves it, since a process that has several threads cannot
//! enter a room's network.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::sys::confinement::forward;

use super::exits::NOT_STARTED;
use super::level::RecordedSession;
use super::start::STAGE;

/// The option that makes `liza confine` such a process; the process in the room with its identity, and the port there follow.
const FORWARD: &str = "--forward";

/// Dropping it closes the port.
#[derive(Debug)]
pub struct Forwarding {
    server: Child,
    lines: BufReader<ChildStdout>,
}

impl Forwarding {
    /// Leads what connects to the listener to that port in the room of a process.
    pub fn start(liza: &Path, listener: TcpListener, of: &RecordedSession, port: u16) -> io::Result<Self> {
        let mut command = Command::new(liza);
        let identity = of.identity.as_deref().unwrap_or_default();
        command.args([STAGE, FORWARD, &format!("{} {identity}", of.process), &port.to_string()]);
        command.stdin(OwnedFd::from(listener)).stdout(Stdio::piped());
        let mut server = command.spawn()?;
        drop(command);
        let lines = server.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut forwarding = Self { server, lines: BufReader::new(lines) };
        match forwarding.next_line()?.as_deref() {
            Some("") => Ok(forwarding),
            Some(why) => Err(io::Error::other(why.to_owned())),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Waits until the process in the room has ended; calls `refused` when nothing listens there.
    pub fn wait(mut self, mut refused: impl FnMut()) -> io::Result<()> {
        while self.next_line()?.is_some() {
            refused();
        }
        Ok(())
    }

    fn next_line(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        Ok(line.strip_suffix('\n').map(str::to_owned))
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The process with its identity, and the port, in the arguments of such a process; `None` for others.
pub fn forwarded(arguments: &[OsString]) -> Option<((u32, &str), u16)> {
    let [_, verb, option, process, port] = arguments else { return None };
    let is_one = verb == STAGE && option == FORWARD;
    let (process, identity) = process.to_str()?.split_once(' ')?;
    Some(((process.parse().ok()?, identity), port.to_str()?.parse().ok()?)).filter(|_| is_one)
}

/// Serves the listener on standard input; returns the exit code.
pub fn serve_forward(process: (u32, &str), port: u16) -> u8 {
    let served = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)
        .map_err(io::Error::from)
        .and_then(|listener| forward(TcpListener::from(listener), process, port, io::stdout()));
    match served {
        Ok(()) => 0,
        Err(error) => {
            use std::io::Write as _;
            let _ = writeln!(io::stdout(), "{}", error.to_string().replace('\n', " "));
            NOT_STARTED
        }
    }
}

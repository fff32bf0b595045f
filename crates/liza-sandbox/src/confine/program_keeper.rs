//! Runs between Liza and a confined program: starts the stage, adopts every orphan, and ends with the last of
//! them.
//!
//! Without it, an orphan that has cleared its environment and left its group would not be found, and would go
//! on when the checkout is restored or removed. The order arrives on standard input, whose other end only
//! Liza holds: when that closes, even because Liza has ended, the program is killed.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::sys::family::{ProcessFamily, ScopedFamily};

use super::environment::Variable;
use super::exits::{NOT_STARTED, exit_as};
use super::stage::{StageOrder, take_socket};
use super::start::{STAGE, stage_command, wrapped};

/// The session around has its own limit.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The option that makes `liza confine` a keeper.
pub const KEEP: &str = "--keep";

/// Liza's end of the connection to a keeper; dropping it ends the program.
#[derive(Debug)]
pub(super) struct KeeperSocket(UnixStream);

/// The command that starts a keeper, and the socket for its order. Folder, environment and output of the
/// command become the program's. Drop the command after spawning: it holds the other end.
pub(super) fn keeper_command(wrapper: &[String], liza: &Path) -> io::Result<(Command, KeeperSocket)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = wrapped(wrapper, liza.as_os_str());
    command.args([STAGE, KEEP]).stdin(Stdio::from(OwnedFd::from(theirs)));
    Ok((command, KeeperSocket(ours)))
}

impl KeeperSocket {
    /// Sends the order, and waits until the program runs.
    pub(super) fn start(&mut self, order: &StageOrder) -> io::Result<()> {
        let line = serde_json::to_string(order).map_err(io::Error::other)?;
        writeln!(self.0, "{line}")?;
        let mut answer = String::new();
        BufReader::new(&self.0).read_line(&mut answer)?;
        match answer.strip_suffix('\n') {
            Some("") => Ok(()),
            Some(problem) => Err(io::Error::other(problem.to_owned())),
            None => Err(io::Error::other("the keeper of a program ended early")),
        }
    }
}

/// The runner in front of a kept program's keeper, and the environment and output of both.
#[derive(Debug)]
pub struct KeptStreams {
    pub wrapper: Vec<String>,
    pub environment: Vec<Variable>,
    pub streams: [OwnedFd; 2],
}

/// Runs a confined program below a keeper to its end, or until it is cancelled.
pub fn run_kept(
    liza: &Path,
    order: &StageOrder,
    kept: KeptStreams,
    is_cancelled: impl Fn() -> bool,
) -> io::Result<ExitStatus> {
    let (mut command, mut keeper) = keeper_command(&kept.wrapper, liza)?;
    let [output, errors] = kept.streams;
    command.current_dir("/").env_clear().envs(kept.environment).stdout(output).stderr(errors);
    // A runner in front of the keeper may end before it.
    let start = if kept.wrapper.is_empty() { ScopedFamily::of_keeper } else { ScopedFamily::spawn };
    let family = start(&mut command)?;
    // It holds an end of the connection, and the streams.
    drop(command);
    keeper.start(order)?;
    let ended = family.finish_unless(Instant::now() + FOREVER, is_cancelled, || drop(keeper))?;
    ended.ok_or_else(|| io::ErrorKind::Interrupted.into())
}

/// Runs the order that arrives on standard input; returns the exit code of the program.
pub fn serve_keeper() -> u8 {
    let Ok(mut caller) = take_socket() else { return NOT_STARTED };
    match start(&caller) {
        Ok(family) => {
            let _ = writeln!(caller);
            end_with_caller(caller, family.clone());
            exit_as(family.wait_for_all())
        }
        Err(error) => {
            let _ = writeln!(caller, "{}", error.to_string().replace('\n', " "));
            NOT_STARTED
        }
    }
}

fn start(caller: &UnixStream) -> io::Result<ProcessFamily> {
    // The program must not hold the connection open.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let mut line = String::new();
    BufReader::new(caller).read_line(&mut line)?;
    let order: StageOrder = serde_json::from_str(&line).map_err(io::Error::other)?;
    let (mut command, socket) = stage_command(std::env::current_exe()?)?;
    let family = ProcessFamily::spawn(&mut command, false)?;
    drop(command);
    if let Err(error) = socket.start_kept(&order) {
        family.kill();
        family.wait_for_all();
        return Err(error);
    }
    Ok(family)
}

/// Kills the program as soon as the caller has closed its end.
fn end_with_caller(mut caller: UnixStream, family: ProcessFamily) {
    thread::spawn(move || {
        // It sends nothing more.
        let _ = caller.read(&mut [0]);
        family.kill();
    });
}

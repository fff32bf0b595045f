//! Starts a program through the stage, and finds out the level without starting one.

use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::level::Level;
use super::plan::Plan;
use super::stage::{StageInput, StageOrder, StageReport};

/// The command of the stage.
const STAGE: &str = "confine";

/// How long the stage may take; it opens some hundred folders.
const STAGE_LIMIT: Duration = Duration::from_secs(30);

/// The parent's end of the socket.
#[derive(Debug)]
pub(crate) struct StageSocket(UnixStream);

/// The command that starts the stage, and the socket for its order. Folder, environment and output of the command become
/// the program's. Drop the command after it was spawned: it holds the other end.
pub(crate) fn stage_command(liza: impl AsRef<OsStr>) -> io::Result<(Command, StageSocket)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(STAGE_LIMIT))?;
    ours.set_write_timeout(Some(STAGE_LIMIT))?;
    let mut command = Command::new(liza);
    command.arg(STAGE).stdin(Stdio::from(OwnedFd::from(theirs)));
    Ok((command, StageSocket(ours)))
}

impl StageSocket {
    /// Sends the order to the stage that was spawned, and waits until it has become the program.
    ///
    /// # Errors
    ///
    /// When the stage or the program could not be started, or the level is too low.
    pub(crate) fn start(mut self, order: &StageOrder) -> io::Result<Level> {
        let line = serde_json::to_string(order).map_err(io::Error::other)?;
        writeln!(self.0, "{line}")?;
        let mut started = None;
        for line in BufReader::new(self.0).lines() {
            match serde_json::from_str(&line?).map_err(io::Error::other)? {
                StageReport::Started(level) => started = Some(level),
                StageReport::TooLow(level) => return Err(io::Error::other(too_low(&level))),
                StageReport::Failed(why) => return Err(io::Error::other(why)),
            }
        }
        started.ok_or_else(|| io::Error::other("the confinement stage ended early"))
    }
}

/// Why a session does not start.
pub(crate) fn too_low(level: &Level) -> String {
    format!("the confinement would be {level}, and config.sandbox is require")
}

/// The level that a plan reaches here.
///
/// # Errors
///
/// When the stage cannot be started.
pub(crate) fn probe(liza: &Path, plan: Plan) -> io::Result<Level> {
    let (mut command, socket) = stage_command(liza)?;
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    drop(command);
    let order =
        StageOrder { plan, minimum: None, program: None, arguments: Vec::new(), input: StageInput::Nothing };
    let level = socket.start(&order);
    let _ = child.wait();
    level
}

//! `liza check` in a process that nothing above it can end before the code under test has ended.
//!
//! An impatient client kills a command with its process group, or with all its descendants; code under test
//! can hang to be killed so. The keeper is in neither: it has its own session, and its parent has ended. When
//! the command that the client started ends, the keeper ends the code under test.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread;

use liza_sandbox::sys::family::ProcessFamily;

use crate::project::identity::check_arguments;

pub fn run_kept(liza: &Path, root: &Path, command: &[OsString]) -> io::Result<u8> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let mut middle = Command::new(liza);
    middle.args(check_arguments(root)).arg(DETACH).arg("--").args(command);
    middle.stdin(OwnedFd::from(theirs));
    let mut child = middle.spawn()?;
    // It holds the keeper's end of the connection.
    drop(middle);
    child.wait()?;
    let mut code = [0];
    match ours.read_exact(&mut code) {
        Ok(()) => Ok(code[0]),
        // The keeper has reported the reason.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(1),
        Err(error) => Err(error),
    }
}

/// The option of the process between the command and its keeper, which ends at once.
const DETACH: &str = "--detach";

/// Starts the keeper with this process's standard input, its connection to the command, and leaves it alone.
pub fn detach(liza: &Path, root: &Path, command: &[OsString]) -> io::Result<()> {
    // Not a group leader: its parent has just started it.
    let _ = rustix::process::setsid();
    Command::new(liza).args(check_arguments(root)).arg("--").args(command).spawn().map(drop)
}

/// The connection of a keeper to the command that it works for.
pub struct Caller(UnixStream);

impl Caller {
    pub fn of_this_process() -> io::Result<Self> {
        Ok(Self(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?)))
    }

    /// Ends the family as soon as the command has ended.
    pub fn watch(&self, family: &ProcessFamily) -> io::Result<()> {
        let (mut caller, family) = (self.0.try_clone()?, family.clone());
        thread::spawn(move || {
            // It never sends anything.
            let _ = caller.read(&mut [0]);
            family.kill();
        });
        Ok(())
    }

    /// Reports the exit code of the code under test; the caller may be gone.
    pub fn answer(mut self, code: u8) {
        let _ = self.0.write_all(&[code]);
    }
}

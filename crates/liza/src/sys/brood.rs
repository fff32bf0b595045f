//! Everything that descends from one program that this process has started: to be signalled and waited for as one.
//!
//! For a process that does nothing else, since it takes the end of every child for itself. Signals nothing but its
//! own descendants.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, setsid, wait};

use super::process::{MARK, pid};
use super::system;

/// How hard a brood is told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// Asked (SIGTERM).
    Ask,
    /// Ended (SIGKILL).
    End,
}

/// How the program itself ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// What waiting for a brood brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaped {
    /// The program itself ended.
    Program(Exit),
    /// A descendant ended that had been left to us.
    Other,
    /// Nothing is left.
    None,
}

/// A program and all that descends from it.
#[derive(Debug, Clone)]
pub struct Brood {
    program: Pid,
    mark: String,
    /// Whether the program leads a group of its own, which can then be signalled as a whole.
    leads: bool,
}

impl Brood {
    /// Starts the command. `apart` gives it a process group of its own, and this process a session without a terminal.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn spawn(command: &mut Command, apart: bool) -> io::Result<Self> {
        system::adopt_orphans();
        let mark = format!("{}-session", std::process::id());
        command.env(MARK, &mark);
        if apart {
            // Refused to the leader of a group, which is then apart already.
            let _ = setsid();
            command.process_group(0);
        }
        // Never waited for through the handle: `reap` does, for all.
        let id = command.spawn()?.id();
        let program = pid(id).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { program, mark: format!("{MARK}={mark}"), leads: apart })
    }

    /// The program's number.
    pub fn id(&self) -> u32 {
        self.program.as_raw_nonzero().get().unsigned_abs()
    }

    /// Signals every descendant, wherever it has gone.
    pub fn signal(&self, force: Force) {
        let signal = match force {
            Force::Ask => Signal::TERM,
            Force::End => Signal::KILL,
        };
        // Looked for first: once a parent is dead, its children are no longer found by descent.
        let members = system::members(&self.mark, std::process::id());
        // What has ended by itself is what we want.
        if self.leads {
            let _ = kill_process_group(self.program, signal);
        } else {
            let _ = kill_process(self.program, signal);
        }
        let in_group = |id: &Pid| self.leads && rustix::process::getpgid(Some(*id)) == Ok(self.program);
        for id in members.into_iter().filter_map(pid).filter(|id| !in_group(id)) {
            let _ = kill_process(id, signal);
        }
    }

    /// Waits until some descendant ends; for one thread only.
    pub fn reap(&self) -> Reaped {
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((ended, status))) if ended == self.program => {
                    let signal = status.terminating_signal().map(Exit::Signal);
                    let code = status.exit_status().map(Exit::Code);
                    return Reaped::Program(code.or(signal).unwrap_or(Exit::Code(-1)));
                }
                Ok(Some(_)) => return Reaped::Other,
                Ok(None) | Err(Errno::INTR) => {}
                Err(_) => return Reaped::None,
            }
        }
    }
}

/// Ends what is left of the broods of a process that is gone, wherever they are; says how many processes that were.
pub fn end_brood_of(owner: u32) -> usize {
    let mark = format!("{MARK}={owner}-session");
    let mut ended = 0;
    for _ in 0..200 {
        let members = system::members(&mark, owner);
        if members.is_empty() {
            break;
        }
        ended += members.len();
        for id in members.into_iter().filter_map(pid) {
            let _ = kill_process(id, Signal::KILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    ended
}

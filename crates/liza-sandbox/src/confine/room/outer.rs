//! The process outside a room: makes it, waits for it, and ends as the program ended. It stays in the namespaces of the
//! helper, so it can go on without a room if a part is refused.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getegid, geteuid, set_parent_process_death_signal, waitpid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::confine::exits::{NOT_STARTED, exit_as};
use crate::sys::confinement::can_be_decided;
use crate::sys::family::ProgramExit;

use super::init;
use super::{NoRoom, RoomOrder, RoomSide, calls};

/// Signals for the program, which its helper sends to every process. The program decides; this process ends with it.
const FOR_THE_PROGRAM: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// The process that waits for a room.
#[derive(Debug)]
pub(crate) struct OuterProcess {
    init: Pid,
    control: UnixStream,
}

/// Makes a room and enters it; returns in a process inside and in this one outside, or tells why there is none. Call it
/// before anything is restricted, from a process with one thread. The room dies with the thread that started this process.
pub(crate) fn enter(order: &RoomOrder<'_>, socket: UnixStream) -> Result<RoomSide, NoRoom> {
    let failed = |socket, error: &io::Error| {
        // Without a room, a session ends as it did before there were rooms.
        let _ = set_parent_process_death_signal(None);
        Err(NoRoom { socket, why: error.to_string() })
    };
    match fork(&socket) {
        Ok(Forked::Child(control)) => Ok(RoomSide::Inside(init::serve(order, control, socket))),
        Ok(Forked::Parent(outer)) => match outer.prepare() {
            Ok(()) => Ok(RoomSide::Outside(outer)),
            Err(error) => {
                outer.abandon();
                failed(socket, &error)
            }
        },
        Err(error) => failed(socket, &error),
    }
}

enum Forked {
    Child(UnixStream),
    Parent(OuterProcess),
}

fn fork(socket: &UnixStream) -> io::Result<Forked> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The helper may have died before: then no signal comes, but its end of the socket is closed.
    if is_closed(socket) {
        std::process::exit(NOT_STARTED.into());
    }
    can_be_decided()?;
    let (outside, inside) = UnixStream::pair()?;
    Ok(match calls::fork_into_namespaces()? {
        None => Forked::Child(inside),
        Some(init) => Forked::Parent(OuterProcess { init, control: outside }),
    })
}

fn is_closed(socket: &UnixStream) -> bool {
    let mut ready = [PollFd::new(socket, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut ready, Some(&now)).is_ok() && ready[0].revents().intersects(PollFlags::HUP | PollFlags::RDHUP)
}

impl OuterProcess {
    /// Gives the room its user, and waits until it is complete.
    fn prepare(&self) -> io::Result<()> {
        let id = self.init.as_raw_nonzero();
        let write = |name: &str, text: &str| {
            fs::write(format!("/proc/{id}/{name}"), text)
                .map_err(|error| io::Error::other(format!("cannot write {name}: {error}")))
        };
        // One user and one group, each with its own number; without the first line, no group is accepted.
        write("setgroups", "deny")?;
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        write("uid_map", &format!("{user} {user} 1"))?;
        write("gid_map", &format!("{group} {group} 1"))?;
        (&self.control).write_all(b".")?;
        let mut answer = String::new();
        // Not more than the line: the end of the program follows.
        BufReader::with_capacity(1, &self.control).read_line(&mut answer)?;
        match answer.strip_suffix('\n') {
            Some("") => Ok(()),
            Some(why) => Err(io::Error::other(why.to_owned())),
            None => Err(io::Error::other("the first process of the room ended early")),
        }
    }

    /// Ends what was made of the room.
    fn abandon(self) {
        drop(self.control);
        let _ = waitpid(Some(self.init), WaitOptions::empty());
    }

    /// Waits until the program has ended and nothing of the room is left; returns the exit code, or ends by the signal
    /// that ended the program.
    pub(crate) fn wait(mut self) -> u8 {
        for signal in FOR_THE_PROGRAM {
            let _ = signal_hook::flag::register(signal, Arc::default());
        }
        // The output of the program ends with the program.
        init::close_streams();
        let mut status = [0; 8];
        let ended = self.control.read_exact(&mut status);
        while matches!(waitpid(Some(self.init), WaitOptions::empty()), Err(Errno::INTR)) {}
        exit_as(match ended {
            Ok(()) => init::parse_exit(status),
            // It was killed with everything in the room.
            Err(_) => ProgramExit::Signal(libc::SIGKILL),
        })
    }
}

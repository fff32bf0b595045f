//! Process 1 of a room: makes its files, starts the stage, and then only reaps. When it ends, the kernel kills
//! everything in the room. The room can neither read nor trace it.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, set_dumpable_behavior, set_parent_process_death_signal,
    setpgid, wait,
};

use crate::sys::confinement::{RoomSockets, drop_capabilities};
use crate::sys::family::ProgramExit;

use super::layout::Layout;
use super::{InsideRoom, RoomOrder, calls, mounts, network};

/// Returns only in a child, the stage.
pub(super) fn serve(order: &RoomOrder<'_>, mut control: UnixStream, socket: UnixStream) -> InsideRoom {
    match start(order, &mut control) {
        Ok(Forked::Stage { own, sockets }) => InsideRoom { socket, own, sockets },
        Ok(Forked::Init { stage }) => {
            // The helper waits until the stage has closed it.
            drop(socket);
            reap(stage, &mut control)
        }
        Err(error) => {
            let _ = writeln!(control, "{}", error.to_string().replace('\n', " "));
            std::process::exit(1);
        }
    }
}

enum Forked {
    Init { stage: Pid },
    Stage { own: Vec<PathBuf>, sockets: RoomSockets },
}

fn start(order: &RoomOrder<'_>, control: &mut UnixStream) -> io::Result<Forked> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // If the outer process has died before, no signal comes, but this fails.
    if control.read_exact(&mut [0]).is_err() {
        std::process::exit(1);
    }
    let directory =
        order.directory.map_or_else(std::env::current_dir, |directory| Ok(directory.to_owned()))?;
    let layout = Layout::of(order.plan);
    if layout.is_whole() {
        return Err(io::Error::other("the settings grant all files of this machine"));
    }
    // Both before the new /proc, which is read-only.
    limit_watches();
    let sockets = network::make(order.plan.has_names())?;
    mounts::build(&layout)?;
    std::env::set_current_dir(&directory)
        .map_err(|error| io::Error::other(format!("{}: {error}", directory.display())))?;
    if let Some(why) = drop_capabilities() {
        return Err(io::Error::other(why));
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    if let Some(stage) = calls::fork_here()? {
        return Ok(Forked::Init { stage });
    }
    // The helper reads the addresses that the stage tries to reach.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    if !order.has_terminal {
        // The process group outside has no number in here.
        let _ = setpgid(None, None);
    }
    Ok(Forked::Stage { own: layout.own, sockets })
}

/// The person's limits for watches on files, and those of a room.
const WATCHES: [(&str, &str); 2] = [
    ("/proc/sys/fs/inotify/max_user_instances", "/proc/sys/user/max_inotify_instances"),
    ("/proc/sys/fs/inotify/max_user_watches", "/proc/sys/user/max_inotify_watches"),
];

/// Leaves the person's programs most of the watches on files, which are counted for each user.
fn limit_watches() {
    for (yours, own) in WATCHES {
        let limit = fs::read_to_string(yours).ok().and_then(|limit| limit.trim().parse::<u64>().ok());
        // In a container it can be read-only.
        let _ = limit.map(|limit| fs::write(own, (limit / 4).max(1).to_string()));
    }
}

fn reap(stage: Pid, control: &mut UnixStream) -> ! {
    close_streams();
    let _ = writeln!(control);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == stage => {
                let signal = status.terminating_signal().map(ProgramExit::Signal);
                let code = status.exit_status().map(ProgramExit::Code);
                let _ = control.write_all(&write_exit(code.or(signal).unwrap_or(ProgramExit::Code(1))));
                std::process::exit(0);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => std::process::exit(1),
        }
    }
}

/// Closes this process's standard streams: its parent waits until nothing holds them.
pub(super) fn close_streams() {
    if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&nothing);
        let _ = rustix::stdio::dup2_stdout(&nothing);
        let _ = rustix::stdio::dup2_stderr(&nothing);
    }
}

fn write_exit(exit: ProgramExit) -> [u8; 8] {
    let (kind, number) = match exit {
        ProgramExit::Code(code) => (0, code),
        ProgramExit::Signal(signal) => (1, signal),
    };
    (i64::from(number) << 1 | kind).to_ne_bytes()
}

pub(super) fn parse_exit(bytes: [u8; 8]) -> ProgramExit {
    let value = i64::from_ne_bytes(bytes);
    let number = i32::try_from(value >> 1).unwrap_or(1);
    if value & 1 == 0 { ProgramExit::Code(number) } else { ProgramExit::Signal(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: RO-07
    #[test]
    fn the_end_of_a_program_is_reported_as_it_was() {
        for exit in
            [ProgramExit::Code(0), ProgramExit::Code(255), ProgramExit::Signal(9), ProgramExit::Code(-1)]
        {
            assert_eq!(parse_exit(write_exit(exit)), exit);
        }
    }
}

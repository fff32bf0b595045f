//! Opens the terminals that a session makes for itself: those whose other end the caller holds, and no
//! others. Landlock knows the folder of all terminals, not their owners, so none is granted.

use std::fs::{self, File};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;

use rustix::io::Errno;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer};

use super::connects::duplicate;
use super::members::leader_of;
use super::seccomp::{CallEnd, PendingCall, add_descriptor, is_waiting};

const FOLDER: &str = "/dev/pts/";

const NAME_MAX: usize = 32;

/// Opens the other end of the terminal that a descriptor of the caller belongs to.
pub(super) fn open_terminal(listener: &OwnedFd, call: &PendingCall) -> Result<CallEnd, Errno> {
    let [number, _, flags, ..] = call.arguments;
    give(listener, call, number, flags)
}

/// The same by name, for programs that open it like a file. The kernel opens other files, and no terminals.
pub(super) fn open_by_name(listener: &OwnedFd, call: &PendingCall, path: usize) -> Result<CallEnd, Errno> {
    let [at, flags] =
        [path, path + 1].map(|argument| call.arguments.get(argument).copied().unwrap_or_default());
    match terminal_number(call.thread, at).and_then(|terminal| own_end(call.thread, terminal)) {
        Some(number) => give(listener, call, number, flags),
        None => Ok(CallEnd::Continues),
    }
}

fn give(listener: &OwnedFd, call: &PendingCall, number: u64, flags: u64) -> Result<CallEnd, Errno> {
    let own_end = duplicate(call.thread, number)?;
    // Thread IDs are reused: the descriptor belongs to the caller only if it still waits.
    if !is_waiting(listener.as_fd(), call.id) {
        return Err(Errno::SRCH);
    }
    // It must not become the terminal of this process.
    let terminal =
        ioctl_tiocgptpeer(&own_end, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    let cloexec = flags as u32 & libc::O_CLOEXEC.cast_unsigned();
    let added = add_descriptor(listener.as_fd(), call.id, terminal.as_fd(), cloexec);
    let added = added.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::PERM))?;
    Ok(CallEnd::Returns(added.into()))
}

/// The number in the name of a terminal, from the memory of the caller.
fn terminal_number(thread: u32, at: u64) -> Option<u32> {
    let memory = File::open(format!("/proc/{thread}/mem")).ok()?;
    let mut bytes = [0; NAME_MAX];
    let length = memory.read_at(&mut bytes, at).ok()?;
    parse_name(bytes.get(..length)?)
}

fn parse_name(bytes: &[u8]) -> Option<u32> {
    let name = bytes.split(|byte| *byte == 0).next()?;
    let number = str::from_utf8(name).ok()?.strip_prefix(FOLDER)?;
    number.parse().ok()
}

/// The caller's descriptor of the other end of a terminal.
fn own_end(thread: u32, terminal: u32) -> Option<u64> {
    let process = leader_of(thread)?;
    let descriptors = fs::read_dir(format!("/proc/{process}/fdinfo")).ok()?.flatten();
    let numbers = descriptors.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
    let wanted = format!("tty-index:\t{terminal}");
    let is_end = |number: &u64| {
        let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{number}"));
        info.is_ok_and(|info| info.lines().any(|line| line == wanted))
    };
    let mut ends = numbers.filter(is_end);
    ends.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-03
    #[test]
    fn only_names_of_terminals_are_recognized() {
        assert_eq!(parse_name(b"/dev/pts/12\0rest"), Some(12));
        for name in ["/dev/pts/\0", "/dev/pts/1/../2\0", "/dev/ptmx\0", "/dev/pts/ptmx\0", "dev/pts/1\0"] {
            assert_eq!(parse_name(name.as_bytes()), None, "{name}");
        }
    }

    /// Covers: IS-03
    #[test]
    fn the_other_end_is_found_among_the_callers_descriptors() {
        use rustix::pty::{openpt, ptsname};
        use std::os::fd::AsRawFd as _;
        let end = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        let name = ptsname(&end, Vec::new()).unwrap();
        let terminal = parse_name(name.to_bytes_with_nul()).unwrap();
        let number = u64::try_from(end.as_raw_fd()).unwrap();
        assert_eq!(own_end(std::process::id(), terminal), Some(number));
        assert_eq!(own_end(std::os::unix::process::parent_id(), terminal), None);
    }
}

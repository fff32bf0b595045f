//! What every Unix reports about other processes, which is little.
//!
//! If the answer is not known, this says so, and the caller does what is safe.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The processes whose environment sets a variable: unknown here, so the process group has to be enough.
pub(crate) fn processes_with(_name: &str) -> Vec<(u32, String)> {
    Vec::new()
}

/// Everything that descends from the given processes: unknown here, so the process group has to be enough.
pub(super) fn descendants(_roots: impl IntoIterator<Item = u32>) -> Vec<u32> {
    Vec::new()
}

pub(super) fn is_stopped(_pid: u32) -> bool {
    false
}

pub(crate) fn all_descendants(roots: impl IntoIterator<Item = u32>) -> Vec<u32> {
    descendants(roots)
}

/// Whether a process has ended, and was not waited for: unknown here.
pub(crate) fn is_zombie(_pid: u32) -> bool {
    false
}

/// The command lines of the processes above this one: unknown here.
pub(super) fn command_lines_above() -> Vec<Vec<std::ffi::OsString>> {
    Vec::new()
}

/// The processes from one up to its ancestor: unknown here, and never asked without a process.
pub(super) fn line_below(_pid: u32, _root: u32) -> Option<Vec<super::peer::LineProcess>> {
    None
}

/// The process at the other end of a socket: unknown here; the folder of the socket admits only its own user.
pub(super) fn peer(_connection: &std::os::unix::net::UnixStream) -> std::io::Result<(Option<u32>, u32)> {
    Ok((None, rustix::process::geteuid().as_raw()))
}

/// When a process started: unknown here.
pub(crate) fn start_time(_pid: u32) -> Option<u64> {
    None
}

/// The folder in which a process works: unknown here.
pub(crate) fn working_folder(_pid: u32) -> Option<PathBuf> {
    None
}

/// Whether a process has `file` open, or a git runs below one of `folders`: unknown here.
pub(super) fn is_in_use(_file: &Path, _folders: &[&Path]) -> Option<bool> {
    None
}

/// Orphans of our descendants become children of the first process here; the process group has to be enough.
pub(crate) fn adopt_orphans() -> bool {
    false
}

/// Keeps other processes of the same user from reading this one's memory: not possible here.
pub(super) fn hide_memory() {}

/// The ID of this boot: unknown here.
pub(super) fn boot_id() -> Option<String> {
    None
}

/// The signals that this process ignores: unknown here.
pub(crate) fn ignored_signals() -> Option<u64> {
    None
}

/// The terminal on standard input.
pub(super) fn terminal() -> Option<PathBuf> {
    let name = rustix::termios::ttyname(std::io::stdin(), Vec::new()).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(name.as_bytes())))
}

/// The processes with their command lines: unknown here.
pub(super) fn command_lines() -> Vec<(u32, Vec<std::ffi::OsString>)> {
    Vec::new()
}

/// The socket at the other end of a TCP connection: unknown here.
pub(super) fn tcp_peer(_peer: std::net::SocketAddrV4, _own: std::net::SocketAddrV4) -> Option<(u32, u64)> {
    None
}

/// Whether a process has a socket open: unknown here.
pub(crate) fn has_socket(_pid: u32, _inode: u64) -> Option<bool> {
    None
}

/// Whether the system reports who is at the other end of a TCP connection.
pub(crate) const REPORTS_TCP_PEERS: bool = false;

/// Gives the owner all rights on a file or folder that nobody may read.
pub(crate) fn own_entry(parent: std::os::fd::BorrowedFd<'_>, name: &OsStr) -> std::io::Result<()> {
    use rustix::fs::{AtFlags, Mode, chmodat, statat};
    let mode = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode;
    let mode = super::untrusted::owned_mode(mode as u32).ok_or(std::io::ErrorKind::InvalidInput)?;
    Ok(chmodat(parent, name, Mode::from_raw_mode(mode as _), AtFlags::empty())?)
}

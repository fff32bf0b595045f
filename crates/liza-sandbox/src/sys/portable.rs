//! The few facts that every Unix reports about other processes. An unknown answer is returned as such, and
//! the caller does what is safe.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Unknown here, so the process group has to be enough.
pub(crate) fn processes_with(_name: &str) -> Vec<(u32, String)> {
    Vec::new()
}

/// Unknown here, so the process group has to be enough.
pub(super) fn descendants(_roots: impl IntoIterator<Item = u32>) -> Vec<u32> {
    Vec::new()
}

/// The file itself: there are no rooms here.
pub(crate) fn sealed_copy(file: std::fs::File) -> std::io::Result<std::fs::File> {
    Ok(file)
}

/// There are no sessions here whose memory would be known.
pub(super) fn remove_shared_memory() {}

pub(super) fn is_stopped(_pid: u32) -> bool {
    false
}

pub(crate) fn all_descendants(roots: impl IntoIterator<Item = u32>) -> Vec<u32> {
    descendants(roots)
}

pub(crate) fn is_zombie(_pid: u32) -> bool {
    false
}

pub(super) fn command_lines_above() -> Vec<Vec<std::ffi::OsString>> {
    Vec::new()
}

/// Never called here, since [`peer`] reports no process.
pub(super) fn line_below(_pid: u32, _root: u32) -> Option<Vec<super::peer::LineProcess>> {
    None
}

/// Never called here either.
pub(super) fn program_file(_pid: u32) -> Option<std::path::PathBuf> {
    None
}

/// Unknown here; the folder of the socket admits only its own user.
pub(super) fn peer(_connection: &std::os::unix::net::UnixStream) -> std::io::Result<(Option<u32>, u32)> {
    Ok((None, rustix::process::geteuid().as_raw()))
}

pub(crate) fn start_time(_pid: u32) -> Option<u64> {
    None
}

pub(crate) fn working_folder(_pid: u32) -> Option<PathBuf> {
    None
}

pub(super) fn is_in_use(_file: &Path, _folders: &[&Path]) -> Option<bool> {
    None
}

/// The first process adopts orphans here; the process group has to be enough.
pub(crate) fn adopt_orphans() {}

pub(super) const ADOPTS_ORPHANS: bool = false;

pub(super) fn hide_memory() {}

pub(super) fn boot_id() -> Option<String> {
    None
}

pub(crate) fn ignored_signals() -> Option<u64> {
    None
}

pub(super) fn terminal() -> Option<PathBuf> {
    let name = rustix::termios::ttyname(std::io::stdin(), Vec::new()).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(name.as_bytes())))
}

pub(super) fn command_lines() -> Vec<(u32, Vec<std::ffi::OsString>)> {
    Vec::new()
}

pub(super) fn tcp_peer(_peer: std::net::SocketAddrV4, _own: std::net::SocketAddrV4) -> Option<(u32, u64)> {
    None
}

pub(crate) fn has_socket(_pid: u32, _inode: u64) -> Option<bool> {
    None
}

pub(crate) const REPORTS_TCP_PEERS: bool = false;

/// Gives the owner all rights on an unreadable file or folder.
pub(crate) fn own_entry(parent: std::os::fd::BorrowedFd<'_>, name: &OsStr) -> std::io::Result<()> {
    use rustix::fs::{AtFlags, Mode, chmodat, statat};
    let mode = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode;
    let mode = super::untrusted::owned_mode(mode as u32).ok_or(std::io::ErrorKind::InvalidInput)?;
    Ok(chmodat(parent, name, Mode::from_raw_mode(mode as _), AtFlags::empty())?)
}

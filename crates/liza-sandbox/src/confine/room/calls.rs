//! System calls of rooms that no safe crate has: a child in new namespaces, and the attributes of mounts.
#![allow(unsafe_code, reason = "system calls without a safe wrapper; each block says why it is sound")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use rustix::process::Pid;

const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWNET;

/// Starts a child as process 1 of new namespaces; `None` in the child. This process must have only one thread.
pub(super) fn fork_into_namespaces() -> io::Result<Option<Pid>> {
    fork(NAMESPACES)
}

/// Starts a child; `None` in the child. This process must have only one thread.
pub(super) fn fork_here() -> io::Result<Option<Pid>> {
    fork(0)
}

fn fork(flags: libc::c_int) -> io::Result<Option<Pid>> {
    let flags = libc::c_ulong::from((flags | libc::SIGCHLD).cast_unsigned());
    let zero: libc::c_ulong = 0;
    // SAFETY: without CLONE_VM the child has a copy of this process's memory, as after `fork`. The stage has only one
    // thread, so no lock is held by another one that the child lacks. No pointer is passed.
    let result = unsafe { libc::syscall(libc::SYS_clone, flags, zero, zero, zero, zero) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let id = i32::try_from(result).map_err(io::Error::other)?;
    Ok(Pid::from_raw(id))
}

/// Adds attributes to a mount, or to a mount and everything below it.
pub(super) fn add_attributes(mount: BorrowedFd<'_>, attributes: u64, is_recursive: bool) -> io::Result<()> {
    let wanted = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let recursive = if is_recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is an empty string and `wanted` a struct of the size that is passed; the call only reads both.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Switches the loopback of this process's network on.
pub(super) fn raise_loopback(socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut name = [0; libc::IFNAMSIZ];
    name[..2].copy_from_slice(&[b'l', b'o'].map(u8::cast_signed));
    let flags = libc::__c_anonymous_ifr_ifru { ifru_flags: libc::IFF_UP as libc::c_short };
    let wanted = libc::ifreq { ifr_name: name, ifr_ifru: flags };
    // SAFETY: the request reads one `ifreq` with its name and its flags, which are set, and keeps no pointer to it.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const wanted) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

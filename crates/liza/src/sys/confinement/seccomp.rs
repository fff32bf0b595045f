//! The kernel's filter of system calls: the one place with unsafe code, since installing a filter is a bare
//! system call.
//!
//! Takes a program as data; what it refuses is in `filter`.
#![allow(unsafe_code, reason = "a system call without a safe wrapper")]

use std::io;

use libc::{sock_filter, sock_fprog};

/// Installs a filter for this thread and everything that it starts. Needs no-new-privileges.
pub(super) fn install(program: &[sock_filter]) -> io::Result<()> {
    let length = u16::try_from(program.len()).map_err(io::Error::other)?;
    // The kernel copies the program and does not write to it.
    let description = sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: `description` and the `length` instructions that it points to live until the call returns, and the call
    // only reads them.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const description) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

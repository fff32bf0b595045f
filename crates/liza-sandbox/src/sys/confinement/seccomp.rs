//! The kernel's filter of system calls: bare system calls, since no safe crate installs a filter with a
//! listener or reads from one. `filter` has the rules, `asked` the decisions outside.
#![allow(unsafe_code, reason = "system calls without a safe wrapper; each block says why it is sound")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use libc::{seccomp_notif, seccomp_notif_addfd, seccomp_notif_resp, sock_filter, sock_fprog};

/// Asks the kernel for a descriptor that receives the calls to be decided outside.
const NEW_LISTENER: libc::c_ulong = 1 << 3;
/// Only a fatal signal interrupts a call that is being decided: otherwise it would be made twice.
const WAIT_KILLABLE: libc::c_ulong = 1 << 5;

/// The requests of `ioctl`, as the kernel's header composes them from direction, size, letter and number.
const RECEIVE: u64 = 0xc050_2100;
const SEND: u64 = 0xc018_2101;
const IS_VALID: u64 = 0x4008_2102;
const ADD_DESCRIPTOR: u64 = 0x4018_2103;
/// In an answer: the kernel makes the call as usual.
const CONTINUE: u32 = 1;

#[derive(Debug, Clone, Copy)]
pub(super) struct PendingCall {
    pub id: u64,
    pub thread: u32,
    pub call: libc::c_long,
    pub arguments: [u64; 6],
}

/// For this thread and everything that it starts. Needs no-new-privileges.
pub(super) fn install(program: &[sock_filter]) -> io::Result<()> {
    set_filter(program, 0).map(drop)
}

pub(super) fn install_with_listener(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let raw = match set_filter(program, NEW_LISTENER | WAIT_KILLABLE) {
        // Kernels before 5.19 do not know the second flag.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => set_filter(program, NEW_LISTENER)?,
        result => result?,
    };
    let raw = i32::try_from(raw).map_err(io::Error::other)?;
    // SAFETY: with NEW_LISTENER the kernel returns a new descriptor that nothing else in this process owns.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Makes the kernel drop every packet that arrives at a socket.
pub(super) fn drop_packets(socket: BorrowedFd<'_>) -> io::Result<()> {
    let nothing = [sock_filter { code: 6, jt: 0, jf: 0, k: 0 }];
    // The kernel copies the program and does not write to it.
    let program = sock_fprog { len: 1, filter: nothing.as_ptr().cast_mut() };
    let length = libc::socklen_t::try_from(size_of::<sock_fprog>()).map_err(io::Error::other)?;
    // SAFETY: `program` and the instruction that it points to live until the call returns, and the call only reads them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits for a call; an error means that no process with the filter is left, or that the call was interrupted.
pub(super) fn receive(listener: BorrowedFd<'_>) -> io::Result<PendingCall> {
    // SAFETY: all bits zero are a valid value of this struct of integers, and the kernel requires it to be zero.
    let mut call: seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the request writes one `seccomp_notif`, which `call` is, and keeps no pointer to it.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE as _, &raw mut call) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let number = libc::c_long::from(call.data.nr);
    Ok(PendingCall { id: call.id, thread: call.pid, call: number, arguments: call.data.args })
}

/// True while a call waits: its thread cannot have been replaced by another one with the same ID.
pub(super) fn is_waiting(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the request reads one `u64` and keeps no pointer to it.
    unsafe { libc::ioctl(listener.as_raw_fd(), IS_VALID as _, &raw const id) == 0 }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallEnd {
    Returns(i64),
    Fails(i32),
    /// The kernel makes the call as usual. Memory that the caller can still change must not matter.
    Continues,
}

/// Gives the thread that makes a call a copy of a descriptor; returns its number there.
pub(super) fn add_descriptor(
    listener: BorrowedFd<'_>,
    id: u64,
    descriptor: BorrowedFd<'_>,
    newfd_flags: u32,
) -> io::Result<i32> {
    let srcfd = u32::try_from(descriptor.as_raw_fd()).map_err(io::Error::other)?;
    let added = seccomp_notif_addfd { id, flags: 0, srcfd, newfd: 0, newfd_flags };
    // SAFETY: the request reads one `seccomp_notif_addfd`, which `added` is, and keeps no pointer to it.
    let number = unsafe { libc::ioctl(listener.as_raw_fd(), ADD_DESCRIPTOR as _, &raw const added) };
    if number < 0 { Err(io::Error::last_os_error()) } else { Ok(number) }
}

/// Ends a call. A call whose thread is gone is no error.
pub(super) fn answer(listener: BorrowedFd<'_>, id: u64, end: CallEnd) {
    let none = seccomp_notif_resp { id, val: 0, error: 0, flags: 0 };
    let mut answer = match end {
        CallEnd::Returns(val) => seccomp_notif_resp { val, ..none },
        CallEnd::Fails(error) => seccomp_notif_resp { error: -error, ..none },
        CallEnd::Continues => seccomp_notif_resp { flags: CONTINUE, ..none },
    };
    // SAFETY: the request reads one `seccomp_notif_resp`, which `answer` is, and keeps no pointer to it.
    let _ = unsafe { libc::ioctl(listener.as_raw_fd(), SEND as _, &raw mut answer) };
}

fn set_filter(program: &[sock_filter], flags: libc::c_ulong) -> io::Result<libc::c_long> {
    let length = u16::try_from(program.len()).map_err(io::Error::other)?;
    // The kernel copies the program and does not write to it.
    let description = sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: `description` and the `length` instructions that it points to live until the call returns, and the call
    // only reads them.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const description)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

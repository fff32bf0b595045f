//! Descriptors inherited from the caller's shell: not for the programs that this one starts.
#![allow(
    unsafe_code,
    reason = "a descriptor that no value in this process owns can only be named by its number"
)]

use std::fs;
use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// The system's list of this process's descriptors.
const FOLDER: &str = "/dev/fd";

/// Keeps every descriptor but the standard streams from child processes. Call it first in `main`.
pub fn keep_descriptors() {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    for number in numbers.filter(|number| *number > 2).collect::<Vec<_>>() {
        // SAFETY: only a flag of the descriptor is changed, if it is open, and the borrow ends here. Nothing else runs yet that
        // could close it meanwhile; even then the call would fail or set a flag that every descriptor of this program has.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        if fcntl_getfd(descriptor).is_ok() {
            let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
        }
    }
}

//! Shared memory of System V for a session without a room. This process makes it in the session's place: so its maker is known
//! as long as any process of the session runs, and takes it along when none is left.
#![allow(unsafe_code, reason = "system calls without a safe wrapper; each block says why it is sound")]

use std::fs;
use std::io;
use std::ptr::null_mut;

use rustix::io::Errno;

use super::system;

/// All that a session may ask for: to make it, and rights on it.
const FLAGS: i32 = libc::IPC_CREAT | libc::IPC_EXCL | libc::SHM_NORESERVE | 0o777;

/// Makes or finds memory; returns its number.
pub(super) fn make(key: i32, size: usize, flags: i32) -> Result<i32, Errno> {
    if flags & !FLAGS != 0 {
        return Err(Errno::PERM);
    }
    // SAFETY: the call takes numbers only.
    let number = unsafe { libc::shmget(key, size, flags) };
    let failed = || Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL);
    if number < 0 { Err(failed()) } else { Ok(number) }
}

/// True for memory that this process has made.
pub(super) fn is_own(number: i32) -> bool {
    own().contains(&number)
}

/// Removes what this process has made.
pub(super) fn remove_own() {
    for number in own() {
        // SAFETY: this command neither reads nor writes the buffer.
        let _ = unsafe { libc::shmctl(number, libc::IPC_RMID, null_mut()) };
    }
}

fn own() -> Vec<i32> {
    let own = std::process::id();
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    system::started_at(own).map(|started| made_by(&table, own, started)).unwrap_or_default()
}

/// The numbers of memory that a process has made: an earlier process with its ID made what is older. The system's clock is
/// exact to a second.
fn made_by(table: &str, pid: u32, started: u64) -> Vec<i32> {
    let number = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, number, _, _, maker, _, _, _, _, _, _, _, _, made, ..] = fields[..] else { return None };
        let made: u64 = made.parse().ok()?;
        if maker.parse() == Ok(pid) && started <= made + 1 { number.parse().ok() } else { None }
    };
    table.lines().skip(1).filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-16, RO-06
    #[test]
    fn memory_belongs_to_the_process_that_made_it_and_not_to_an_earlier_one_with_its_number() {
        let table = "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap\n\
                     0 7 1600 64 41 42 0 0 0 0 0 0 0 1700000000 0 0\n\
                     99 8 600 64 51 52 0 0 0 0 0 0 0 1700000001 0 0\n";
        assert_eq!(made_by(table, 51, 1_700_000_002), [8]);
        assert_eq!(made_by(table, 51, 1_700_000_003), [0; 0]);
        assert_eq!(made_by(table, 52, 1), [0; 0]);
        let number = make(libc::IPC_PRIVATE, 64, libc::IPC_CREAT | 0o600).unwrap();
        assert!(is_own(number));
        remove_own();
        assert!(!is_own(number));
        assert_eq!(make(libc::IPC_PRIVATE, 64, libc::IPC_CREAT | libc::SHM_HUGETLB), Err(Errno::PERM));
    }
}

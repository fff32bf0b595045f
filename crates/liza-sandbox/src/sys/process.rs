//! Facts about processes, and waiting for a child with a time limit. Kills only the process group of a child
//! that the caller started.

use std::io;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process};

use super::system;

/// Kills the process group that `child` leads. Call it before the child is reaped.
pub fn kill_group(child: &Child) {
    if let Some(group) = pid(child.id()) {
        // An error means that it has already ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Waits for the child until the deadline; `None` if it is still running then.
pub fn wait_until(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let now = Instant::now();
        if now >= deadline {
            return Ok(None);
        }
        // A program usually ends within microseconds of closing its output; sleeping would slow down every call.
        if now - started < Duration::from_millis(1) {
            thread::yield_now();
        } else {
            thread::sleep(pause.min(deadline - now));
            pause = (pause * 2).min(Duration::from_millis(25));
        }
    }
}

/// An ID that is different after every boot of this machine; `None` where the system has none.
pub fn boot_id() -> Option<String> {
    system::boot_id()
}

/// Names a process apart from every other one that has or had its number; `None` where the system cannot say.
pub fn identity(id: u32) -> Option<String> {
    Some(format!("{} {}", boot_id()?, system::start_time(id)?))
}

/// Asks a process to end, as Ctrl-C does.
pub fn interrupt(id: u32) -> io::Result<()> {
    let pid = pid(id).ok_or(io::ErrorKind::NotFound)?;
    rustix::process::kill_process(pid, rustix::process::Signal::INT).map_err(io::Error::from)
}

/// The terminal on standard input, or `unknown`.
pub fn terminal_name() -> String {
    system::terminal().map_or("unknown".to_owned(), |path| path.display().to_string())
}

/// The nearest first; none where the system doesn't report them.
pub fn command_lines_above() -> Vec<Vec<std::ffi::OsString>> {
    system::command_lines_above()
}

/// None where the system doesn't report them.
pub fn command_lines() -> Vec<(u32, Vec<std::ffi::OsString>)> {
    system::command_lines()
}

/// The least limit: half of a small machine would be too little.
#[cfg(target_os = "linux")]
const LEAST_MEMORY: u64 = 512 << 20;

/// Limits a process's memory from now on: at most `bytes`, and at most half of the machine's.
pub fn limit_memory(child: &Child, bytes: u64) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
        let info = rustix::system::sysinfo();
        let bytes = share_of_memory(info.totalram.saturating_mul(info.mem_unit.into()), bytes);
        let maximum = getrlimit(Resource::Data).maximum;
        let current = Some(maximum.map_or(bytes, |maximum| maximum.min(bytes)));
        // A process that has ended already needs no limit.
        let _ = prlimit(pid(child.id()), Resource::Data, Rlimit { current, maximum });
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (child, bytes);
}

#[cfg(target_os = "linux")]
fn share_of_memory(total: u64, wanted: u64) -> u64 {
    wanted.min((total / 2).max(LEAST_MEMORY))
}

/// True if a process with this ID runs, whoever owns it. A zombie doesn't.
pub fn is_alive(id: u32) -> bool {
    pid(id).is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH)) && !system::is_zombie(id)
}

/// True if a process has `file` open, or a git runs below one of `folders`; `None` where the system cannot say.
pub fn is_in_use(file: &Path, folders: &[&Path]) -> Option<bool> {
    system::is_in_use(file, folders)
}

/// Keeps other processes of the same user from reading this one's memory, where the system can.
pub fn hide_memory() {
    system::hide_memory();
}

/// True if this process may read from its terminal: one in the background would be stopped.
pub fn is_in_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// True under `nohup`, for example; false where the system cannot say.
pub fn ignores_hangup() -> bool {
    system::ignored_signals().is_some_and(|mask| mask & 1 == 1)
}

pub fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-02
    #[test]
    #[cfg(target_os = "linux")]
    fn a_limited_process_uses_at_most_half_of_the_machine() {
        let gibibytes = |number: u64| number << 30;
        assert_eq!(share_of_memory(gibibytes(64), gibibytes(4)), gibibytes(4));
        assert_eq!(share_of_memory(gibibytes(4), gibibytes(4)), gibibytes(2));
        assert_eq!(share_of_memory(LEAST_MEMORY, gibibytes(4)), LEAST_MEMORY);
        assert_eq!(share_of_memory(gibibytes(64), 1), 1);
    }

    /// Covers: UI-02
    #[test]
    #[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
    fn hidden_memory_cannot_be_dumped() {
        use rustix::process::{DumpableBehavior, dumpable_behavior};
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::Dumpable);
        hide_memory();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}

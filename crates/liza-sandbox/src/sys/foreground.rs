//! The foreground of a terminal: the process group that reads what is typed. A shell leads one, and gives it to each of
//! its jobs in turn.
#![cfg_attr(
    all(target_os = "linux", not(feature = "portable-sys")),
    allow(unsafe_code, reason = "no safe crate blocks a signal; the block says why it is sound")
)]

use std::io;

use rustix::process::{Pid, getpgrp};
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
use rustix::process::{Signal, getpid, set_parent_process_death_signal, setpgid};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr, tcsetpgrp};

use super::process::is_in_foreground;

/// The terminal of this process while a program leads its foreground; dropping it takes the terminal back, as it was.
#[derive(Debug)]
pub struct LentTerminal(Termios);

impl LentTerminal {
    /// `None` if standard input is no terminal, or if this process is in the background.
    pub fn of_input() -> Option<Self> {
        let settings = is_in_foreground().then(|| tcgetattr(io::stdin()).ok());
        settings.flatten().map(Self)
    }
}

impl Drop for LentTerminal {
    fn drop(&mut self) {
        // Errors mean that the terminal is gone.
        let _ = set_foreground(getpgrp());
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// Makes this process lead a group of its own in the foreground of the terminal on its standard input: a shell in a room
/// knows no group from outside, and would have no job control.
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
pub(crate) fn lead_foreground() {
    let _ = setpgid(None, None);
    let _ = set_foreground(getpid());
}

/// Ends the shell that this process becomes when its Liza is killed: without a room nothing else would. A shell passes
/// the signal to its jobs.
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
pub(crate) fn hang_up_with_parent() {
    let _ = set_parent_process_death_signal(Some(Signal::HUP));
}

#[cfg(any(not(target_os = "linux"), feature = "portable-sys"))]
pub(crate) fn hang_up_with_parent() {}

/// Without rooms a shell does it itself.
#[cfg(any(not(target_os = "linux"), feature = "portable-sys"))]
pub(crate) fn lead_foreground() {}

#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
fn set_foreground(group: Pid) -> io::Result<()> {
    let mut changed = Ok(());
    // SAFETY: both sets are plain data, filled by the first call and by the third, and the calls keep no pointer to them. Only
    // the mask of this thread is changed, and put back.
    unsafe {
        let (mut stop, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&raw mut stop);
        libc::sigaddset(&raw mut stop, libc::SIGTTOU);
        if libc::pthread_sigmask(libc::SIG_BLOCK, &raw const stop, &raw mut before) == 0 {
            // A process in the background would be stopped by this signal.
            changed = tcsetpgrp(io::stdin(), group);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        }
    }
    Ok(changed?)
}

#[cfg(any(not(target_os = "linux"), feature = "portable-sys"))]
fn set_foreground(group: Pid) -> io::Result<()> {
    Ok(tcsetpgrp(io::stdin(), group)?)
}

//! The foreground of a terminal: the process group that reads what is typed. A shell leads one, and gives it to each of
//! its jobs in turn.
#![cfg_attr(
    all(target_os = "linux", not(feature = "portable-sys")),
    allow(unsafe_code, reason = "no safe crate blocks a signal; the block says why it is sound")
)]

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, RawMode, fchmod, fstat};
use rustix::process::{Pid, getpgrp};
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
use rustix::process::{Signal, getpid, set_parent_process_death_signal, setpgid};
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr, tcsetpgrp};

use super::process::is_in_foreground;

/// Asks a terminal for its state, and its answer. It answers in order, so whatever it was asked before is answered then.
const ASK: &[u8] = b"\x1b[5n";
const ANSWER: &[u8] = b"\x1b[0n";

/// The longest time for that answer, and the silence after it: a program may have asked the same.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
const SILENCE: Duration = Duration::from_millis(100);

/// The terminal of this process while a program leads its foreground; dropping it takes the terminal back, as it was.
#[derive(Debug)]
pub struct LentTerminal {
    settings: Termios,
    /// Those of the standard streams: a program can change the mode of what it has open.
    modes: [Option<RawMode>; 3],
}

impl LentTerminal {
    /// `None` if standard input is no terminal, or if this process is in the background.
    pub fn of_input() -> Option<Self> {
        let settings = is_in_foreground().then(|| tcgetattr(io::stdin()).ok()).flatten()?;
        Some(Self { settings, modes: streams().map(mode_of) })
    }
}

impl Drop for LentTerminal {
    fn drop(&mut self) {
        // Errors mean that the terminal is gone.
        let _ = set_foreground(getpgrp());
        for (stream, mode) in streams().into_iter().zip(self.modes) {
            if let Some(mode) = mode.filter(|_| mode_of(stream) != mode) {
                let _ = fchmod(stream, Mode::from_raw_mode(mode));
            }
        }
        let _ = forget_answers();
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.settings);
    }
}

fn streams() -> [BorrowedFd<'static>; 3] {
    [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()]
}

fn mode_of(stream: BorrowedFd<'_>) -> Option<RawMode> {
    Some(fstat(stream).ok()?.st_mode & 0o7777)
}

/// Reads what the terminal answers to programs that have ended: the person's own shell would take it for typed words.
fn forget_answers() -> io::Result<()> {
    if std::env::var_os("TERM").is_some_and(|name| name != "dumb") {
        let mut raw = tcgetattr(io::stdin())?;
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        let mut terminal = File::options().read(true).write(true).open("/dev/tty")?;
        terminal.write_all(ASK)?;
        read_answers(&mut terminal)?;
    }
    Ok(tcflush(io::stdin(), QueueSelector::IFlush)?)
}

fn read_answers(terminal: &mut File) -> io::Result<()> {
    let (begun, mut read) = (Instant::now(), Vec::new());
    while begun.elapsed() < ANSWER_LIMIT {
        let is_answered = read.windows(ANSWER.len()).any(|part| part == ANSWER);
        let limit = if is_answered { SILENCE } else { ANSWER_LIMIT.saturating_sub(begun.elapsed()) };
        let mut ready = [PollFd::new(terminal, PollFlags::IN)];
        let wait = Timespec::try_from(limit).map_err(io::Error::other)?;
        if poll(&mut ready, Some(&wait))? == 0 {
            break;
        }
        let mut bytes = [0; 256];
        let length = terminal.read(&mut bytes)?;
        if length == 0 {
            break;
        }
        read.extend_from_slice(bytes.get(..length).unwrap_or_default());
    }
    Ok(())
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

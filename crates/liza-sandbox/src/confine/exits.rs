//! The exit codes of the processes around a program.

use rustix::process::{Signal, getpid, kill_process};

use crate::sys::family::ProgramExit;

/// The exit code that shells use for a program that cannot be started.
pub const NOT_STARTED: u8 = 127;

/// Returns the program's exit code, or ends by the same signal.
pub(crate) fn exit_as(exit: ProgramExit) -> u8 {
    match exit {
        ProgramExit::Code(code) => u8::try_from(code).unwrap_or(1),
        ProgramExit::Signal(number) => {
            if let Some(signal) = Signal::from_named_raw(number) {
                let _ = kill_process(getpid(), signal);
            }
            u8::try_from(128 + number).unwrap_or(1)
        }
    }
}

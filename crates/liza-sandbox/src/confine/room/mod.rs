//! A room: files, processes, shared memory, a network and a host name of a session's own, by namespaces. Inside, the stage restricts
//! itself as it does without a room. Needs no privileges and no other program; where the system refuses any part,
//! there is no room and the reason is known. Must not decide what a session may use: that is the plan.
//!
//! ```text
//! helper ─ outer process (waits; dies with the helper) ─ process 1 of the room (reaps) ─ stage, then the program
//! ```

#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod calls;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod init;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod layout;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod mounts;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod network;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod outer;
#[cfg(any(not(target_os = "linux"), feature = "portable-sys"))]
#[path = "portable.rs"]
mod outer;

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::sys::confinement::RoomSockets;

use super::plan::Plan;

pub(super) use outer::{OuterProcess, enter};

/// The needs of a room besides its plan.
#[cfg_attr(
    any(not(target_os = "linux"), feature = "portable-sys"),
    allow(dead_code, reason = "there is no room")
)]
#[derive(Debug)]
pub(crate) struct RoomOrder<'a> {
    pub plan: &'a Plan,
    /// The folder in which the program starts; `None` is that of this process.
    pub directory: Option<&'a Path>,
    /// The program will lead a terminal, which the leader of a process group cannot.
    pub has_terminal: bool,
}

/// The process in which [`enter`] returns: it does so in two of them.
#[cfg_attr(
    any(not(target_os = "linux"), feature = "portable-sys"),
    allow(dead_code, reason = "there is no room")
)]
#[derive(Debug)]
pub(crate) enum RoomSide {
    Inside(InsideRoom),
    Outside(OuterProcess),
}

#[derive(Debug)]
pub(crate) struct InsideRoom {
    pub socket: UnixStream,
    /// Folders for temporary files and shared memory that are the room's own.
    pub own: Vec<PathBuf>,
    /// For the helper, which serves the room's network.
    pub sockets: RoomSockets,
}

/// Names the step that failed.
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
fn step<T>(what: impl std::fmt::Display, work: impl FnOnce() -> std::io::Result<T>) -> std::io::Result<T> {
    work().map_err(|error| std::io::Error::other(format!("{what}: {error}")))
}

/// No room was made; the caller goes on without one.
#[derive(Debug)]
pub(crate) struct NoRoom {
    pub socket: UnixStream,
    pub why: String,
}

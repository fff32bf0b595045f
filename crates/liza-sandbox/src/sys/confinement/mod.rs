//! Restricts this process and everything that it starts: files, signals, sockets, system calls, capabilities.
//! Restrictions can only be added. Each part reports whether it was applied; probes find out what is really
//! refused, never version numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::socket_folder::is_of_liza;

use super::peer::{Image, SpeakerRule};

#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
pub(crate) use system::can_be_decided;
pub(crate) use system::{NamedSocket, RoomSockets, forward};

#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod asked;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod capabilities;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod connects;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod files;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod filter;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod linux;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod local_services;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod members;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod own_network;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod process_limit;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod routes;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod seccomp;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
mod terminals;
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
use linux as system;

#[cfg(any(not(target_os = "linux"), feature = "portable-sys"))]
mod portable;
#[cfg(any(not(target_os = "linux"), feature = "portable-sys"))]
use portable as system;

/// The rights of a confined process; everything else is refused. Missing paths are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// Files and folders with everything below, to read and to run.
    pub read: Vec<PathBuf>,
    /// The same to read only: no file in them can be run.
    pub only_read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub devices: Vec<PathBuf>,
    /// Sockets, or folders with sockets, to connect to.
    pub sockets: Vec<PathBuf>,
    /// `None` if all of it is open.
    pub network: Option<TcpGrants>,
    /// The TCP ports of services on this machine that it reaches, besides its own.
    pub services: Vec<u16>,
    pub max_abi: Option<u32>,
    /// What each process was before it became its program is noted outside.
    #[serde(default)]
    pub notes_programs: bool,
}

/// The network rights of a process. Everything but TCP is closed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpGrants {
    /// The port of Liza's proxy on this machine.
    pub proxy: u16,
    /// Open on every host.
    pub ports: Vec<u16>,
}

/// The result as the system reports it: each field has the reason if a part was not applied.
#[derive(Debug)]
pub struct Restrictions {
    pub files: Option<String>,
    pub calls: Option<String>,
    pub capabilities: Option<String>,
    /// The kernel's reports of connects, for [`decide_connects`].
    pub listener: Result<OwnedFd, String>,
}

/// The beginning of the line that names a refused place.
pub const REFUSED: &str = "[liza: refused: ";

/// The beginnings of sockets by which a session would act as the person, or for which programs look by themselves.
const OF_DESKTOP: [&str; 9] = [
    "/dev/",
    "/run/avahi-daemon/",
    "/run/dbus/",
    "/run/nscd/",
    "/run/systemd/",
    "/run/user/",
    "/tmp/.X11-unix/",
    "/tmp/ssh-",
    "/tmp/tmux-",
];

/// True for a socket of the desktop, of the system or of Liza: no log names it when it is refused.
pub(crate) fn is_of_desktop(socket: &Path) -> bool {
    OF_DESKTOP.iter().any(|start| socket.as_os_str().as_bytes().starts_with(start.as_bytes()))
        || is_of_liza(socket)
}

/// The address of a probe's server while it is granted.
pub type ProbedServer = Arc<Mutex<Option<SocketAddr>>>;

/// The sockets that a session may connect to.
#[derive(Debug, Clone)]
pub struct ConnectPolicy {
    /// Sockets, and folders with sockets.
    pub allowed: Vec<PathBuf>,
    /// The socket for the session's commands.
    pub channel: Option<PathBuf>,
    /// `None` if all of it is open.
    pub network: Option<TcpGrants>,
    /// The TCP ports of services on this machine, besides those of the session's own processes.
    pub services: Vec<u16>,
    /// The server that the stage tries to reach, until it has tried.
    pub probed: ProbedServer,
    /// The log that names the services that were refused.
    pub log: Option<PathBuf>,
    /// True if the errors of this process name them too.
    pub in_errors: bool,
    /// Ports and sockets that the log does not name, or not again; the first one is the port that the stage tries.
    pub noted: Arc<Mutex<BTreeSet<String>>>,
    /// The rule for processes that use the channel.
    pub speakers: SpeakerRule,
    pub client: Option<u32>,
    /// The folders that the session's room has for itself: every socket there is the session's.
    pub own: Vec<PathBuf>,
    pub programs: NotedPrograms,
}

/// What each process was before it became another program, where that is noted.
#[cfg_attr(
    any(not(target_os = "linux"), feature = "portable-sys"),
    allow(dead_code, reason = "nothing is noted")
)]
#[derive(Debug, Clone, Default)]
pub struct NotedPrograms(Arc<Mutex<Noted>>);

#[cfg_attr(
    any(not(target_os = "linux"), feature = "portable-sys"),
    allow(dead_code, reason = "nothing is noted")
)]
#[derive(Debug, Default)]
struct Noted {
    /// By its ID, with the time of its start.
    images: BTreeMap<u32, (u64, Vec<Image>)>,
    /// The first process but the agent program itself.
    first: Option<(u32, u64)>,
}

#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
impl NotedPrograms {
    fn note(&self, process: u32, started: u64, image: Image, is_client: bool) {
        /// From this number on, processes that have ended are forgotten.
        const NOTED_MAX: usize = 4096;
        let mut noted = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !is_client {
            noted.first.get_or_insert((process, started));
        }
        if noted.images.len() >= NOTED_MAX {
            noted
                .images
                .retain(|process, (started, _)| super::system::start_time(*process) == Some(*started));
        }
        let (known, images) = noted.images.entry(process).or_default();
        if *known != started {
            (*known, *images) = (started, Vec::new());
        }
        // A program is looked for in several folders.
        if images.last() != Some(&image) {
            images.push(image);
        }
    }

    /// Adds to a process what is known of it.
    fn complete(&self, process: &mut super::peer::LineProcess) {
        let noted = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let started = super::system::start_time(process.pid);
        // IDs are reused.
        let own = noted.images.get(&process.pid).filter(|(known, _)| started == Some(*known));
        process.before = own.map(|(_, images)| images.clone()).unwrap_or_default();
        process.is_first = noted.first.is_none_or(|(first, at)| first == process.pid && started == Some(at));
    }
}

/// Decides the connects of a session from now on, in a thread, and serves the network of its room if it has one. Call it
/// in a process above the session.
pub(crate) fn decide_connects(
    listener: OwnedFd,
    policy: ConnectPolicy,
    sockets: Option<RoomSockets>,
) -> io::Result<()> {
    system::decide_connects(listener, policy, sockets)
}

/// This process must have only one thread. In a room, everything that has a number there belongs to the session.
pub(crate) fn restrict(grants: &Grants, is_in_room: bool) -> Restrictions {
    system::restrict(grants, is_in_room)
}

/// Drops every capability of this process; returns the reason if it fails.
#[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
pub(crate) fn drop_capabilities() -> Option<String> {
    capabilities::drop_all()
}

/// Runs `work` in a thread that is restricted from its first moment, with everything that it starts; the rest
/// of this process stays as it is. Local sockets are refused, and with `network` in the grants, all are. A
/// system that cannot protect files runs it unrestricted.
pub fn restricted<T: Send>(grants: &Grants, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    system::restricted(grants, work)
}

pub fn protects_files() -> bool {
    system::protects_files()
}

#[derive(Debug)]
pub struct Witnesses(system::Witnesses);

impl Witnesses {
    /// The abstract name is that of a socket outside.
    pub fn prepare(not_named: Option<&str>) -> Self {
        Self(system::Witnesses::prepare(not_named))
    }

    /// Forbidden actions that are still possible, in words.
    pub(crate) fn still_possible(&self) -> Vec<String> {
        self.0.still_possible()
    }
}

/// True if this process can write to a file, or create one in a folder. Leaves nothing behind.
pub(crate) fn can_write(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => {
            let probe = path.join(format!(".liza-probe-{}", std::process::id()));
            let created = OpenOptions::new().write(true).create_new(true).open(&probe).is_ok();
            if created {
                let _ = fs::remove_file(&probe);
            }
            created
        }
        Ok(meta) if meta.is_file() => OpenOptions::new().append(true).open(path).is_ok(),
        Ok(_) | Err(_) => false,
    }
}

pub(crate) fn can_read(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => fs::read_dir(path).is_ok(),
        Ok(meta) if meta.is_file() => fs::File::open(path).is_ok(),
        Ok(_) | Err(_) => false,
    }
}

//! Restricts this process and everything that it starts: files, signals, sockets, system calls, capabilities.
//!
//! Restrictions can only be added. Each part reports whether it was applied; what was really refused is found out by
//! trying it, never by version numbers.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::peer::SpeakerRule;

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
mod process_limit;
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

/// What a confined process may do; everything else is refused. Paths that do not exist are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// Files and folders, with everything below, to read and to run.
    pub read: Vec<PathBuf>,
    /// The same, to write as well.
    pub write: Vec<PathBuf>,
    pub devices: Vec<PathBuf>,
    /// Sockets, or folders with sockets, to connect to.
    pub sockets: Vec<PathBuf>,
    /// What it may use of the network; none if all of it is open.
    pub network: Option<TcpGrants>,
    /// The newest version of Landlock to use.
    pub max_abi: Option<u32>,
}

/// What a process may use of the network. Everything but TCP is closed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpGrants {
    /// The port on this machine at which Liza's proxy listens.
    pub proxy: u16,
    /// Ports that are open on every host.
    pub ports: Vec<u16>,
}

/// What was applied, as far as the system reports it.
#[derive(Debug)]
pub struct Restrictions {
    /// Why files are not protected, if they are not.
    pub files: Option<String>,
    /// Why system calls are not filtered, if they are not.
    pub calls: Option<String>,
    /// Why capabilities are not dropped, if they are not.
    pub capabilities: Option<String>,
    /// Where the kernel reports connects, for [`decide_connects`]; or why it does not.
    pub listener: Result<OwnedFd, String>,
}

/// Which sockets a session may connect to.
#[derive(Debug, Clone)]
pub struct ConnectPolicy {
    /// Sockets, and folders with sockets.
    pub allowed: Vec<PathBuf>,
    /// The socket on which the session sends its commands.
    pub channel: Option<PathBuf>,
    /// What it may use of the network; none if all of it is open.
    pub network: Option<TcpGrants>,
    /// Decides which processes may use the channel.
    pub speakers: SpeakerRule,
    /// The process of the agent program, if it is known.
    pub client: Option<u32>,
}

/// Decides the connects of a session from now on, in a thread. Call it in a process above the session.
pub(crate) fn decide_connects(listener: OwnedFd, policy: ConnectPolicy) {
    system::decide_connects(listener, policy);
}

/// Restricts this process, which must have one thread only.
pub(crate) fn restrict(grants: &Grants) -> Restrictions {
    system::restrict(grants)
}

/// Does something in a thread that is restricted from its first moment, and so is everything that it starts; the rest of this
/// process stays as it is. Local sockets are refused, and with `network` in the grants, all are. Where the system cannot protect files, it is done without.
pub fn restricted<T: Send>(grants: &Grants, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    system::restricted(grants, work)
}

/// Whether this system can protect files from a process.
pub fn protects_files() -> bool {
    system::protects_files()
}

/// Things that must not be possible after [`restrict`], prepared before it.
#[derive(Debug)]
pub struct Witnesses(system::Witnesses);

impl Witnesses {
    pub fn prepare() -> Self {
        Self(system::Witnesses::prepare())
    }

    /// What is still possible although it should not be, in words.
    pub(crate) fn still_possible(&self) -> Vec<String> {
        self.0.still_possible()
    }
}

/// Whether this process can write to a file, or create one in a folder. Leaves nothing behind.
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

/// Whether this process can read a file, or list a folder.
pub(crate) fn can_read(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => fs::read_dir(path).is_ok(),
        Ok(meta) if meta.is_file() => fs::File::open(path).is_ok(),
        Ok(_) | Err(_) => false,
    }
}

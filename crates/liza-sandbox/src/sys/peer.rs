//! The process at the other end of a Unix socket.

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::system;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineProcess {
    pub pid: u32,
    pub command: Vec<OsString>,
    pub image: Image,
    /// What it was before, where that is noted, in order: first what its maker was when it made it.
    pub before: Vec<Image>,
    /// True for the first process of a session that became another program, after the agent program itself; and where
    /// nothing is noted.
    pub is_first: bool,
}

/// One start of a program. A process has it from its maker or has made it itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    /// `None` if the process hides its file, as some agent programs do.
    pub file: Option<PathBuf>,
    /// What the kernel told the program when it started: random places in its memory. Processes have it in common only if
    /// one made the other.
    pub start: Option<u64>,
}

/// The file that a process runs.
pub fn program_file(pid: u32) -> Option<PathBuf> {
    system::program_file(pid)
}

/// The reason why a process doesn't speak for its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silenced {
    UnderTest,
    /// The agent program did not run it, itself or in a shell.
    NotSpoken,
}

/// Decides whether the first process of a line speaks for its session; also gets the processes of the
/// session's helper and of the agent program.
pub type SpeakerRule = fn(&[LineProcess], u32, Option<u32>) -> Result<(), Silenced>;

/// The process at the other end, as it was when it connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// `None` if the system doesn't report it.
    pid: Option<u32>,
    /// IDs are reused.
    started: Option<u64>,
    pub is_own_user: bool,
}

impl Peer {
    pub fn of(connection: &UnixStream) -> io::Result<Self> {
        let (pid, user) = system::peer(connection)?;
        let is_own_user = user == rustix::process::geteuid().as_raw();
        Ok(Self { pid, started: pid.and_then(system::start_time), is_own_user })
    }

    /// The processes from this one up to its ancestor `root`, without it; `None` if it has ended or `root` is
    /// no ancestor. Empty on a system that doesn't report processes.
    pub fn line_below(&self, root: u32) -> Option<Vec<LineProcess>> {
        let Some(pid) = self.pid else { return Some(Vec::new()) };
        let line = system::line_below(pid, root)?;
        // Read last: if the ID had been reused meanwhile, the time would differ.
        (self.started.is_some() && system::start_time(pid) == self.started).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Covers: IS-02
    #[test]
    #[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
    fn a_peer_descends_from_its_ancestors_only() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = Peer::of(&one).unwrap();
        assert!(peer.is_own_user);
        let parent = std::os::unix::process::parent_id();
        assert_eq!(peer.line_below(parent).map(|line| line.len()), Some(1));
        let mut stranger = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert_eq!(peer.line_below(stranger.id()), None);
        drop(stranger.stdin.take());
        stranger.wait().unwrap();
        // A process that has the same ID but started at another time is another one.
        assert_eq!(Peer { started: Some(1), ..peer }.line_below(parent), None);
    }
}

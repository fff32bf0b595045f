//! Who is at the other end of a Unix socket.

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream;

use super::system;

/// A process of a line of parents and children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineProcess {
    pub pid: u32,
    pub command: Vec<OsString>,
    /// The name of the file that it runs; its own name if the system does not report the file.
    pub program: OsString,
}

/// Why a process does not speak for the session that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silenced {
    /// It is code under test.
    UnderTest,
    /// The agent program did not start it, or git is between them.
    Indirect,
}

/// Decides whether the first process of a line speaks for its session; gets the process of the agent program, if it is known.
pub type SpeakerRule = fn(&[LineProcess], Option<u32>) -> Result<(), Silenced>;

/// The process at the other end, as it was when it connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its ID, where the system reports it.
    pid: Option<u32>,
    /// When it started: IDs are used again.
    started: Option<u64>,
    /// Whether it has our own user.
    pub is_own_user: bool,
}

impl Peer {
    /// The peer of a connection.
    pub fn of(connection: &UnixStream) -> io::Result<Self> {
        let (pid, user) = system::peer(connection)?;
        let is_own_user = user == rustix::process::geteuid().as_raw();
        Ok(Self { pid, started: pid.and_then(system::start_time), is_own_user })
    }

    /// The processes from this one, itself included, up to its ancestor `root`, which is not; `None` if it does not
    /// descend from that process, or has ended. On a system that does not report processes the list is empty.
    pub fn line_below(&self, root: u32) -> Option<Vec<LineProcess>> {
        let Some(pid) = self.pid else { return Some(Vec::new()) };
        let line = system::line_below(pid, root)?;
        // Read last: if the ID had been used again meanwhile, the time would differ.
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

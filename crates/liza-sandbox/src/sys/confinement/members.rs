//! The processes of a session.

use std::fs;

use super::super::family::is_marked_by_us;
use super::super::system;

pub(super) fn leader_of(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}

/// True for a descendant of the agent program and, like orphans, for one with the mark of its family.
pub(super) fn is_own(client: Option<u32>, thread: u32) -> bool {
    let descends = |leader: u32| client.is_some_and(|client| system::line_below(leader, client).is_some());
    leader_of(thread).is_some_and(|leader| descends(leader) || is_marked_by_us(leader))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-16
    #[test]
    fn a_session_owns_what_descends_from_its_program_or_carries_its_mark() {
        use std::io::{Read as _, Write as _};
        use std::process::{Command, Stdio};
        let start = |mark: u32| {
            let mut cat = Command::new("cat");
            cat.stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .env("LIZA_PROCESS_TREE", format!("{mark}-session"));
            let mut started = cat.spawn().unwrap();
            // Before it runs, its environment cannot be read.
            started.stdin.as_mut().unwrap().write_all(b"x").unwrap();
            started.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            started
        };
        let (own, parent) = (std::process::id(), std::os::unix::process::parent_id());
        let (mut child, mut stranger) = (start(own), start(1));
        assert!(is_own(Some(own), own) && is_own(Some(own), stranger.id()));
        assert!(!is_own(Some(own), parent) && !is_own(None, own));
        assert!(is_own(None, child.id()) && !is_own(None, stranger.id()));
        assert!(!is_own(Some(child.id()), own) && !is_own(Some(child.id()), stranger.id()));
        drop(stranger.stdin.take());
        stranger.wait().unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}

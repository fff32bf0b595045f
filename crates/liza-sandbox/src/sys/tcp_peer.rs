//! The process at the other end of a TCP connection within this machine.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::system;

/// True if the peer has our user and is none of these processes nor below one, or if the system doesn't
/// report it. A process that hides its open files counts as the peer, unless another one has the connection.
pub fn is_outside(peer: SocketAddr, own: SocketAddr, roots: &[u32]) -> bool {
    if !system::REPORTS_TCP_PEERS {
        return true;
    }
    let (SocketAddr::V4(peer), SocketAddr::V4(own)) = (peer, own) else { return false };
    let Some((user, socket)) = system::tcp_peer(peer, own) else { return false };
    // A socket that its owner has closed belongs to no process that could be found.
    socket != 0 && user == rustix::process::geteuid().as_raw() && !is_below(socket, roots)
}

fn is_below(socket: u64, roots: &[u32]) -> bool {
    let below: BTreeSet<u32> =
        system::descendants(roots.iter().copied()).into_iter().chain(roots.iter().copied()).collect();
    let mut hidden = false;
    for pid in &below {
        match system::has_socket(*pid, socket) {
            Some(true) => return true,
            Some(false) => {}
            None => hidden = true,
        }
    }
    let others =
        || system::command_lines().into_iter().map(|(pid, _)| pid).filter(|pid| !below.contains(pid));
    hidden && !others().any(|pid| system::has_socket(pid, socket) == Some(true))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command, Stdio};

    use super::*;

    /// Covers: UI-02
    #[test]
    #[cfg(all(target_os = "linux", not(feature = "portable-sys")))]
    fn a_connection_belongs_to_the_process_that_made_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (served, _) = listener.accept().unwrap();
        let (peer, own) = (served.peer_addr().unwrap(), served.local_addr().unwrap());
        let mut other = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(is_outside(peer, own, &[]));
        assert!(is_outside(peer, own, &[other.id()]));
        assert!(!is_outside(peer, own, &[std::process::id()]));
        drop(other.stdin.take());
        other.wait().unwrap();
        // A peer that is not in the table is not on this machine.
        drop(client);
        let elsewhere: SocketAddr = "10.0.0.1:9".parse().unwrap();
        assert!(!is_outside(elsewhere, own, &[]));
    }
}

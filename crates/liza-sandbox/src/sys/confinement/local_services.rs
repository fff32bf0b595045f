//! A session reaches the services of this machine that it started, and ports that the person listed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use liza_host::durable::{Open, open};
use rustix::io::Errno;

use super::super::system;
use super::members::is_own;
use super::routes::leads_here;
use super::{ConnectPolicy, REFUSED, is_of_desktop};

/// The most places that a log names: a session could try all of them, for ever.
const NOTED_MAX: usize = 20;

/// True if an address leads to this machine.
pub(super) fn is_here(target: SocketAddr) -> bool {
    let address = target.ip().to_canonical();
    address.is_loopback() || address.is_unspecified() || leads_here(target)
}

impl ConnectPolicy {
    /// Decides about a connect to a port of this machine. All listeners of the port must be the session's,
    /// since the address alone does not tell which of them answers.
    pub(super) fn judge_service(&self, port: u16) -> Result<(), Errno> {
        if self.services.contains(&port) {
            return Ok(());
        }
        let listeners = system::tcp_listeners(None, port);
        if listeners.is_empty() {
            return Err(Errno::CONNREFUSED);
        }
        if listeners.iter().all(|socket| self.has_listener(*socket)) {
            return Ok(());
        }
        self.note_refused(port);
        Err(Errno::ACCESS)
    }

    fn has_listener(&self, socket: u64) -> bool {
        let holds = |pid: &u32| system::has_socket(*pid, socket) == Some(true);
        let below = self.client.into_iter().chain(system::descendants(self.client));
        // The children of a process that has ended are found by their mark.
        let others = || system::command_lines().into_iter().map(|(pid, _)| pid);
        below.into_iter().any(|pid| holds(&pid))
            || others().any(|pid| holds(&pid) && is_own(self.client, pid))
    }

    /// Names a port at which nothing waits in the room of this thread, but a service does outside of it. Looks only if it is not
    /// named yet: the kernel takes milliseconds to list the sockets.
    pub(super) fn note_if_outside(&self, port: u16, thread: u32) {
        let name = port.to_string();
        let is_named = |noted: &BTreeSet<String>| noted.len() >= NOTED_MAX || noted.contains(&name);
        if self.noted.lock().is_ok_and(|noted| is_named(&noted)) {
            return;
        }
        let has = |listeners: Vec<u64>| !listeners.is_empty();
        if !has(system::tcp_listeners(Some(thread), port)) && has(system::tcp_listeners(None, port)) {
            self.note_refused(port);
        }
    }

    pub(super) fn note_refused(&self, port: u16) {
        self.note(&port.to_string(), &format!("port {port} of this machine"), "network_ports");
    }

    /// Names a socket of a program outside, by the path that the session has tried.
    pub(super) fn note_socket(&self, path: &Path) {
        // The stage tries sockets which must be refused.
        let is_trying = self.probed.lock().is_ok_and(|probed| probed.is_some());
        let Ok(real) = path.canonicalize().map(|real| real.to_string_lossy().into_owned()) else { return };
        let is_socket = fs::metadata(&real).is_ok_and(|meta| meta.file_type().is_socket());
        let is_plain = real.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        let own = self.allowed.iter().chain(&self.channel);
        if path.is_absolute()
            && is_socket
            && is_plain
            && !is_trying
            && !is_of_desktop(Path::new(&real))
            && own.into_iter().all(|own| !Path::new(&real).starts_with(own))
        {
            self.note(&real, &format!("socket {real}"), "sandbox_sockets");
        }
    }

    fn note(&self, name: &str, what: &str, setting: &str) {
        let add = |noted: &mut BTreeSet<String>| noted.len() < NOTED_MAX && noted.insert(name.to_owned());
        if !self.noted.lock().is_ok_and(|mut noted| add(&mut noted)) {
            return;
        }
        let note = format!(
            "{REFUSED}{what} is a service outside of the session; to open it: liza config {setting} '[{name}]']\n"
        );
        let log = self.log.as_ref().and_then(|log| open(Open::Append, log).ok());
        let _ = log.map(|mut log| log.write_all(note.as_bytes()));
        if self.in_errors {
            let _ = io::stderr().write_all(note.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::{Ipv6Addr, SocketAddrV6, TcpListener, UdpSocket};
    use std::os::unix::net::UnixListener;
    use std::process::{Command, Stdio};

    use super::*;

    fn policy(client: u32, services: &[u16]) -> ConnectPolicy {
        let services = services.to_vec();
        ConnectPolicy { services, client: Some(client), ..ConnectPolicy::default_for_tests() }
    }

    /// Covers: RO-04
    #[test]
    fn a_service_is_reached_by_the_session_that_started_it_and_by_others_if_it_is_listed() {
        for address in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let port = listener.local_addr().unwrap().port();
            let mut stranger = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            assert_eq!(policy(std::process::id(), &[]).judge_service(port), Ok(()), "{address}");
            assert_eq!(policy(stranger.id(), &[]).judge_service(port), Err(Errno::ACCESS), "{address}");
            assert_eq!(policy(stranger.id(), &[port]).judge_service(port), Ok(()), "{address}");
            drop(stranger.stdin.take());
            stranger.wait().unwrap();
            drop(listener);
            let closed = policy(std::process::id(), &[]).judge_service(port);
            assert_eq!(closed, Err(Errno::CONNREFUSED), "{address}");
        }
    }

    /// Covers: RO-04
    #[test]
    fn a_refused_port_is_named_once_and_the_log_does_not_grow_without_end() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("log");
        let policy = ConnectPolicy { log: Some(log.clone()), ..policy(1, &[]) };
        for port in (1..100).chain(1..100) {
            policy.note_refused(port);
        }
        let text = std::fs::read_to_string(log).unwrap();
        assert_eq!(text.lines().count(), NOTED_MAX, "{text}");
        assert_eq!(text.matches("port 1 of this machine").count(), 1, "{text}");
    }

    /// Covers: IS-12
    #[test]
    fn a_refused_socket_is_named_unless_it_is_the_sessions_or_is_being_tried() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("liza-channel-1")).unwrap();
        let _sockets = ["yours", "own", "liza-channel-1/0"].map(|name| UnixListener::bind(at(name)).unwrap());
        fs::write(at("file"), "").unwrap();
        let policy = ConnectPolicy {
            log: Some(at("log")),
            allowed: vec![at("own")],
            ..ConnectPolicy::default_for_tests()
        };
        *policy.probed.lock().unwrap() = Some("127.0.0.1:1".parse().unwrap());
        policy.note_socket(&at("yours"));
        assert!(!at("log").exists());
        *policy.probed.lock().unwrap() = None;
        for name in ["yours", "own", "liza-channel-1/0", "file", "missing", "yours"] {
            policy.note_socket(&at(name));
        }
        let path = at("yours").display().to_string();
        let expected = format!(
            "{REFUSED}socket {path} is a service outside of the session; to open it: liza config sandbox_sockets '[{path}]']\n"
        );
        assert_eq!(fs::read_to_string(at("log")).unwrap(), expected);
    }

    /// Covers: RO-04
    #[test]
    fn every_name_of_this_machine_is_recognized() {
        for here in ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "0.0.0.0:1", "[::]:1"] {
            assert!(is_here(here.parse().unwrap()), "{here}");
        }
        for elsewhere in ["192.0.2.1:1", "[2001:db8::1]:1"] {
            assert!(!is_here(elsewhere.parse().unwrap()), "{elsewhere}");
        }
        // The address of an interface, if the machine has one.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        if socket.connect("192.0.2.1:9").is_ok() {
            assert!(is_here(socket.local_addr().unwrap()));
        }
    }

    /// Covers: RO-04
    #[test]
    fn each_address_of_an_interface_is_one_of_this_machine() {
        let table = fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
        for line in table.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let address = Ipv6Addr::from(u128::from_str_radix(fields[0], 16).unwrap());
            let interface = u32::from_str_radix(fields[1], 16).unwrap();
            assert!(is_here(SocketAddrV6::new(address, 80, 0, interface).into()), "{line}");
        }
        for elsewhere in ["192.0.2.77:80", "[2001:db8::77]:80", "[::ffff:192.0.2.77]:80"] {
            assert!(!is_here(elsewhere.parse().unwrap()), "{elsewhere}");
        }
        assert!(is_here("[::ffff:127.0.0.1]:80".parse().unwrap()));
    }
}

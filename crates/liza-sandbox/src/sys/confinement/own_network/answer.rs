//! Who answers a connection to the outside: a socket of this machine, or another machine. An address does not tell it: local
//! routes, and the addresses of other interfaces, lead to sockets here as well.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, getpeername, getsockname, recv, send,
    socket_with,
};

/// Numbers of the kernel's interface: see `sock_diag(7)`.
const BY_FAMILY: u16 = 20;
const IS_REQUEST: u16 = 1;
const IS_ERROR: u16 = 2;
const LISTENS: u8 = 10;

const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;
const INTERFACE_AT: usize = REQUEST - 12;

/// True if the other end of a connection is a socket of this machine: the kernel is asked for the socket with the same
/// addresses, reversed.
pub(super) fn is_answered_here(connected: &OwnedFd) -> Result<bool, Errno> {
    let address = |any| SocketAddr::try_from(any).map_err(|_| Errno::AFNOSUPPORT);
    let (own, peer) =
        (address(getsockname(connected)?)?, address(getpeername(connected)?.ok_or(Errno::NOTCONN)?)?);
    is_here(peer, own)
}

fn is_here(peer: SocketAddr, own: SocketAddr) -> Result<bool, Errno> {
    let flags = SocketFlags::CLOEXEC;
    let kernel = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(SOCK_DIAG))?;
    let mut request = request(peer, own);
    // A socket that is bound to an interface, as for an address of one link, is found with that interface only.
    for interface in [0].into_iter().chain(interfaces(&kernel)) {
        request[INTERFACE_AT..INTERFACE_AT + 4].copy_from_slice(&interface.to_ne_bytes());
        if has_socket(&kernel, &request)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_socket(kernel: &OwnedFd, request: &[u8]) -> Result<bool, Errno> {
    send(kernel, request, SendFlags::empty())?;
    let mut answer = [0; 1024];
    let (length, _) = recv(kernel, &mut answer[..], RecvFlags::empty())?;
    let word =
        |at: usize| answer.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match u16::from_ne_bytes([answer[4], answer[5]]) {
        IS_ERROR => match word(HEADER).map(|error| Errno::from_raw_os_error(-error)) {
            Some(Errno::NOENT) => Ok(false),
            other => Err(other.unwrap_or(Errno::BADMSG)),
        },
        // A listener at all addresses is found for every address: it is no end of a connection.
        BY_FAMILY if length > HEADER + 1 => Ok(answer[HEADER + 1] != LISTENS),
        _ => Err(Errno::BADMSG),
    }
}

/// The request for the socket that has the address `own_of_it` and is connected to `other`.
fn request(own_of_it: SocketAddr, other: SocketAddr) -> [u8; REQUEST] {
    let mut request = [0; REQUEST];
    let mut put = |at: usize, bytes: &[u8]| request[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &u32::try_from(REQUEST).unwrap_or_default().to_ne_bytes());
    put(4, &BY_FAMILY.to_ne_bytes());
    put(6, &IS_REQUEST.to_ne_bytes());
    let (family, protocol) = match own_of_it.ip().to_canonical() {
        IpAddr::V4(_) => (AddressFamily::INET, 6),
        IpAddr::V6(_) => (AddressFamily::INET6, 6),
    };
    put(HEADER, &[u8::try_from(family.as_raw()).unwrap_or_default(), protocol]);
    // All states.
    put(HEADER + 4, &[0xff; 4]);
    put(HEADER + 8, &own_of_it.port().to_be_bytes());
    put(HEADER + 10, &other.port().to_be_bytes());
    for (at, address) in [(HEADER + 12, own_of_it), (HEADER + 28, other)] {
        match address.ip().to_canonical() {
            IpAddr::V4(address) => put(at, &address.octets()),
            IpAddr::V6(address) => put(at, &address.octets()),
        }
    }
    // No cookie: whichever socket it is.
    put(HEADER + 48, &[0xff; 8]);
    request
}

/// The numbers of this machine's interfaces.
fn interfaces(socket: &OwnedFd) -> Vec<u32> {
    let table = fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    let names = table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim()));
    names.filter_map(|name| name_to_index(socket, name).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, SocketAddrV6, TcpListener, TcpStream};
    use std::os::fd::AsFd as _;
    use std::process::Command;
    use std::time::Instant;

    use super::super::super::connects::connect_internet;
    use super::super::super::{ConnectPolicy, local_services};
    use super::*;

    /// An address as a program hands it to the kernel.
    fn in_memory(target: SocketAddr) -> Vec<u8> {
        let SocketAddr::V6(target) = target else { panic!("{target}") };
        let family = u16::try_from(libc::AF_INET6).unwrap().to_ne_bytes();
        let port = target.port().to_be_bytes();
        [&family[..], &port, &[0; 4], &target.ip().octets(), &target.scope_id().to_ne_bytes()].concat()
    }

    fn answered_here(stream: &TcpStream) -> bool {
        is_answered_here(&stream.as_fd().try_clone_to_owned().unwrap()).unwrap()
    }

    /// Covers: RO-04
    #[test]
    fn a_socket_of_this_machine_is_found_by_the_connection_and_a_listener_is_none() {
        for (listens, target) in
            [("127.0.0.1:0", "127.0.0.1"), ("[::]:0", "::1"), ("[::]:0", "::ffff:127.0.0.1")]
        {
            let Ok(listener) = TcpListener::bind(listens) else { continue };
            let port = listener.local_addr().unwrap().port();
            let address = SocketAddr::new(target.parse().unwrap(), port);
            let stream = TcpStream::connect(address).unwrap();
            assert!(answered_here(&stream), "{target}, not accepted yet");
            let (served, _) = listener.accept().unwrap();
            assert!(answered_here(&stream), "{target}");
            drop(served);
        }
        // Somebody listens here at that port, at all addresses; another machine answers.
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let elsewhere = SocketAddr::new("192.0.2.1".parse().unwrap(), listener.local_addr().unwrap().port());
        let began = Instant::now();
        assert_eq!(is_here(elsewhere, "192.0.2.2:4000".parse().unwrap()), Ok(false));
        eprintln!("asked in {:?}", began.elapsed());
    }

    /// Covers: RO-04
    #[test]
    fn needs_unshare_what_local_routes_and_other_interfaces_lead_to_is_of_this_machine() {
        const NAME: &str = "LIZA_TEST_OWN_NETWORK";
        if std::env::var_os(NAME).is_none() {
            // In a network of its own, which has such routes.
            let script = "ip link set lo up && ip -6 route add local fd00:99::/64 dev lo && ip link add d0 type veth peer name d1 \
                          && for d in d0 d1; do ip link set $d up; done && ip addr add fe80::99/64 dev d0 nodad \
                          && ip addr add fe80::98/64 dev d1 nodad && exec \"$@\"";
            let mut own = Command::new("unshare");
            own.args(["-Urn", "sh", "-c", script, "sh"]).arg(std::env::current_exe().unwrap());
            let test = "what_local_routes_and_other_interfaces_lead_to";
            let ended = own.arg(test).arg("--nocapture").env(NAME, "1").output().unwrap();
            let said =
                String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
            assert!(ended.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let listener = TcpListener::bind("[::]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let other = name_to_index(&listener, "d1").unwrap();
        let of_link = SocketAddrV6::new("fe80::99".parse::<Ipv6Addr>().unwrap(), port, 0, other);
        let targets: [SocketAddr; 3] = [
            format!("[fd00:99::5]:{port}").parse().unwrap(),
            format!("[fd00:99::]:{port}").parse().unwrap(),
            of_link.into(),
        ];
        let policy = ConnectPolicy::default_for_tests();
        for target in targets {
            assert!(local_services::is_here(target), "{target}: a route leads here");
            assert!(answered_here(&TcpStream::connect(target).unwrap()), "{target}");
            // Without a room, where nobody asks afterwards who has answered.
            let socket =
                socket_with(AddressFamily::INET6, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
            assert_eq!(
                connect_internet(&socket, &policy, &in_memory(target)),
                Err(Errno::ACCESS),
                "{target}"
            );
        }
    }
}

//! Decides outside a session which sockets it connects to, and connects for it. Everything is decided on
//! copies that the session cannot change: the address is read once, the socket is duplicated, a path is
//! opened before it is judged, and the call is made here.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, open, openat2, stat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, connect_unspec, sockopt};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::super::peer::Silenced;
use super::super::process::pid;
use super::super::system;
use super::local_services::is_here;
use super::members::leader_of;
use super::own_network::{Answerer, Led, RoomNetwork};
use super::seccomp::{PendingCall, is_waiting};
use super::{ConnectPolicy, TcpGrants};

const ADDRESS_MAX: usize = 128;

/// The needs of a decision.
pub(super) struct Deciding {
    pub listener: OwnedFd,
    pub policy: ConnectPolicy,
    /// The network of the session's room.
    pub network: Option<Arc<RoomNetwork>>,
}

/// Makes the `connect` of a session, if it is allowed.
pub(super) fn connect_for(deciding: &Deciding, call: &PendingCall) -> Result<Led, Errno> {
    let Deciding { listener, policy, network } = deciding;
    let [number, address, length, ..] = call.arguments;
    let address = read_address(call.thread, address, length)?;
    let socket = duplicate(call.thread, number)?;
    // Thread IDs are reused: both belong to the caller only if it still waits.
    if !is_waiting(listener.as_fd(), call.id) {
        return Err(Errno::SRCH);
    }
    let domain = sockopt::socket_domain(&socket)?;
    match (domain, network) {
        (AddressFamily::UNIX, network) => {
            let has_own_names = network.is_some();
            connect_unix(&socket, policy, call.thread, &address, has_own_names).map(|()| Led::Connected)
        }
        (AddressFamily::INET | AddressFamily::INET6, None) => {
            connect_internet(&socket, policy, &address).map(|()| Led::Connected)
        }
        (AddressFamily::INET | AddressFamily::INET6, Some(network)) => {
            connect_in_room(socket, policy, network, call.thread, &address)
        }
        _ => Err(Errno::AFNOSUPPORT),
    }
}

/// Reads the address from the caller's memory.
fn read_address(thread: u32, at: u64, length: u64) -> Result<Vec<u8>, Errno> {
    let length = usize::try_from(length as u32).map_err(|_| Errno::INVAL)?;
    if !(2..=ADDRESS_MAX).contains(&length) {
        return Err(Errno::INVAL);
    }
    let memory = File::open(format!("/proc/{thread}/mem")).map_err(|_| Errno::PERM)?;
    let mut bytes = vec![0; length];
    memory.read_exact_at(&mut bytes, at).map_err(|_| Errno::FAULT)?;
    Ok(bytes)
}

/// Duplicates a descriptor of the caller.
pub(super) fn duplicate(thread: u32, number: u64) -> Result<OwnedFd, Errno> {
    let leader = leader_of(thread).and_then(pid).ok_or(Errno::SRCH)?;
    let process = pidfd_open(leader, PidfdFlags::empty())?;
    let number = i32::try_from(number as u32).map_err(|_| Errno::BADF)?;
    pidfd_getfd(process, number, PidfdGetfdFlags::empty())
}

/// `has_own_names` if abstract names are those of the session's room.
fn connect_unix(
    socket: &OwnedFd,
    policy: &ConnectPolicy,
    thread: u32,
    address: &[u8],
    has_own_names: bool,
) -> Result<(), Errno> {
    let (family, name) = split_family(address);
    match family {
        0 => return connect_unspec(socket),
        1 => {}
        _ => return Err(Errno::INVAL),
    }
    if let Some(name) = name.strip_prefix(&[0]).filter(|_| has_own_names) {
        return connect(socket, &SocketAddrUnix::new_abstract_name(name)?);
    }
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    if name.is_empty() {
        // The owner of an abstract name is unknown.
        return Err(Errno::PERM);
    }
    let path = Path::new(OsStr::from_bytes(name));
    let connected = connect_to_file(socket, policy, thread, path);
    // What is not in a room is missing there.
    if let Err(Errno::ACCESS | Errno::NOENT) = connected {
        policy.note_socket(path);
    }
    connected
}

fn connect_to_file(socket: &OwnedFd, policy: &ConnectPolicy, thread: u32, path: &Path) -> Result<(), Errno> {
    let target = open_socket(thread, path)?;
    let own = format!("/proc/self/fd/{}", target.as_raw_fd());
    let place = fs::read_link(&own).map_err(|_| Errno::ACCESS)?;
    if !policy.is_of_room(thread, &target) {
        policy.judge(thread, &place)?;
    }
    if fstat(&target)?.st_nlink > 1 {
        // One of its names is here, others may be anywhere.
        return Err(Errno::ACCESS);
    }
    // By the descriptor: nothing can be exchanged between the judgement and the call.
    connect(socket, &SocketAddrUnix::new(own.as_str())?)
}

/// Opens a path as the caller sees it, which may be in a room.
fn open_socket(thread: u32, path: &Path) -> Result<OwnedFd, Errno> {
    let place = |name: &str| PathBuf::from(format!("/proc/{thread}/{name}"));
    let path = fs::read_link(place("cwd")).map_err(|_| Errno::ACCESS)?.join(path);
    let root = open(place("root"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match openat2(&root, &path, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
        // A container may refuse this newer call; then there are no rooms.
        Err(Errno::NOSYS | Errno::PERM) => open(&path, flags, Mode::empty()),
        opened => opened,
    }
}

pub(super) fn connect_internet(
    socket: &OwnedFd,
    policy: &ConnectPolicy,
    address: &[u8],
) -> Result<(), Errno> {
    let Some(target) = internet_target(address)? else { return connect_unspec(socket) };
    // This process is not restricted by Landlock, so the ports are judged here too.
    let is_granted = policy.network.as_ref().is_none_or(|network| network.allows(target));
    let is_stream = sockopt::socket_type(socket)? == SocketType::STREAM;
    match is_stream && is_here(target) && !policy.is_proxy(target) {
        true => policy.judge_service(target.port())?,
        false if !is_granted => return Err(Errno::ACCESS),
        false => {}
    }
    connect(socket, &target)
}

/// The same in a room: within the room by the kernel, and through the room's network to what is outside of it.
fn connect_in_room(
    socket: OwnedFd,
    policy: &ConnectPolicy,
    network: &Arc<RoomNetwork>,
    thread: u32,
    address: &[u8],
) -> Result<Led, Errno> {
    let Some(target) = internet_target(address)? else {
        return connect_unspec(&socket).map(|()| Led::Connected);
    };
    let is_stream = sockopt::socket_type(&socket)? == SocketType::STREAM;
    if let Some(answerer) = policy.leads_outside(target, is_stream)? {
        return match is_stream {
            true => network.lead(socket, target, answerer).inspect_err(|error| {
                if *error == Errno::ACCESS {
                    policy.note_refused(target.port());
                }
            }),
            false => RoomNetwork::lead_nowhere(&socket, target).map(|()| Led::Connected),
        };
    }
    if is_stream && network.has_port(target.port()) {
        return Err(Errno::CONNREFUSED);
    }
    let connected = connect(&socket, &target);
    if is_stream && matches!(connected, Err(Errno::CONNREFUSED | Errno::INPROGRESS)) {
        policy.note_if_outside(target.port(), thread);
    }
    connected.map(|()| Led::Connected)
}

/// `None` ends a connection.
fn internet_target(address: &[u8]) -> Result<Option<SocketAddr>, Errno> {
    let (family, rest) = split_family(address);
    match i32::from(family) {
        libc::AF_UNSPEC => Ok(None),
        libc::AF_INET => ipv4(rest).map(Some).ok_or(Errno::INVAL),
        libc::AF_INET6 => ipv6(rest).map(Some).ok_or(Errno::INVAL),
        _ => Err(Errno::AFNOSUPPORT),
    }
}

impl TcpGrants {
    /// True for the proxy on this machine and for an open port.
    fn allows(&self, target: SocketAddr) -> bool {
        self.is_proxy(target) || self.ports.contains(&target.port())
    }

    fn is_proxy(&self, target: SocketAddr) -> bool {
        target.port() == self.proxy && target.ip().to_canonical().is_loopback()
    }
}

fn split_family(address: &[u8]) -> (u16, &[u8]) {
    let (family, rest) = address.split_at(2.min(address.len()));
    (family.try_into().map_or(u16::MAX, u16::from_ne_bytes), rest)
}

fn ipv4(rest: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(rest.get(..2)?.try_into().ok()?);
    let address: [u8; 4] = rest.get(2..6)?.try_into().ok()?;
    Some(SocketAddrV4::new(Ipv4Addr::from(address), port).into())
}

fn ipv6(rest: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(rest.get(..2)?.try_into().ok()?);
    let flow = u32::from_be_bytes(rest.get(2..6)?.try_into().ok()?);
    let address: [u8; 16] = rest.get(6..22)?.try_into().ok()?;
    let scope = rest.get(22..26).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes);
    Some(SocketAddrV6::new(Ipv6Addr::from(address), port, flow, scope).into())
}

impl ConnectPolicy {
    fn is_proxy(&self, target: SocketAddr) -> bool {
        self.network.as_ref().is_some_and(|network| network.is_proxy(target))
    }

    fn is_probed(&self, target: SocketAddr) -> bool {
        self.probed.lock().is_ok_and(|probed| *probed == Some(target))
    }

    /// Who may answer at a target that lies outside of the session's room and may be reached; `None` if it lies inside.
    fn leads_outside(&self, target: SocketAddr, is_stream: bool) -> Result<Option<Answerer>, Errno> {
        let address = target.ip().to_canonical();
        let is_service = || self.services.contains(&target.port()) && is_here(target);
        if is_stream && (self.is_proxy(target) || self.is_probed(target) || is_service()) {
            return Ok(Some(Answerer::Anyone));
        }
        if address.is_loopback() || address.is_unspecified() {
            return Ok(None);
        }
        if self.network.as_ref().is_some_and(|network| !network.allows(target)) {
            return Err(Errno::ACCESS);
        }
        if is_stream && is_here(target) {
            self.note_refused(target.port());
            return Err(Errno::ACCESS);
        }
        // An address alone does not tell whose it is: see `answer`.
        Ok(Some(Answerer::Elsewhere))
    }

    /// True for a socket in a folder that the caller's room has for itself; paths from outside can be mounted below it.
    fn is_of_room(&self, thread: u32, socket: &OwnedFd) -> bool {
        let Ok(target) = fstat(socket) else { return false };
        let own =
            self.own.iter().filter_map(|own| stat(format!("/proc/{thread}/root{}", own.display())).ok());
        own.map(|folder| folder.st_dev).any(|device| device == target.st_dev)
    }

    /// Decides whether a thread of the session may connect to the socket at this place.
    fn judge(&self, thread: u32, place: &Path) -> Result<(), Errno> {
        if self.channel.as_deref() == Some(place) {
            return self.may_speak(thread);
        }
        let is_allowed = self.allowed.iter().any(|allowed| place.starts_with(allowed));
        if is_allowed { Ok(()) } else { Err(Errno::ACCESS) }
    }

    /// Decides whether the thread may speak for the session. The error number tells the other end the reason.
    pub(crate) fn may_speak(&self, thread: u32) -> Result<(), Errno> {
        let leader = leader_of(thread).ok_or(Errno::ACCESS)?;
        let helper = std::process::id();
        let mut line = system::line_below(leader, helper).ok_or(Errno::ACCESS)?;
        line.iter_mut().for_each(|process| self.programs.complete(process));
        (self.speakers)(&line, helper, self.client).map_err(|silenced| match silenced {
            Silenced::UnderTest => Errno::ACCESS,
            Silenced::NotSpoken => Errno::PERM,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::peer::{Image, LineProcess};
    use super::*;
    use crate::confine::start::NO_SPEAKER;
    use crate::sys::confinement::NotedPrograms;

    impl ConnectPolicy {
        /// A session that may connect to nothing.
        pub(crate) fn default_for_tests() -> Self {
            Self {
                allowed: Vec::new(),
                channel: None,
                network: None,
                services: Vec::new(),
                probed: Arc::default(),
                log: None,
                in_errors: false,
                noted: Arc::default(),
                speakers: NO_SPEAKER,
                client: None,
                own: Vec::new(),
                programs: NotedPrograms::default(),
            }
        }
    }

    /// Covers: IS-06, RO-04
    #[test]
    fn in_a_closed_network_a_port_of_this_machine_is_open_on_no_other_host_and_that_of_a_probe_until_its_end()
    {
        let mut policy = ConnectPolicy { services: vec![5432], ..ConnectPolicy::default_for_tests() };
        policy.network = Some(TcpGrants::default());
        *policy.probed.lock().unwrap() = Some("127.0.0.1:4000".parse().unwrap());
        let leads = |target: &str| policy.leads_outside(target.parse().unwrap(), true);
        assert_eq!([leads("127.0.0.1:5432"), leads("127.0.0.1:4000")], [Ok(Some(Answerer::Anyone)); 2]);
        for target in ["198.51.100.1:5432", "198.51.100.1:4000", "[2001:db8::1]:4000"] {
            assert_eq!(leads(target), Err(Errno::ACCESS), "{target}");
        }
        *policy.probed.lock().unwrap() = None;
        assert_eq!(leads("127.0.0.1:4000"), Ok(None), "in the room, where nothing listens there");
    }

    /// Covers: JU-08
    #[test]
    fn what_a_process_was_is_forgotten_with_it() {
        let (programs, own) = (NotedPrograms::default(), std::process::id());
        let [python, shell] = ["/usr/bin/python3", "/bin/sh"]
            .map(|file| Image { file: Some(PathBuf::from(file)), start: Some(1) });
        let known = || {
            let mut process = LineProcess { pid: own, ..LineProcess::default() };
            programs.complete(&mut process);
            (process.before, process.is_first)
        };
        assert_eq!(known(), (Vec::new(), true), "nothing is noted");
        let started = system::start_time(own).unwrap();
        programs.note(own, started, shell.clone(), true);
        assert!(known().1, "only the agent program has become something");
        programs.note(own, 1, python.clone(), false);
        assert_eq!(known(), (Vec::new(), false), "another process had this ID");
        let again = Image { start: Some(2), ..shell.clone() };
        for image in [&shell, &shell, &python, &shell, &again] {
            programs.note(own, started, image.clone(), false);
        }
        assert_eq!(known().0, [shell.clone(), python, shell, again], "each start once, in order");
    }

    /// Covers: JU-08
    #[test]
    fn a_process_has_the_image_of_its_maker_until_it_becomes_a_program() {
        use std::io::{BufRead as _, BufReader};
        use std::process::{Command, Stdio};

        // It makes another process of itself, which becomes no program.
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec 3<&0; (read line <&3) & echo $!; wait"]);
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut copy = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut copy).unwrap();
        let [own, made, copied] =
            [std::process::id(), shell.id(), copy.trim().parse().unwrap()].map(system::image);
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(own.file.is_some() && own.start.is_some());
        assert_eq!(made, copied);
        assert_ne!(made.start, own.start);
    }

    /// Covers: IS-06
    #[test]
    fn the_proxy_is_reached_on_this_machine_only_and_an_open_port_everywhere() {
        let network = TcpGrants { proxy: 4000, ports: vec![5432] };
        let allows = |target: &str| network.allows(target.parse().unwrap());
        assert!(allows("127.0.0.1:4000") && allows("[::1]:4000") && allows("[::ffff:127.0.0.1]:4000"));
        assert!(!allows("192.0.2.1:4000") && !allows("[2001:db8::1]:4000") && !allows("127.0.0.1:4001"));
        assert!(allows("192.0.2.1:5432") && allows("127.0.0.1:5432"));
    }
}

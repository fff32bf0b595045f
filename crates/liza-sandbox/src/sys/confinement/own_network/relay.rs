//! Leads a socket of the session to a target outside. First this process connects to the target; then the socket is
//! connected to one inside the room, and the bytes are copied between both.
//!
//! A program that does not want to wait gets its socket back at once: connected to a listener that answers nothing, it
//! waits as for a slow host. When the target is there, this process connects to the socket from that listener's address:
//! both ends connect to each other, which TCP allows. So the program learns the end as it would without a room.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use liza_host::listener::{Accepting, Place, Places};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrAny, bind, connect, connect_unspec, getpeername, getsockname, ipproto, sockopt,
};

use super::names::NameServer;
use super::outside::{Answerer, Outside, has_route};
use super::pump::Pump;
use super::sockets::RoomSockets;

/// The most connections of a room at once, with those that are being made.
const CONNECTIONS_MAX: usize = 256;

/// The time that a program waits although it does not want to: for the end of a connection within this machine.
const SHORT_WAIT: Duration = Duration::from_millis(2);

/// The longest time for a connection within the room to arrive.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(10);

/// The port of datagrams that lead nowhere.
const DISCARD: u16 = 9;

/// Serves the network of a room until it is dropped.
#[derive(Debug)]
pub(crate) struct RoomNetwork {
    relay: SocketAddrV4,
    silent: SocketAddrV4,
    /// It keeps the silent address.
    _silent: std::net::TcpListener,
    seed: Mutex<OwnedFd>,
    awaited: Arc<Mutex<Awaited>>,
    connections: Places,
    pump: Arc<Pump>,
    _accepting: Accepting,
    _names: Option<NameServer>,
}

#[derive(Debug, Default)]
struct Awaited {
    /// By the port from which they come.
    arriving: BTreeMap<u16, Sender<TcpStream>>,
    /// The numbers of sockets that are connected to the silent listener.
    waiting: BTreeSet<u64>,
}

/// The end of a `connect`.
pub(crate) enum Led {
    Connected,
    /// The caller must learn that the connection is being made; then call [`LedLater::finish`].
    Later(LedLater),
}

/// A socket that waits for its target.
pub(crate) struct LedLater {
    network: Arc<RoomNetwork>,
    socket: OwnedFd,
    number: u64,
    outside: Outside,
    place: Place,
}

impl RoomNetwork {
    pub(crate) fn start(sockets: RoomSockets) -> io::Result<Arc<Self>> {
        let address = |listener: &std::net::TcpListener| match listener.local_addr()? {
            SocketAddr::V4(address) => Ok(address),
            SocketAddr::V6(_) => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        };
        let (relay, silent) = (address(&sockets.relay)?, address(&sockets.silent)?);
        let pump = Arc::new(Pump::start()?);
        let awaited = Arc::new(Mutex::new(Awaited::default()));
        let known = Arc::clone(&awaited);
        let accepting = Accepting::start(sockets.relay, move |stream: TcpStream| {
            // Whatever is not awaited is closed.
            let port = stream.peer_addr().map(|peer| peer.port());
            let waiting = port.ok().and_then(|port| lock(&known).arriving.remove(&port));
            drop(waiting.map(|waiting| waiting.send(stream)));
        })?;
        let names = sockets.names.map(|names| NameServer::start(names, Arc::clone(&pump))).transpose()?;
        Ok(Arc::new(Self {
            relay,
            silent,
            _silent: sockets.silent,
            seed: Mutex::new(sockets.seed),
            awaited,
            connections: Places::new(CONNECTIONS_MAX),
            pump,
            _accepting: accepting,
            _names: names,
        }))
    }

    /// True for the ports that serve the network itself. A program that connects there would wait for nothing.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        [self.relay, self.silent].map(|own| own.port()).contains(&port)
    }

    /// Connects a stream socket of the room to a target outside.
    pub(crate) fn lead(
        self: &Arc<Self>,
        socket: OwnedFd,
        target: SocketAddr,
        answerer: Answerer,
    ) -> Result<Led, Errno> {
        if getpeername(&socket).is_ok() {
            return Err(Errno::ISCONN);
        }
        let number = sockopt::socket_cookie(&socket)?;
        if lock(&self.awaited).waiting.contains(&number) {
            return Err(Errno::ALREADY);
        }
        let place = self.connections.take().ok_or(Errno::AGAIN)?;
        let outside = Outside::start(target, answerer)?;
        if outside.wait(patience(&socket)?)? {
            let (end, arrived) = self.meet(&socket)?;
            self.join(arrived, outside, place)?;
            return end.map(|()| Led::Connected);
        }
        match connect(&socket, &inside(&socket, self.silent)?) {
            Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
            Ok(()) => return Err(Errno::PROTO),
        }
        lock(&self.awaited).waiting.insert(number);
        Ok(Led::Later(LedLater { network: Arc::clone(self), socket, number, outside, place }))
    }

    /// Connects a datagram socket to nothing, if the target can be reached from outside: programs learn in this way which of
    /// several addresses to prefer. What they send does not leave the room.
    pub(crate) fn lead_nowhere(socket: &OwnedFd, target: SocketAddr) -> Result<(), Errno> {
        has_route(target)?;
        match sockopt::socket_domain(socket)? {
            AddressFamily::INET6 => connect(socket, &SocketAddrV6::new(Ipv6Addr::LOCALHOST, DISCARD, 0, 0)),
            _ => connect(socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, DISCARD)),
        }
    }

    /// Connects a socket of the room to the relay: the end of its `connect`, and the other end.
    fn meet(&self, socket: &OwnedFd) -> Result<(Result<(), Errno>, TcpStream), Errno> {
        // Refused if it has a port: a socket that was connected before can name one that is no longer its own.
        match bind(socket, &inside(socket, SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?) {
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error),
        }
        let arrival = self.expect(port_of(socket)?)?;
        let end = connect(socket, &inside(socket, self.relay)?);
        match end {
            Ok(()) | Err(Errno::INPROGRESS) => Ok((end, arrival.wait()?)),
            Err(error) => Err(error),
        }
    }

    fn expect(&self, port: u16) -> Result<Arrival<'_>, Errno> {
        let (sender, arrived) = channel();
        match lock(&self.awaited).arriving.insert(port, sender) {
            None => Ok(Arrival { network: self, port, arrived }),
            Some(_) => Err(Errno::ALREADY),
        }
    }

    /// A new socket of the room, made from the two ends of a connection that is given up.
    fn fresh(&self) -> Result<OwnedFd, Errno> {
        let seed = lock(&self.seed);
        let (end, arrived) = self.meet(&seed)?;
        let arrived = OwnedFd::from(arrived);
        // The first one resets the connection, so that its ports are free again at once.
        let freed = [connect_unspec(&arrived), connect_unspec(&*seed), end];
        freed.into_iter().collect::<Result<(), Errno>>().map(|()| arrived)
    }

    fn join(&self, inside: TcpStream, outside: Outside, place: Place) -> Result<(), Errno> {
        let joined = self.pump.join(inside, outside.into_stream(), place);
        joined.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::CONNABORTED))
    }
}

/// A connection that is awaited.
struct Arrival<'n> {
    network: &'n RoomNetwork,
    port: u16,
    arrived: Receiver<TcpStream>,
}

impl Arrival<'_> {
    fn wait(&self) -> Result<TcpStream, Errno> {
        self.arrived.recv_timeout(ARRIVAL_LIMIT).map_err(|_| Errno::TIMEDOUT)
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        lock(&self.network.awaited).arriving.remove(&self.port);
    }
}

impl LedLater {
    /// Waits for the target, and connects the socket or lets its connect fail.
    pub(crate) fn finish(self) {
        let Self { network, socket, number, outside, place } = self;
        let joined = outside.wait(None).and_then(|_| {
            let end = network.fresh()?;
            sockopt::set_socket_reuseport(&end, true)?;
            bind(&end, &network.silent)?;
            connect(&end, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port_of(&socket)?))?;
            network.join(end.into(), outside, place)
        });
        lock(&network.awaited).waiting.remove(&number);
        if joined.is_err() {
            let _ = connect_unspec(&socket);
        }
    }
}

fn lock<T>(known: &Mutex<T>) -> MutexGuard<'_, T> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The time that the caller of a connect waits at most; `None` for a program that waits until the end.
fn patience(socket: &OwnedFd) -> Result<Option<Duration>, Errno> {
    // Only a plain TCP socket can be connected from both ends.
    if sockopt::socket_protocol(socket)? != Some(ipproto::TCP) {
        return Ok(None);
    }
    if fcntl_getfl(socket)?.contains(OFlags::NONBLOCK) {
        return Ok(Some(SHORT_WAIT));
    }
    sockopt::socket_timeout(socket, sockopt::Timeout::Send)
}

fn port_of(socket: &OwnedFd) -> Result<u16, Errno> {
    let address = getsockname(socket)?;
    Ok(SocketAddr::try_from(address).map_or(0, |address: SocketAddr| address.port()))
}

/// An address of the room, for a socket of either family. A socket for both families takes it in the newer form.
fn inside(socket: &OwnedFd, address: SocketAddrV4) -> Result<SocketAddrAny, Errno> {
    if sockopt::socket_domain(socket)? == AddressFamily::INET {
        return Ok(address.into());
    }
    // Refused once the socket has a port; then it is for one family only, and cannot be connected.
    let _ = sockopt::set_ipv6_v6only(socket, false);
    Ok(SocketAddrV6::new(address.ip().to_ipv6_mapped(), address.port(), 0, 0).into())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::fcntl_setfl;
    use rustix::net::{SocketType, listen, socket};

    use super::*;

    /// The network of this machine, as if it were that of a room.
    fn network() -> Arc<RoomNetwork> {
        RoomNetwork::start(RoomSockets::make(Some(0)).unwrap()).unwrap()
    }

    fn new_socket(family: AddressFamily, waits: bool) -> OwnedFd {
        let socket = socket(family, SocketType::STREAM, None).unwrap();
        let flags = if waits { OFlags::empty() } else { OFlags::NONBLOCK };
        fcntl_setfl(&socket, flags).unwrap();
        socket
    }

    /// A copy, as the helper has one.
    fn copy(socket: &OwnedFd) -> OwnedFd {
        socket.try_clone().unwrap()
    }

    fn server() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// A server whose queue is full, and the connection that fills it: the next one waits.
    fn busy_server() -> (TcpListener, SocketAddr, TcpStream) {
        let (listener, address) = server();
        listen(&listener, 0).unwrap();
        let first = TcpStream::connect(address).unwrap();
        (listener, address, first)
    }

    fn events(socket: &OwnedFd, limit: Duration) -> PollFlags {
        let mut ready = [PollFd::new(socket, PollFlags::IN | PollFlags::OUT)];
        poll(&mut ready, Some(&Timespec::try_from(limit).unwrap())).unwrap();
        ready[0].revents()
    }

    const LONG: Duration = Duration::from_secs(30);

    /// Covers: RO-04, RO-07
    #[test]
    fn a_socket_of_either_family_is_led_to_its_target_and_back() {
        let network = network();
        for (family, waits) in [
            (AddressFamily::INET, true),
            (AddressFamily::INET, false),
            (AddressFamily::INET6, true),
            (AddressFamily::INET6, false),
        ] {
            let (listener, address) = server();
            let socket = new_socket(family, waits);
            let led = network.lead(copy(&socket), address, Answerer::Anyone).map(|_| ());
            assert!(matches!(led, Ok(()) | Err(Errno::INPROGRESS)), "{led:?}");
            assert_eq!(led.is_ok(), waits);
            assert_eq!(events(&socket, LONG), PollFlags::OUT, "{family:?} {waits}");
            fcntl_setfl(&socket, OFlags::empty()).unwrap();
            let again = network.lead(copy(&socket), address, Answerer::Anyone).map(|_| ());
            assert_eq!(again, Err(Errno::ISCONN));
            let (mut client, (mut served, _)) = (TcpStream::from(socket), listener.accept().unwrap());
            client.write_all(&[7; 300_000]).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
            let mut got = Vec::new();
            served.read_to_end(&mut got).unwrap();
            assert_eq!(got.len(), 300_000);
            // The other direction is still open.
            served.write_all(b"answer").unwrap();
            drop(served);
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert_eq!(answer, "answer");
        }
    }

    /// Covers: RO-07
    #[test]
    fn what_fails_outside_fails_inside_and_a_broken_answer_is_no_whole_one() {
        let network = network();
        let (listener, address) = server();
        let (client, mut served) = connected(&network, &listener, address);
        served.write_all(b"half").unwrap();
        let mut client = TcpStream::from(client);
        client.read_exact(&mut [0; 4]).unwrap();
        reset(&served);
        drop(served);
        assert_eq!(client.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        let (client, mut served) = connected(&network, &listener, address);
        let client = TcpStream::from(client);
        reset(&client);
        drop(client);
        assert_eq!(served.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        drop(listener);
        for waits in [true, false] {
            let led =
                network.lead(new_socket(AddressFamily::INET, waits), address, Answerer::Anyone).map(|_| ());
            assert_eq!(led, Err(Errno::CONNREFUSED), "{waits}");
        }
    }

    fn connected(
        network: &Arc<RoomNetwork>,
        listener: &TcpListener,
        address: SocketAddr,
    ) -> (OwnedFd, TcpStream) {
        let socket = new_socket(AddressFamily::INET, true);
        network.lead(copy(&socket), address, Answerer::Anyone).map(drop).unwrap();
        (socket, listener.accept().unwrap().0)
    }

    fn reset(stream: &TcpStream) {
        sockopt::set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
    }

    /// Covers: RO-07
    #[test]
    fn a_program_that_does_not_wait_learns_later_that_its_slow_target_is_there() {
        let network = network();
        for family in [AddressFamily::INET, AddressFamily::INET6] {
            let (listener, address, first) = busy_server();
            let socket = new_socket(family, false);
            let Ok(Led::Later(waiting)) = network.lead(copy(&socket), address, Answerer::Anyone) else {
                panic!("it waits")
            };
            assert!(events(&socket, SHORT_WAIT).is_empty(), "not connected before its target is");
            assert_eq!(
                network.lead(copy(&socket), address, Answerer::Anyone).map(|_| ()),
                Err(Errno::ALREADY)
            );
            let finished = thread::spawn(|| waiting.finish());
            let (_, (mut served, _)) = (listener.accept().unwrap(), listener.accept().unwrap());
            assert_eq!(events(&socket, LONG), PollFlags::OUT);
            finished.join().unwrap();
            fcntl_setfl(&socket, OFlags::empty()).unwrap();
            let mut client = TcpStream::from(socket);
            client.write_all(b"x").unwrap();
            served.read_exact(&mut [0]).unwrap();
            drop((served, first));
            assert_eq!(client.read(&mut [0]).unwrap(), 0);
        }
    }

    /// Covers: RO-07
    #[test]
    fn a_program_that_does_not_wait_learns_later_that_its_target_has_failed() {
        let network = network();
        let (listener, address, first) = busy_server();
        let socket = new_socket(AddressFamily::INET, false);
        let Ok(Led::Later(waiting)) = network.lead(copy(&socket), address, Answerer::Anyone) else {
            panic!("it waits")
        };
        let finished = thread::spawn(|| waiting.finish());
        drop((listener, first));
        assert!(events(&socket, LONG).contains(PollFlags::ERR));
        finished.join().unwrap();
        assert_eq!(sockopt::socket_error(&socket), Ok(Err(Errno::CONNRESET)));
        // It can be used again.
        let (listener, address) = server();
        assert!(matches!(network.lead(copy(&socket), address, Answerer::Anyone), Err(Errno::INPROGRESS)));
        assert_eq!(events(&socket, LONG), PollFlags::OUT);
        drop(listener);
        assert!(lock(&network.awaited).waiting.is_empty());
    }

    /// Covers: RO-04
    #[test]
    fn a_connection_that_was_not_asked_for_is_closed() {
        let network = network();
        let mut stranger = TcpStream::connect(network.relay).unwrap();
        assert_eq!(stranger.read(&mut [0]).unwrap_or_default(), 0);
        assert!(network.has_port(network.silent.port()) && !network.has_port(1));
    }

    /// Covers: RO-07
    #[test]
    fn a_room_has_only_so_many_connections_and_its_end_closes_them() {
        let network = network();
        let (listener, address) = server();
        let held: Vec<_> = (0..CONNECTIONS_MAX).map(|_| network.connections.take().unwrap()).collect();
        let led = network.lead(new_socket(AddressFamily::INET, true), address, Answerer::Anyone).map(|_| ());
        assert_eq!(led, Err(Errno::AGAIN));
        drop(held);
        let (_client, mut served) = connected(&network, &listener, address);
        drop(network);
        assert_eq!(served.read(&mut [0]).unwrap_or_default(), 0);
    }

    /// Covers: RO-04
    #[test]
    fn a_server_of_this_machine_that_answers_for_another_one_is_not_reached() {
        let network = network();
        for waits in [true, false] {
            let (listener, address) = server();
            let socket = new_socket(AddressFamily::INET, waits);
            let led = network.lead(copy(&socket), address, Answerer::Elsewhere).map(|_| ());
            assert_eq!(led, Err(Errno::ACCESS), "{waits}");
            let (mut served, _) = listener.accept().unwrap();
            assert_eq!(served.read(&mut [0]).unwrap_or_default(), 0, "{waits}");
        }
        let (listener, address, first) = busy_server();
        let socket = new_socket(AddressFamily::INET, false);
        let led = network.lead(copy(&socket), address, Answerer::Elsewhere);
        let Ok(Led::Later(waiting)) = led else { panic!("it waits") };
        let finished = thread::spawn(|| waiting.finish());
        let _ = listener.accept().unwrap();
        assert!(events(&socket, LONG).contains(PollFlags::ERR));
        finished.join().unwrap();
        drop(first);
    }
}

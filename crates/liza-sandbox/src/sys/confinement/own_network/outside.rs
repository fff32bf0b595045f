//! A connection from this process to a target outside of the room.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use super::answer::is_answered_here;

/// Whose answer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answerer {
    Anyone,
    /// Another machine. A server of this one sees a connection that ends at once.
    Elsewhere,
}

/// A connection that is being made. The system ends the attempt after some minutes.
#[derive(Debug)]
pub(super) struct Outside(OwnedFd, Answerer);

impl Outside {
    pub(super) fn start(target: SocketAddr, answerer: Answerer) -> Result<Self, Errno> {
        let family = if target.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        sockopt::set_socket_keepalive(&socket, true)?;
        match connect(&socket, &target) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(Self(socket, answerer)),
            Err(error) => Err(error),
        }
    }

    /// True as soon as it is connected, false if it is not within that time; fails if the wrong one answers.
    pub(super) fn wait(&self, patience: Option<Duration>) -> Result<bool, Errno> {
        let limit = patience.and_then(|patience| Timespec::try_from(patience).ok());
        let mut ready = [PollFd::new(&self.0, PollFlags::OUT)];
        loop {
            match poll(&mut ready, limit.as_ref()) {
                Err(Errno::INTR) => {}
                Ok(0) => return Ok(false),
                polled => {
                    polled?;
                    sockopt::socket_error(&self.0)??;
                    return self.check_answer().map(|()| true);
                }
            }
        }
    }

    fn check_answer(&self) -> Result<(), Errno> {
        match self.1 {
            Answerer::Elsewhere if is_answered_here(&self.0)? => Err(Errno::ACCESS),
            Answerer::Elsewhere | Answerer::Anyone => Ok(()),
        }
    }

    pub(super) fn into_stream(self) -> TcpStream {
        self.0.into()
    }
}

/// Looks whether a datagram socket would have a way to this target; sends nothing.
pub(super) fn has_route(target: SocketAddr) -> Result<(), Errno> {
    let any: IpAddr =
        if target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let tried = UdpSocket::bind((any, 0)).and_then(|socket| socket.connect(target));
    tried.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NETUNREACH))
}

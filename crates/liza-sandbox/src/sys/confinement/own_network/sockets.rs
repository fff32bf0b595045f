//! The sockets that process 1 makes inside a room, for the helper outside.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use super::super::seccomp;

/// A port that the system chooses.
const ANY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
const WAITING_MAX: i32 = 1024;

#[derive(Debug)]
pub(crate) struct RoomSockets {
    /// Accepts the sockets of the session that are led to it.
    pub relay: TcpListener,
    /// Answers nothing: who connects to it waits.
    pub silent: TcpListener,
    /// Further sockets of the room are made with it.
    pub seed: OwnedFd,
    /// The name server; `None` if the network is not open.
    pub names: Option<NameSockets>,
}

#[derive(Debug)]
pub(crate) struct NameSockets {
    pub datagrams: UdpSocket,
    pub streams: TcpListener,
}

impl RoomSockets {
    /// Makes them in the network of this process; `name_port` is the port of its name server.
    pub(crate) fn make(name_port: Option<u16>) -> io::Result<Self> {
        let seed = stream()?;
        bind(&seed, &ANY)?;
        let names = name_port.map(|port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).map(|address| {
            let datagrams = UdpSocket::bind(address)?;
            let streams = TcpListener::bind((Ipv4Addr::LOCALHOST, datagrams.local_addr()?.port()))?;
            io::Result::Ok(NameSockets { datagrams, streams })
        });
        Ok(Self { relay: TcpListener::bind(ANY)?, silent: silent()?, seed, names: names.transpose()? })
    }

    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let names = self.names.iter().flat_map(|names| [names.datagrams.as_fd(), names.streams.as_fd()]);
        [self.relay.as_fd(), self.silent.as_fd(), self.seed.as_fd()].into_iter().chain(names).collect()
    }

    /// The sockets of [`Self::descriptors`].
    pub(crate) fn from_descriptors(descriptors: impl IntoIterator<Item = OwnedFd>) -> Option<Self> {
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next();
        let (relay, silent, seed) = (next()?.into(), next()?.into(), next()?);
        let names = next().zip(next());
        let names = names
            .map(|(datagrams, streams)| NameSockets { datagrams: datagrams.into(), streams: streams.into() });
        Some(Self { relay, silent, seed, names })
    }
}

fn stream() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// A listener whose packets are all dropped. Other sockets of this user can take its address and connect from it.
fn silent() -> io::Result<TcpListener> {
    let socket = stream()?;
    sockopt::set_socket_reuseport(&socket, true)?;
    seccomp::drop_packets(socket.as_fd())?;
    bind(&socket, &ANY)?;
    listen(&socket, WAITING_MAX)?;
    Ok(socket.into())
}

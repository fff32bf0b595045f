//! The network of a room, made by its first process: a loopback, and the sockets with which the helper serves it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;

use crate::sys::confinement::RoomSockets;

use super::calls::raise_loopback;
use super::step;

const NAME_PORT: u16 = 53;

const OWN_SERVER: &str = "nameserver 127.0.0.1";

/// From this port on, programs without privileges can listen.
const FIRST_PORT: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

pub(super) fn make(has_names: bool) -> io::Result<RoomSockets> {
    step("switch the loopback on", || raise_loopback(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?.as_fd()))?;
    // In a container it can be read-only; then ports from 1024 on are free.
    let _ = fs::write(FIRST_PORT, "0");
    let sockets = step("listen in the room", || RoomSockets::make(has_names.then_some(NAME_PORT)))?;
    step("connect in the room", || TcpStream::connect(sockets.relay.local_addr()?).map(drop))?;
    Ok(sockets)
}

/// The settings for name servers with the room's own server; the rest of them stays.
pub(super) fn name_settings(outside: &str) -> String {
    let kept = outside.lines().filter(|line| !line.trim_start().starts_with("nameserver"));
    kept.chain([OWN_SERVER]).flat_map(|line| [line, "\n"]).collect()
}

//! Leads connections of this machine to a server in a room. This process enters the network of the room and nothing else
//! of it, connects there, and copies bytes: no socket from outside gets into the room.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use liza_host::listener::{Accepting, Places};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, set_parent_process_death_signal};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::super::super::process::identity as process_identity;
use super::super::drop_capabilities;
use super::outside::{Answerer, Outside};
use super::pump::Pump;

/// The most connections at once.
const CONNECTIONS_MAX: usize = 256;

/// The longest time for a connection within the room.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Serves the listener until the process in the room has ended. Writes an empty line to `caller` when it is ready, and a
/// line for each connection for which nothing listens there. This process must have only one thread, and dies with the caller.
pub(crate) fn forward(
    listener: TcpListener,
    (process, identity): (u32, &str),
    port: u16,
    mut caller: impl Write + Send + 'static,
) -> io::Result<()> {
    let process = enter_network(process, identity)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // If the caller has died before, no signal comes, but this fails.
    caller.write_all(b"\n")?;
    let (pump, places) = (Arc::new(Pump::start()?), Places::new(CONNECTIONS_MAX));
    let caller = Arc::new(Mutex::new(caller));
    let _accepting = Accepting::start(listener, move |client: TcpStream| {
        let (pump, caller, Some(place)) = (Arc::clone(&pump), Arc::clone(&caller), places.take()) else {
            return;
        };
        drop(thread::Builder::new().spawn(move || match connect(port) {
            Some(server) => drop(pump.join(client, server, place)),
            None => drop(writeln!(caller.lock().unwrap_or_else(PoisonError::into_inner), "refused")),
        }));
    })?;
    while !has_ended(&process, None)? {}
    Ok(())
}

/// Moves this process to the network of another one, without any rights there; returns that process. Fails if another process has
/// its number by now.
fn enter_network(process: u32, identity: &str) -> io::Result<OwnedFd> {
    let number = i32::try_from(process).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    let space = |of: Pid, name: &str| format!("/proc/{}/ns/{name}", of.as_raw_nonzero());
    let is_it = process_identity(process).is_some_and(|now| now == identity);
    let process = pidfd_open(number, PidfdFlags::empty())?;
    let [users, network] = ["user", "net"].map(|name| File::open(space(number, name)));
    let (users, network) = (users?, network?);
    if !is_it || has_ended(&process, Some(Duration::ZERO))? {
        return Err(io::Error::from(Errno::SRCH));
    }
    if network.metadata()?.ino() == fs::metadata(space(getpid(), "net"))?.ino() {
        return Err(io::Error::other("it has no network of its own"));
    }
    move_into_link_name_space(users.as_fd(), Some(LinkNameSpaceType::User))?;
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
    match drop_capabilities() {
        Some(why) => Err(io::Error::other(why)),
        None => Ok(process),
    }
}

/// True as soon as the process has ended, false if it has not within that time.
fn has_ended(process: &OwnedFd, limit: Option<Duration>) -> io::Result<bool> {
    let limit = limit.map(|limit| Timespec { tv_sec: limit.as_secs().cast_signed(), tv_nsec: 0 });
    match poll(&mut [PollFd::new(process, PollFlags::IN)], limit.as_ref()) {
        Err(Errno::INTR) => Ok(false),
        polled => Ok(polled? > 0),
    }
}

/// Connects to a server of this network, whichever of the two addresses it has.
fn connect(port: u16) -> Option<TcpStream> {
    let addresses: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    addresses.into_iter().find_map(|address| {
        let server = Outside::start(SocketAddr::new(address, port), Answerer::Anyone).ok()?;
        server.wait(Some(CONNECT_LIMIT)).is_ok_and(|is_there| is_there).then(|| server.into_stream())
    })
}

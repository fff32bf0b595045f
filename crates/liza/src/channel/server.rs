//! The supervisor's end: accepts connections of one session, checks who is there, and executes one command for each.
//!
//! Only processes below the session's helper are served, and only a few at a time; nothing that they do can make another
//! session wait.

use std::fs;
use std::io::{self, PipeReader, PipeWriter};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::identity::is_check;
use crate::sys::peer::Peer;

use super::command_rate::CommandRate;
use super::folder::SocketFolder;
use super::message::{self, CALL_MAX, Refused, ServerMessage, SessionCall};
use super::secret::{is_equal, random_hex};
use super::{Address, ServedSession, SessionCommands};

/// How many commands of a session may run at once.
const CONNECTIONS_MAX: usize = 8;

/// How long a command may take to arrive, and its caller to take a piece of the answer.
const TRANSFER_LIMIT: Duration = Duration::from_secs(10);

/// How often a caller learns that its command still runs.
pub(super) const WORKING_INTERVAL: Duration = Duration::from_secs(5);

/// A channel that is open and not served yet: its session has not started.
pub(crate) struct Channel {
    address: Address,
    listener: UnixListener,
    session: ServedSession,
    commands: Arc<dyn SessionCommands>,
}

impl Channel {
    /// Opens a channel for a session.
    ///
    /// # Errors
    /// When the socket cannot be created.
    pub(crate) fn open(
        folder: &SocketFolder,
        session: ServedSession,
        commands: Arc<dyn SessionCommands>,
    ) -> io::Result<Self> {
        let address = Address { socket: folder.next(), secret: random_hex(16)? };
        let listener = UnixListener::bind(&address.socket)?;
        listener.set_nonblocking(true)?;
        Ok(Self { address, listener, session, commands })
    }

    /// Where the session finds it.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Serves the processes below the session's helper until the result is dropped.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub(crate) fn serve(self, helper: u32) -> io::Result<OpenChannel> {
        let Self { address: Address { socket, secret }, listener, session, commands } = self;
        let (end, stop) = io::pipe()?;
        let rate = Mutex::new(CommandRate::new(Instant::now()));
        let server = Server { helper, secret, session, commands, rate, running: AtomicUsize::new(0) };
        thread::spawn(move || accept(&Arc::new(server), &listener, &end));
        Ok(OpenChannel { socket, _stop: stop })
    }
}

/// A channel that is served. Dropping it closes the socket; commands that run are finished.
#[derive(Debug)]
pub(crate) struct OpenChannel {
    socket: PathBuf,
    /// Closed, it ends the thread.
    _stop: PipeWriter,
}

impl Drop for OpenChannel {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

struct Server {
    helper: u32,
    secret: String,
    session: ServedSession,
    commands: Arc<dyn SessionCommands>,
    rate: Mutex<CommandRate>,
    running: AtomicUsize,
}

/// One of the few places for a running command.
struct Slot(Arc<Server>);

impl Slot {
    fn take(server: &Arc<Server>) -> Option<Self> {
        let slot = Slot(Arc::clone(server));
        (server.running.fetch_add(1, Ordering::SeqCst) < CONNECTIONS_MAX).then_some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

fn accept(server: &Arc<Server>, listener: &UnixListener, end: &PipeReader) {
    loop {
        let mut ready = [PollFd::new(listener, PollFlags::IN), PollFd::new(end, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) if !ready[1].revents().is_empty() => return,
            Ok(_) => {}
        }
        match listener.accept() {
            Ok((connection, _)) => server.admit(connection),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // Out of descriptors, for example. The others need this thread's time to release some.
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

impl Server {
    /// Gives a connection a thread, unless its peer has no right to one.
    fn admit(self: &Arc<Self>, mut connection: UnixStream) {
        let peer = Peer::of(&connection).map_err(|_| Refused::Stranger).and_then(|peer| self.check(peer));
        let slot = peer.and_then(|peer| Ok((peer, Slot::take(self).ok_or(Refused::Busy)?)));
        match slot {
            Ok((peer, slot)) => drop(thread::spawn(move || serve(slot, connection, peer))),
            Err(why) => {
                // The caller may be gone, or may not read; the next one must not wait for it.
                let limit = Duration::from_millis(10);
                let _ = message::write(&mut connection, &ServerMessage::Refused(why), limit);
            }
        }
    }

    /// Whether the peer speaks for this session.
    fn check(&self, peer: Peer) -> Result<Peer, Refused> {
        let line = peer.line_below(self.helper).filter(|_| peer.is_own_user).ok_or(Refused::Stranger)?;
        if line.iter().any(|command| is_check(command)) { Err(Refused::UnderTest) } else { Ok(peer) }
    }

    /// Receives the call of a peer that was admitted.
    fn receive(&self, connection: &mut UnixStream, peer: Peer) -> Result<SessionCall, Refused> {
        let received = message::read::<SessionCall>(connection, CALL_MAX, TRANSFER_LIMIT);
        let call = received.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => Refused::TooSlow,
            _ => Refused::Malformed,
        })?;
        if !is_equal(&call.secret, &self.secret) {
            return Err(Refused::Stranger);
        }
        let wait = self.rate.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now());
        thread::sleep(wait);
        // Again: the one who connected may have ended, and its ID may belong to another process now.
        self.check(peer)?;
        Ok(call)
    }
}

/// Receives and executes one command, and sends its answer.
fn serve(slot: Slot, mut connection: UnixStream, peer: Peer) {
    // Some systems hand the listener's mode on.
    let _ = connection.set_nonblocking(false);
    let received = slot.0.receive(&mut connection, peer);
    let message = match received {
        Err(why) => ServerMessage::Refused(why),
        Ok(call) => match execute(slot, call, &mut connection) {
            Some(message) => message,
            None => return,
        },
    };
    // If the caller is gone or does not read, the command is done all the same.
    let _ = message::write(&mut connection, &message, TRANSFER_LIMIT);
}

/// Executes a command in a thread of its own, with signs of life for the caller; `None` if that one is gone.
fn execute(slot: Slot, call: SessionCall, connection: &mut UnixStream) -> Option<ServerMessage> {
    let start = Instant::now();
    let limit = slot.0.session.limit;
    let (sender, answer) = sync_channel(1);
    // The slot is free when the command has ended, not when its caller has stopped waiting.
    thread::spawn(move || sender.send(slot.0.commands.execute(&slot.0.session, call)));
    loop {
        let left = limit.saturating_sub(start.elapsed());
        match answer.recv_timeout(left.min(WORKING_INTERVAL)) {
            Ok(answer) => return Some(ServerMessage::Answer(answer)),
            Err(RecvTimeoutError::Disconnected) => return Some(ServerMessage::Refused(Refused::Crashed)),
            Err(RecvTimeoutError::Timeout) if start.elapsed() >= limit => {
                return Some(ServerMessage::Refused(Refused::OverLimit));
            }
            Err(RecvTimeoutError::Timeout) => {
                message::write(connection, &ServerMessage::Working, TRANSFER_LIMIT).ok()?;
            }
        }
    }
}

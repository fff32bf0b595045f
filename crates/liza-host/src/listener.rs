//! The accept loop of a socket that agents can reach: it ends with its owner, and serves a bounded number.

use std::io::{self, PipeReader, PipeWriter};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

pub trait Listener: AsFd + Send + 'static {
    type Connection;

    fn next(&self) -> io::Result<Self::Connection>;
    /// Makes [`Self::next`] return at once: the connection that poll announced may be gone again.
    fn never_wait(&self) -> io::Result<()>;
}

impl Listener for UnixListener {
    type Connection = UnixStream;

    fn next(&self) -> io::Result<UnixStream> {
        let (connection, _) = self.accept()?;
        // Some systems hand the listener's mode on.
        connection.set_nonblocking(false).map(|()| connection)
    }

    fn never_wait(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

impl Listener for TcpListener {
    type Connection = TcpStream;

    fn next(&self) -> io::Result<TcpStream> {
        let (connection, _) = self.accept()?;
        connection.set_nonblocking(false).map(|()| connection)
    }

    fn never_wait(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

/// An accept loop. Dropping it ends the loop and closes the socket; accepted connections go on.
#[derive(Debug)]
pub struct Accepting {
    /// Closing it wakes the loop.
    _stop: PipeWriter,
}

impl Accepting {
    /// Accepts connections on a thread of its own. The next one waits until `admit` returns.
    pub fn start<L: Listener>(
        listener: L,
        admit: impl Fn(L::Connection) + Send + 'static,
    ) -> io::Result<Self> {
        listener.never_wait()?;
        let (end, stop) = io::pipe()?;
        thread::Builder::new().spawn(move || accept(&listener, &end, &admit))?;
        Ok(Self { _stop: stop })
    }
}

fn accept<L: Listener>(listener: &L, end: &PipeReader, admit: &dyn Fn(L::Connection)) {
    loop {
        let mut ready = [PollFd::new(listener, PollFlags::IN), PollFd::new(end, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) if !ready[1].revents().is_empty() => return,
            Ok(_) => {}
        }
        match listener.next() {
            Ok(connection) => admit(connection),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // Out of descriptors, for example. The other threads need time to release some.
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

#[derive(Debug)]
pub struct Places {
    taken: Arc<AtomicUsize>,
    max: usize,
}

/// One of the places. Dropping it makes room for another connection.
#[derive(Debug)]
pub struct Place(Arc<AtomicUsize>);

impl Places {
    pub fn new(max: usize) -> Self {
        Self { taken: Arc::default(), max }
    }

    /// Takes a place; `None` if all are taken.
    pub fn take(&self) -> Option<Place> {
        let place = Place(Arc::clone(&self.taken));
        (self.taken.fetch_add(1, Ordering::SeqCst) < self.max).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

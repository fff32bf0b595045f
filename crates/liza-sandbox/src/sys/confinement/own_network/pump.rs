//! Copies between pairs of connections, all in one thread. A connection that ends in one direction stays open in the
//! other, and one that is reset resets its partner: a program must not take a broken answer for a whole one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use liza_host::listener::Place;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::sockopt;

const CHUNK: usize = 64 << 10;

/// The most chunks of a pair before the others get their turn.
const CHUNKS_IN_TURN: usize = 16;

const EVENTS_MAX: usize = 64;

/// The number that stands for the wake-up of the thread; pairs have higher ones.
const WAKE: u64 = 0;

/// Gives pairs to the thread; the thread ends, with all connections, when the last copy of this is dropped.
#[derive(Debug)]
pub(super) struct Pump {
    pairs: Sender<Pair>,
    wake: PipeWriter,
}

impl Pump {
    pub(super) fn start() -> io::Result<Self> {
        let (pairs, new) = channel();
        let (end, wake) = io::pipe()?;
        let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&events, &end, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        rustix::io::ioctl_fionbio(&end, true)?;
        let mut thread = PumpThread { events, end, new, pairs: BTreeMap::new(), chunk: vec![0; CHUNK] };
        thread::Builder::new().spawn(move || thread.run())?;
        Ok(Self { pairs, wake })
    }

    /// Copies between both until both have ended.
    pub(super) fn join(&self, one: TcpStream, other: TcpStream, place: Place) -> io::Result<()> {
        for end in [&one, &other] {
            end.set_nonblocking(true)?;
            end.set_nodelay(true)?;
        }
        let pair = Pair { ends: [one, other], flows: Default::default(), _place: place };
        self.pairs.send(pair).map_err(io::Error::other)?;
        (&self.wake).write_all(&[0])
    }
}

#[derive(Debug)]
struct Pair {
    ends: [TcpStream; 2],
    /// From the first end to the second, and back.
    flows: [Flow; 2],
    _place: Place,
}

/// The bytes on their way in one direction.
#[derive(Debug, Default)]
struct Flow {
    /// Read and not yet written.
    left: Vec<u8>,
    has_ended: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// The pair waits for its ends.
    Waits,
    /// There may be more at once.
    HasMore,
    Ended,
}

struct PumpThread {
    events: OwnedFd,
    end: PipeReader,
    new: Receiver<Pair>,
    pairs: BTreeMap<u64, Pair>,
    chunk: Vec<u8>,
}

impl PumpThread {
    fn run(&mut self) {
        let mut busy = BTreeSet::new();
        let mut next = WAKE + 1;
        let at_once = Timespec::try_from(Duration::ZERO).ok();
        loop {
            let mut ready = Vec::with_capacity(EVENTS_MAX);
            let limit = at_once.as_ref().filter(|_| !busy.is_empty());
            match epoll::wait(&self.events, rustix::buffer::spare_capacity(&mut ready), limit) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            for number in ready.iter().map(|event| event.data.u64()) {
                if number != WAKE {
                    busy.insert(number);
                } else if !self.take_new(&mut next, &mut busy) {
                    return;
                }
            }
            busy.retain(|number| self.advance(*number) == Turn::HasMore);
        }
    }

    /// Takes pairs that were given; false if no more will come.
    fn take_new(&mut self, next: &mut u64, busy: &mut BTreeSet<u64>) -> bool {
        let is_open = !matches!(self.end.read(&mut [0; EVENTS_MAX]), Ok(0));
        while let Ok(pair) = self.new.try_recv() {
            // Each change is told once, so each turn goes on until nothing is left.
            let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP;
            let flags = flags | epoll::EventFlags::ET;
            let data = epoll::EventData::new_u64(*next);
            if pair.ends.iter().all(|end| epoll::add(&self.events, end.as_fd(), data, flags).is_ok()) {
                self.pairs.insert(*next, pair);
                busy.insert(*next);
                *next += 1;
            }
        }
        is_open
    }

    fn advance(&mut self, number: u64) -> Turn {
        let Some(pair) = self.pairs.get_mut(&number) else { return Turn::Ended };
        let turn = pair.advance(&mut self.chunk).unwrap_or_else(|_| {
            pair.ends.iter().for_each(reset_when_closed);
            Turn::Ended
        });
        if turn == Turn::Ended {
            self.pairs.remove(&number);
        }
        turn
    }
}

fn reset_when_closed(end: &TcpStream) {
    let _ = sockopt::set_socket_linger(end, Some(Duration::ZERO));
}

impl Pair {
    fn advance(&mut self, chunk: &mut [u8]) -> io::Result<Turn> {
        let [one, other] = &self.ends;
        let [there, back] = &mut self.flows;
        let turns = [there.advance(one, other, chunk)?, back.advance(other, one, chunk)?];
        Ok(match turns {
            [Turn::Ended, Turn::Ended] => Turn::Ended,
            turns if turns.contains(&Turn::HasMore) => Turn::HasMore,
            _ => Turn::Waits,
        })
    }
}

impl Flow {
    fn advance(&mut self, mut from: &TcpStream, mut to: &TcpStream, chunk: &mut [u8]) -> io::Result<Turn> {
        for _ in 0..CHUNKS_IN_TURN {
            if !self.left.is_empty() {
                match unless_it_waits(to.write(&self.left))? {
                    Some(written) => drop(self.left.drain(..written)),
                    None => return Ok(Turn::Waits),
                }
                continue;
            }
            if self.has_ended {
                return Ok(Turn::Ended);
            }
            let Some(read) = unless_it_waits(from.read(chunk))? else { return Ok(Turn::Waits) };
            if read == 0 {
                self.has_ended = true;
                // A partner that has gone as well is no error.
                let _ = to.shutdown(Shutdown::Write);
                return Ok(Turn::Ended);
            }
            let bytes = chunk.get(..read).unwrap_or_default();
            let written = unless_it_waits(to.write(bytes))?.unwrap_or_default();
            self.left.extend_from_slice(bytes.get(written..).unwrap_or_default());
        }
        Ok(Turn::HasMore)
    }
}

fn unless_it_waits(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

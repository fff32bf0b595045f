//! The name server of a room: hands each question to the servers of this machine, and the answer back.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use liza_host::listener::{Accepting, Places};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::outside::{Answerer, Outside};
use super::pump::Pump;
use super::sockets::NameSockets;

/// The most questions at once.
const QUESTIONS_MAX: usize = 64;

/// The longest time for a server's answer; then the next one is asked. Clients ask again after five seconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

const DATAGRAM_MAX: usize = 64 << 10;
const HEADER_LENGTH: usize = 12;
const SERVER_PORT: u16 = 53;
const SERVERS_MAX: usize = 3;
const SETTINGS: &str = "/etc/resolv.conf";

/// A name server that serves. Dropping it ends its threads.
#[derive(Debug)]
pub(super) struct NameServer {
    _accepting: Accepting,
    /// Closing it wakes the thread for datagrams.
    _stop: io::PipeWriter,
}

impl NameServer {
    pub(super) fn start(sockets: NameSockets, pump: Arc<Pump>) -> io::Result<Self> {
        let places = Arc::new(Places::new(QUESTIONS_MAX));
        let (end, stop) = io::pipe()?;
        let datagrams = Arc::new(sockets.datagrams);
        let taken = Arc::clone(&places);
        thread::Builder::new().spawn(move || answer_datagrams(&datagrams, &end, &taken))?;
        let accepting = Accepting::start(sockets.streams, move |client| {
            let (pump, Some(place)) = (Arc::clone(&pump), places.take()) else { return };
            drop(thread::Builder::new().spawn(move || {
                let server = servers().into_iter().find_map(|server| {
                    let server = Outside::start(server, Answerer::Anyone).ok()?;
                    server.wait(Some(ANSWER_LIMIT)).is_ok_and(|is_there| is_there).then_some(server)
                });
                server.map(|server| pump.join(client, server.into_stream(), place))
            }));
        })?;
        Ok(Self { _accepting: accepting, _stop: stop })
    }
}

fn answer_datagrams(socket: &Arc<UdpSocket>, end: &io::PipeReader, places: &Places) {
    let mut question = vec![0; DATAGRAM_MAX];
    loop {
        let mut ready = [PollFd::new(&**socket, PollFlags::IN), PollFd::new(end, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) if !ready[1].revents().is_empty() => return,
            Ok(_) => {}
        }
        let Ok((length, client)) = socket.recv_from(&mut question) else { continue };
        let question = question.get(..length).unwrap_or_default().to_vec();
        // Without a place or a thread the question is lost; the client asks again.
        let Some(place) = places.take() else { continue };
        let socket = Arc::clone(socket);
        drop(thread::Builder::new().spawn(move || {
            let _place = place;
            let answer = refusal(&question).or_else(|| ask_servers(&question, &servers()));
            answer.map(|answer| socket.send_to(&answer, client))
        }));
    }
}

/// The answer to a message that asks nothing: an update, a notice or an answer would change the server that gets it.
fn refusal(question: &[u8]) -> Option<Vec<u8>> {
    let header = question.get(..HEADER_LENGTH)?;
    let is_question = header.get(2).is_some_and(|flags| flags & 0xf8 == 0);
    let asks_nothing = !is_question || header.get(4..6) == Some(&[0, 0]);
    let mut answer = header.to_vec();
    // A response, with the code for a format error.
    *answer.get_mut(2)? |= 0x80;
    *answer.get_mut(3)? = 1;
    asks_nothing.then_some(answer)
}

/// The first answer of one of these servers.
fn ask_servers(question: &[u8], servers: &[SocketAddr]) -> Option<Vec<u8>> {
    let id = question.get(..HEADER_LENGTH)?.get(..2)?;
    servers.iter().find_map(|server| {
        let any: IpAddr =
            if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(server).ok()?;
        socket.set_read_timeout(Some(ANSWER_LIMIT)).ok()?;
        socket.send(question).ok()?;
        let mut answer = vec![0; DATAGRAM_MAX];
        let length = socket.recv(&mut answer).ok()?;
        answer.truncate(length);
        answer.starts_with(id).then_some(answer)
    })
}

/// The name servers of this machine, as its programs find them.
fn servers() -> Vec<SocketAddr> {
    servers_in(&fs::read_to_string(SETTINGS).unwrap_or_default())
}

fn servers_in(settings: &str) -> Vec<SocketAddr> {
    let words = settings.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    // An address with the name of an interface cannot be used without its number.
    let mut servers: Vec<SocketAddr> = words
        .filter_map(|word| word.trim().parse::<IpAddr>().ok())
        .map(|address| SocketAddr::new(address, SERVER_PORT))
        .take(SERVERS_MAX)
        .collect();
    if servers.is_empty() {
        servers.push(SocketAddr::from((Ipv4Addr::LOCALHOST, SERVER_PORT)));
    }
    servers
}

#[cfg(test)]
mod tests {
    use super::super::sockets::RoomSockets;
    use super::*;

    /// Covers: RO-07
    #[test]
    fn the_servers_are_those_of_the_machine_and_else_the_machine_itself() {
        let found = |settings: &str, servers: &[&str]| {
            let servers: Vec<SocketAddr> = servers.iter().map(|server| server.parse().unwrap()).collect();
            assert_eq!(servers_in(settings), servers, "{settings}");
        };
        found(
            "search x\nnameserver 192.0.2.7\n nameserver\t2001:db8::7\n",
            &["192.0.2.7:53", "[2001:db8::7]:53"],
        );
        found("# nameserver 192.0.2.7\nnameserver fe80::1%eth0\n", &["127.0.0.1:53"]);
        found("nameserver 192.0.2.1\n".repeat(5).as_str(), &["192.0.2.1:53"; SERVERS_MAX]);
    }

    /// Covers: RO-07
    #[test]
    fn a_question_goes_to_the_next_server_if_the_first_one_does_not_know_it() {
        let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let wrong = silent.local_addr().unwrap();
        let answers = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let right = answers.local_addr().unwrap();
        let lies = thread::spawn(move || {
            let (_, client) = silent.recv_from(&mut [0; 64]).unwrap();
            silent.send_to(b"another question", client).unwrap();
        });
        let answered = thread::spawn(move || {
            let (_, client) = answers.recv_from(&mut [0; 64]).unwrap();
            answers.send_to(b"\x01\x02 the answer", client).unwrap();
        });
        let question = b"\x01\x02..\x00\x01...... question";
        assert_eq!(ask_servers(question, &[wrong, right]).unwrap(), b"\x01\x02 the answer");
        lies.join().unwrap();
        answered.join().unwrap();
        assert_eq!(ask_servers(b"short", &[right]), None);
    }

    /// Covers: RO-07
    #[test]
    fn a_message_that_asks_nothing_is_answered_without_a_server() {
        let sockets = RoomSockets::make(Some(0)).unwrap().names.unwrap();
        let server = sockets.datagrams.local_addr().unwrap();
        let serves = NameServer::start(sockets, Arc::new(Pump::start().unwrap())).unwrap();
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        client.connect(server).unwrap();
        // No question, an update, a notice, an answer.
        for (flags, questions) in [(0x01, 0), (0x28, 1), (0x20, 1), (0x81, 1)] {
            client.send(&[7, 8, flags, 0, 0, questions, 0, 0, 0, 0, 0, 0]).unwrap();
            let mut answer = [0; 64];
            let length = client.recv(&mut answer).unwrap();
            assert_eq!(answer[..length], [7, 8, flags | 0x80, 1, 0, questions, 0, 0, 0, 0, 0, 0]);
        }
        drop(serves);
    }
}

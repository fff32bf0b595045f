//! The supervisor's end: accepts connections of one session, checks the peer, and executes one command for
//! each. Serves only processes below the session's helper, a few at a time, so that no session delays
//! another.

use std::fs;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use liza_host::listener::{Accepting, Place, Places};
use liza_host::random_text::{is_equal, random_hex};
use liza_sandbox::socket_folder::SocketFolder;
use liza_sandbox::sys::peer::{LineProcess, Peer, Silenced};

use crate::project::identity::Speakers;

use super::command_rate::CommandRate;
use super::message::{self, CALL_MAX, Refused, SENT_MAX, ServerMessage, SessionCall};
use super::{Address, LastRefusal, ServedSession, SessionCommands};

const CONNECTIONS_MAX: usize = 8;

/// The longest time for a command to arrive, and for its caller to take a piece of the answer.
const TRANSFER_LIMIT: Duration = Duration::from_secs(10);

/// The interval at which a caller learns that its command still runs.
pub(super) const WORKING_INTERVAL: Duration = Duration::from_secs(5);

/// A channel that is open and not served yet: its session has not started.
pub struct Channel {
    address: Address,
    listener: UnixListener,
    session: ServedSession,
    commands: Arc<dyn SessionCommands>,
}

impl Channel {
    pub fn open(
        folder: &SocketFolder,
        session: ServedSession,
        commands: Arc<dyn SessionCommands>,
    ) -> io::Result<Self> {
        let address = Address { socket: folder.next(), secret: random_hex(16)? };
        let listener = UnixListener::bind(&address.socket)?;
        Ok(Self { address, listener, session, commands })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn last_refusal(&self) -> LastRefusal {
        self.session.last_refusal.clone()
    }

    /// Serves the processes below the session's helper until the result is dropped.
    pub fn serve(self, helper: u32) -> io::Result<OpenChannel> {
        let Self { address: Address { socket, secret }, listener, session, commands } = self;
        let rate = Mutex::new(CommandRate::new(Instant::now()));
        let client = Arc::new(Client::default());
        let (running, sent) = (Places::new(CONNECTIONS_MAX), AtomicUsize::new(0));
        let known = Arc::clone(&client);
        let server =
            Arc::new(Server { helper, client: known, secret, session, commands, rate, running, sent });
        let accepting = Accepting::start(listener, move |connection| server.admit(connection))?;
        Ok(OpenChannel { socket, client, _accepting: accepting })
    }
}

/// A channel that is served. Dropping it closes the socket; commands that run are finished.
#[derive(Debug)]
pub struct OpenChannel {
    socket: PathBuf,
    client: Arc<Client>,
    _accepting: Accepting,
}

impl OpenChannel {
    /// Names the process of the agent program, once it runs.
    pub(crate) fn client_is(&self, pid: u32) {
        *self.client.pid.lock().unwrap_or_else(PoisonError::into_inner) = Some(pid);
        self.client.is_known.notify_all();
    }
}

/// The process of the agent program, which may send its first command before its helper has reported it.
#[derive(Debug, Default)]
struct Client {
    pid: Mutex<Option<u32>>,
    is_known: Condvar,
}

impl Client {
    fn wait(&self, limit: Duration) -> Option<u32> {
        let pid = self.pid.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.is_known.wait_timeout_while(pid, limit, |pid| pid.is_none());
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Drop for OpenChannel {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

struct Server {
    helper: u32,
    client: Arc<Client>,
    secret: String,
    session: ServedSession,
    commands: Arc<dyn SessionCommands>,
    rate: Mutex<CommandRate>,
    running: Places,
    sent: AtomicUsize,
}

impl Server {
    /// Gives a connection a thread, unless its peer has no right to one.
    fn admit(self: &Arc<Self>, mut connection: UnixStream) {
        let peer = Peer::of(&connection).map_err(|_| Refused::Stranger);
        // Code under test must not even take a place; the rest may need a wait.
        let is_tested = |peer: Peer| self.judge(Speakers::All, &self.line(peer)?, None);
        let peer = peer.and_then(|peer| is_tested(peer).map(|()| peer));
        let admitted = peer.and_then(|peer| Ok((peer, self.running.take().ok_or(Refused::Busy)?)));
        match admitted {
            Ok((peer, place)) => {
                let server = Arc::clone(self);
                // Without a thread, the connection and its place are dropped.
                drop(thread::Builder::new().spawn(move || server.serve(place, connection, peer)));
            }
            Err(why) => {
                // The caller may be gone, or may not read; the next one must not wait for it.
                let limit = Duration::from_millis(10);
                let _ = message::write(&mut connection, &ServerMessage::Refused(why), limit);
            }
        }
    }

    /// The processes between the helper and a peer that belongs to this session.
    fn line(&self, peer: Peer) -> Result<Vec<LineProcess>, Refused> {
        peer.line_below(self.helper).filter(|_| peer.is_own_user).ok_or(Refused::Stranger)
    }

    /// Checks that the peer speaks for this session. May wait for the report about the agent program.
    fn check(&self, peer: Peer) -> Result<(), Refused> {
        let line = self.line(peer)?;
        if line.is_empty() {
            // The helper itself, which has decided for the process that it connects for.
            return Ok(());
        }
        let speakers = Speakers::of(self.session.agent.role());
        let client = match speakers {
            Speakers::All => None,
            Speakers::Spoken => self.client.wait(TRANSFER_LIMIT),
        };
        self.judge(speakers, &line, client)
    }

    fn judge(&self, speakers: Speakers, line: &[LineProcess], client: Option<u32>) -> Result<(), Refused> {
        speakers.rule()(line, self.helper, client).map_err(|silenced| match silenced {
            Silenced::UnderTest => Refused::UnderTest,
            Silenced::NotSpoken => Refused::NotSpoken,
        })
    }

    /// Receives the call of a peer that was admitted.
    fn receive(&self, connection: &mut UnixStream, peer: Peer) -> Result<SessionCall, Refused> {
        let received = message::read::<SessionCall>(connection, CALL_MAX, TRANSFER_LIMIT);
        let is_late = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
        let call =
            received.map_err(|error| if is_late(&error) { Refused::TooSlow } else { Refused::Malformed })?;
        if !is_equal(&call.secret, &self.secret) {
            return Err(Refused::Stranger);
        }
        let wait = self.rate.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now());
        thread::sleep(wait);
        // Again: the process that connected may have ended, and its ID may belong to another one now.
        self.check(peer)?;
        let add = |sent: usize| Some(sent + call.length()).filter(|sent| *sent <= SENT_MAX);
        let added = self.sent.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add);
        added.map_or(Err(Refused::TooMuch), |_| Ok(call))
    }

    /// Receives and executes one command, and sends its answer.
    fn serve(self: &Arc<Self>, place: Place, mut connection: UnixStream, peer: Peer) {
        let received = self.receive(&mut connection, peer);
        let message = match received {
            Err(why) => ServerMessage::Refused(why),
            Ok(call) => match self.execute(place, call, &mut connection) {
                Some(message) => message,
                None => return,
            },
        };
        // The command is done even if the caller is gone or doesn't read.
        let _ = message::write(&mut connection, &message, TRANSFER_LIMIT);
    }

    /// Executes a command in a thread, with signs of life for the caller; `None` if the caller is gone.
    fn execute(
        self: &Arc<Self>,
        place: Place,
        call: SessionCall,
        connection: &mut UnixStream,
    ) -> Option<ServerMessage> {
        let start = Instant::now();
        let limit = self.session.limit;
        let (sender, answer) = sync_channel(1);
        let server = Arc::clone(self);
        thread::spawn(move || {
            // Free when the command has ended, not when its caller has stopped waiting.
            let _place = place;
            sender.send(server.commands.execute(&server.session, call))
        });
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
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::super::Untold;
    use super::super::client::{ChannelError, send};
    use super::super::message::{Answer, WrittenTo};
    use super::*;
    use crate::project::Project;
    use liza_sandbox::socket_folder::SocketUse;

    /// Answers with its arguments; `wait` waits for the test, `panic` panics.
    struct Echo(Mutex<Receiver<()>>);

    impl SessionCommands for Echo {
        fn execute(&self, session: &ServedSession, call: SessionCall) -> Answer {
            match call.arguments.get(1).map(String::as_str) {
                Some("wait") => drop(self.0.lock().unwrap().recv()),
                Some("panic") => panic!("a bug"),
                Some(_) | None => {}
            }
            let text = format!("{} {}", session.agent, call.arguments.join(" "));
            Answer { written: vec![(WrittenTo::Output, text)], exit: 7 }
        }
    }

    struct Fixture {
        address: Address,
        open: OpenChannel,
        release: Sender<()>,
        _folders: (tempfile::TempDir, SocketFolder),
    }

    /// A channel for the processes below `helper`.
    fn channel_below(helper: u32, limit: Duration) -> Fixture {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join(".liza")).unwrap();
        fs::write(place.path().join(".liza/state.yaml"), "").unwrap();
        let folder = SocketFolder::create(SocketUse::Channel, None, place.path()).unwrap();
        let session = ServedSession {
            project: Project::open(place.path()).unwrap(),
            agent: "coder-1".parse().unwrap(),
            generation: liza_core::model::Generation(3),
            environment: Vec::new(),
            limit,
            last_refusal: LastRefusal::default(),
            untold: Untold::by(Vec::new),
        };
        let (release, waiting) = channel();
        let opened = Channel::open(&folder, session, Arc::new(Echo(Mutex::new(waiting)))).unwrap();
        let address = opened.address().clone();
        Fixture { address, open: opened.serve(helper).unwrap(), release, _folders: (place, folder) }
    }

    /// A channel for the test itself.
    fn own_channel() -> Fixture {
        channel_below(std::os::unix::process::parent_id(), Duration::from_secs(60))
    }

    fn call(address: &Address, words: &[&str]) -> SessionCall {
        let arguments = words.iter().map(|word| (*word).to_owned()).collect();
        SessionCall { secret: address.secret.clone(), arguments, ..SessionCall::default() }
    }

    fn refusal(result: Result<Answer, ChannelError>) -> Refused {
        match result {
            Err(ChannelError::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    /// Covers: IS-01, IS-02
    #[test]
    fn a_process_of_the_session_gets_an_answer_and_no_other_one_does() {
        let own = own_channel();
        let answer = send(&own.address, &call(&own.address, &["liza", "status"])).unwrap();
        assert_eq!(answer.written, [(WrittenTo::Output, "coder-1 liza status".to_owned())]);
        assert_eq!(answer.exit, 7);
        let wrong = SessionCall { secret: "0".repeat(32), ..call(&own.address, &["liza"]) };
        assert_eq!(refusal(send(&own.address, &wrong)), Refused::Stranger);

        let mut helper = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let other = channel_below(helper.id(), Duration::from_secs(60));
        assert_eq!(refusal(send(&other.address, &call(&other.address, &["liza"]))), Refused::Stranger);
        drop(helper.stdin.take());
        helper.wait().unwrap();
        assert_eq!(refusal(send(&other.address, &call(&other.address, &["liza"]))), Refused::Stranger);
    }

    /// Covers: IS-02
    #[test]
    fn a_message_that_is_no_command_is_refused_and_the_next_one_is_served() {
        let own = own_channel();
        for bytes in [&[255, 255, 255, 255][..], &[0, 0, 0, 3, b'n', b'o', b'!'], &[0, 0, 0, 0]] {
            let mut raw = UnixStream::connect(&own.address.socket).unwrap();
            raw.write_all(bytes).unwrap();
            let answer: ServerMessage = message::read(&mut raw, 1 << 20, Duration::from_secs(10)).unwrap();
            assert_eq!(answer, ServerMessage::Refused(Refused::Malformed), "{bytes:?}");
        }
        let long = SessionCall { input: Some("x".repeat(CALL_MAX)), ..call(&own.address, &["liza"]) };
        assert_eq!(refusal(send(&own.address, &long)), Refused::Malformed);
        assert!(send(&own.address, &call(&own.address, &["liza"])).is_ok());
    }

    /// Covers: IS-02
    #[test]
    fn eight_commands_run_at_once_and_the_ninth_is_refused() {
        let own = own_channel();
        let waiting: Vec<_> = (0..CONNECTIONS_MAX)
            .map(|_| {
                let mut connection = UnixStream::connect(&own.address.socket).unwrap();
                let call = call(&own.address, &["liza", "wait"]);
                message::write(&mut connection, &call, TRANSFER_LIMIT).unwrap();
                connection
            })
            .collect();
        // Connections are accepted in order, so the ninth finds eight.
        assert_eq!(refusal(send(&own.address, &call(&own.address, &["liza"]))), Refused::Busy);
        (0..CONNECTIONS_MAX).for_each(|_| own.release.send(()).unwrap());
        for mut connection in waiting {
            let answer = message::read::<ServerMessage>(&mut connection, 1 << 20, TRANSFER_LIMIT).unwrap();
            assert!(matches!(answer, ServerMessage::Answer(_)), "{answer:?}");
        }
        let deadline = Instant::now() + TRANSFER_LIMIT;
        while send(&own.address, &call(&own.address, &["liza"])).is_err() {
            assert!(Instant::now() < deadline, "the places stay taken");
        }
    }

    /// Covers: IS-02
    #[test]
    fn a_session_that_sends_many_commands_one_after_the_other_waits() {
        let start = Instant::now();
        let own = own_channel();
        for _ in 0..30 {
            send(&own.address, &call(&own.address, &["liza"])).unwrap();
        }
        // Ten at once, then ten a second; without the limit they take some milliseconds.
        let took = start.elapsed();
        assert!(took >= Duration::from_secs(2), "{took:?}");
    }

    /// Covers: IS-02
    #[test]
    fn a_session_cannot_fill_the_blackboard_with_text() {
        let own = own_channel();
        let long = SessionCall { input: Some("x".repeat(SENT_MAX / 3)), ..call(&own.address, &["liza"]) };
        for _ in 0..2 {
            send(&own.address, &long).unwrap();
        }
        assert_eq!(refusal(send(&own.address, &long)), Refused::TooMuch);
        assert!(send(&own.address, &call(&own.address, &["liza"])).is_ok(), "a short one still fits");
    }

    /// Covers: IS-02
    #[test]
    fn a_command_that_takes_too_long_or_crashes_is_reported() {
        let short = channel_below(std::os::unix::process::parent_id(), Duration::from_millis(20));
        let late = send(&short.address, &call(&short.address, &["liza", "wait"]));
        assert_eq!(refusal(late), Refused::OverLimit);
        let own = own_channel();
        let crashed = send(&own.address, &call(&own.address, &["liza", "panic"]));
        assert_eq!(refusal(crashed), Refused::Crashed);
        assert!(send(&own.address, &call(&own.address, &["liza"])).is_ok());
    }

    /// Covers: IS-02
    #[test]
    fn after_the_session_its_socket_is_dead() {
        let Fixture { address, open, .. } = own_channel();
        drop(open);
        let gone = send(&address, &call(&address, &["liza"]));
        assert!(matches!(gone, Err(ChannelError::Gone(_))), "{gone:?}");
    }

    /// Covers: IS-02
    #[test]
    fn a_caller_that_does_not_read_keeps_no_other_one_waiting() {
        let own = own_channel();
        let mut slow = UnixStream::connect(&own.address.socket).unwrap();
        // More than a socket holds, so that the answer cannot be sent before it is read.
        let long = SessionCall { arguments: vec!["x".repeat(2 << 20)], ..call(&own.address, &[]) };
        message::write(&mut slow, &long, TRANSFER_LIMIT).unwrap();
        assert!(send(&own.address, &call(&own.address, &["liza"])).is_ok());
        let mut start = [0; 8];
        slow.read_exact(&mut start).unwrap();
    }
}

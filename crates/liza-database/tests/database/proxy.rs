//! A proxy between a store and the server: counts round trips, drops connections, cuts the network.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::server::Server;
use crate::support::wait_until;

/// A proxy between a store and the server, which can drop connections.
pub(crate) struct Proxy {
    /// The folder of its socket.
    folder: tempfile::TempDir,
    /// The socket of the server.
    target: Arc<Mutex<PathBuf>>,
    pub(crate) rules: Arc<Rules>,
}

/// What it does.
#[derive(Default)]
pub(crate) struct Rules {
    /// Drops the connection when the answer to COMMIT arrives, this many times.
    pub(crate) lose_answers: AtomicUsize,
    /// Says that the server shuts down when the answer to COMMIT arrives, this many times, as a pooler may.
    pub(crate) deny_answers: AtomicUsize,
    /// Drops the connection before a COMMIT is passed on, this many times.
    pub(crate) lose_commits: AtomicUsize,
    /// Drops the connection of the client at a COMMIT and keeps the COMMIT until `passes_late` is set, this many times.
    pub(crate) late_commits: AtomicUsize,
    pub(crate) passes_late: AtomicBool,
    /// Drops the connection before a NOTIFY is passed on, this many times.
    pub(crate) lose_notifications: AtomicUsize,
    /// The last statements that asked for a request.
    pub(crate) question: Mutex<Option<String>>,
    /// How often someone who asked for a request got an answer.
    pub(crate) answers: AtomicUsize,
    /// Connections that were not accepted.
    pub(crate) refused: AtomicUsize,
    /// Accepts no connections and passes nothing on.
    partitioned: AtomicBool,
    open: Mutex<Vec<UnixStream>>,
    pub(crate) commits: AtomicUsize,
    /// Round trips between one that takes the lock and one that commits; there should be none.
    pub(crate) between: AtomicUsize,
    /// What was sent, once it is asked for.
    pub(crate) recorded: Mutex<Option<Vec<String>>>,
    /// Notifications that were sent.
    pub(crate) notifications: AtomicUsize,
}

impl Proxy {
    pub(crate) fn new(server: &Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let rules: Arc<Rules> = Arc::default();
        let target = Arc::new(Mutex::new(server.socket()));
        let (shared, socket) = (Arc::clone(&rules), Arc::clone(&target));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (rules, socket) = (Arc::clone(&shared), socket.lock().unwrap().clone());
                std::thread::spawn(move || {
                    if rules.partitioned.load(Ordering::SeqCst) {
                        rules.refused.fetch_add(1, Ordering::SeqCst);
                        return;
                    }
                    if let Ok(server) = UnixStream::connect(&socket) {
                        rules.open.lock().unwrap().push(client.try_clone().unwrap());
                        pass(client, server, &rules);
                    }
                });
            }
        });
        Self { folder, target, rules }
    }

    pub(crate) fn address(&self) -> String {
        format!("postgres:///liza?host={}&user=liza", self.folder.path().display())
    }

    /// Leads to another server from now on: what a failover behind one address does.
    pub(crate) fn fail_over(&self, server: &Server) {
        self.partition(true);
        *self.target.lock().unwrap() = server.socket();
        self.partition(false);
    }

    /// Cuts all connections, or lets new ones through again.
    pub(crate) fn partition(&self, on: bool) {
        self.rules.partitioned.store(on, Ordering::SeqCst);
        for stream in self.rules.open.lock().unwrap().drain(..).filter(|_| on) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// The text of a simple query in a message.
fn statements(message: &[u8]) -> Option<String> {
    let text = message.strip_prefix(b"Q")?.get(4..)?.strip_suffix(b"\0")?;
    Some(String::from_utf8_lossy(text).into_owned())
}

fn take_one(counter: &AtomicUsize) -> bool {
    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok()
}

/// What a server says before it ends a connection.
fn shutdown_message() -> Vec<u8> {
    let fields = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0";
    let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
    [&b"E"[..], &length, fields].concat()
}

/// Whether these bytes end an answer: the server is ready for the next question.
fn ends_answer(bytes: &[u8]) -> bool {
    matches!(bytes, [.., b'Z', 0, 0, 0, 5, _])
}

fn pass(client: UnixStream, server: UnixStream, rules: &Arc<Rules>) {
    let losing = Arc::new(AtomicBool::new(false));
    let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let denying = Arc::new(AtomicBool::new(false));
    let asking = Arc::new(AtomicBool::new(false));
    let (lost, denied) = (Arc::clone(&losing), Arc::clone(&denying));
    let (asked, counts) = (Arc::clone(&asking), Arc::clone(rules));
    let answers = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 20];
        while let Ok(length) = from_server.read(&mut buffer) {
            if denied.load(Ordering::SeqCst) {
                let _ = to_client.write_all(&shutdown_message());
                break;
            }
            if length == 0 || lost.load(Ordering::SeqCst) || to_client.write_all(&buffer[..length]).is_err() {
                break;
            }
            if ends_answer(&buffer[..length]) && asked.swap(false, Ordering::SeqCst) {
                counts.answers.fetch_add(1, Ordering::SeqCst);
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
        let _ = from_server.shutdown(Shutdown::Both);
    });
    let (mut from_client, mut to_server) = (client, server);
    let mut locked = false;
    let mut buffer = vec![0; 1 << 20];
    while let Ok(length) = from_client.read(&mut buffer) {
        if length == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&buffer[..length]);
        if let Some(recorded) = rules.recorded.lock().unwrap().as_mut() {
            recorded.extend(statements(&buffer[..length]));
        }
        rules.notifications.fetch_add(text.matches("NOTIFY liza").count(), Ordering::SeqCst);
        if text.contains("FOR UPDATE") {
            locked = true;
        } else if locked && (text.contains("COMMIT") || text.contains("ROLLBACK")) {
            locked = false;
        } else if locked {
            rules.between.fetch_add(1, Ordering::SeqCst);
        }
        if text.contains("COMMIT") && text.contains("UPDATE liza.projects") {
            rules.commits.fetch_add(1, Ordering::SeqCst);
            if take_one(&rules.lose_commits) {
                break;
            }
            if take_one(&rules.lose_answers) {
                losing.store(true, Ordering::SeqCst);
            }
            if take_one(&rules.deny_answers) {
                denying.store(true, Ordering::SeqCst);
            }
            if take_one(&rules.late_commits) {
                losing.store(true, Ordering::SeqCst);
                let _ = from_client.shutdown(Shutdown::Both);
                wait_until("a late commit may pass", || rules.passes_late.load(Ordering::SeqCst));
            }
        }
        if text.contains("FROM liza.requests") {
            *rules.question.lock().unwrap() = statements(&buffer[..length]);
            asking.store(true, Ordering::SeqCst);
        }
        if text.contains("NOTIFY") && take_one(&rules.lose_notifications) {
            break;
        }
        if to_server.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = from_client.shutdown(Shutdown::Both);
    if !losing.load(Ordering::SeqCst) {
        let _ = to_server.shutdown(Shutdown::Both);
    }
    let _ = answers.join();
}

//! Listens on this machine, connects to allowed hosts, and copies in both directions.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, ToSocketAddrs as _};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::listener::{Accepting, Places};

use super::hosts::ModelHost;
use super::request::{ProxyRequest, head_length, parse};

/// The most connections of a session at once.
const CONNECTIONS_MAX: usize = 64;

/// The longest first lines of a request.
const HEAD_MAX: usize = 64 << 10;

/// The longest time for them to arrive.
const HEAD_LIMIT: Duration = Duration::from_secs(10);

const CONNECT_LIMIT: Duration = Duration::from_secs(20);

/// The longest silence of a host after the client has sent everything.
const LAST_ANSWER_LIMIT: Duration = Duration::from_secs(600);

const PROXY_VARIABLES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// The variables that lead programs to a proxy at this port.
pub fn proxy_variables(port: u16) -> Vec<(String, String)> {
    let address = format!("http://127.0.0.1:{port}");
    let led = PROXY_VARIABLES.map(|name| (name, address.as_str()));
    // No exceptions: nothing is reached without the proxy. Node uses these variables only if it is asked to.
    let rest = [("NO_PROXY", ""), ("no_proxy", ""), ("NODE_USE_ENV_PROXY", "1")];
    led.into_iter().chain(rest).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A proxy that serves. Dropping it closes its port; open connections end with their clients.
#[derive(Debug)]
pub struct ModelProxy {
    port: u16,
    _accepting: Accepting,
}

struct ProxyServer {
    hosts: Vec<ModelHost>,
    refused: Box<dyn Fn(&ModelHost) + Send + Sync>,
    connections: Places,
}

impl ModelProxy {
    /// Calls `refused` with each host that is asked for and not allowed.
    pub fn start(
        hosts: Vec<ModelHost>,
        refused: impl Fn(&ModelHost) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let (refused, connections) = (Box::new(refused), Places::new(CONNECTIONS_MAX));
        let server = Arc::new(ProxyServer { hosts, refused, connections });
        let accepting = Accepting::start(listener, move |client| admit(&server, client))?;
        Ok(Self { port, _accepting: accepting })
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Serves a client on its own thread. Counted before: a session could use up the supervisor's threads otherwise.
fn admit(server: &Arc<ProxyServer>, mut client: TcpStream) {
    match server.connections.take() {
        Some(place) => {
            let server = Arc::clone(server);
            // Without a thread, the client and its place are dropped. A client that is gone is no error.
            drop(thread::Builder::new().spawn(move || (server.tunnel(client), place)));
        }
        // A few bytes on a new connection: this does not block.
        None => drop(deny(&mut client, &Denied::Busy)),
    }
}

enum Denied {
    BadRequest,
    NotAllowed(ModelHost),
    Unreachable(ModelHost, io::Error),
    Busy,
}

impl ProxyServer {
    fn tunnel(&self, mut client: TcpStream) -> io::Result<()> {
        client.set_read_timeout(Some(HEAD_LIMIT))?;
        let (head, rest) = read_head(&mut client)?;
        let (mut host, request) = match self.open(&head) {
            Ok(opened) => opened,
            Err(denied) => return deny(&mut client, &denied),
        };
        client.set_read_timeout(None)?;
        if request.first.is_empty() {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
        }
        host.write_all(&request.first)?;
        host.write_all(&rest)?;
        copy_both(client, host, LAST_ANSWER_LIMIT)
    }

    /// Connects to the host of a request, if it is allowed.
    fn open(&self, head: &[u8]) -> Result<(TcpStream, ProxyRequest), Denied> {
        let request = parse(head).ok_or(Denied::BadRequest)?;
        if !self.hosts.contains(&request.host) {
            (self.refused)(&request.host);
            return Err(Denied::NotAllowed(request.host));
        }
        match connect(&request.host) {
            Ok(host) => Ok((host, request)),
            Err(error) => Err(Denied::Unreachable(request.host, error)),
        }
    }
}

fn connect(host: &ModelHost) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (host.name.as_str(), host.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The first lines of a request, and the bytes after them.
fn read_head(client: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        if let Some(length) = head_length(&bytes) {
            let rest = bytes.split_off(length);
            return Ok((bytes, rest));
        }
        let length = client.read(&mut chunk)?;
        if length == 0 || bytes.len() > HEAD_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        bytes.extend_from_slice(chunk.get(..length).unwrap_or_default());
    }
}

fn deny(client: &mut TcpStream, denied: &Denied) -> io::Result<()> {
    let (status, text) = match denied {
        Denied::BadRequest => ("400 Bad Request", "not a request to a proxy".to_owned()),
        Denied::NotAllowed(host) => (
            "403 Forbidden",
            format!(
                "the network of this session is model-only; to open it: add {host} to config.model_hosts"
            ),
        ),
        Denied::Unreachable(host, error) => ("502 Bad Gateway", format!("cannot reach {host}: {error}")),
        Denied::Busy => ("503 Service Unavailable", "too many connections".to_owned()),
    };
    let length = text.len() + 1;
    write!(client, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}\n")
}

/// Copies in both directions until both have ended, or the host is silent this long after the client's end.
fn copy_both(client: TcpStream, host: TcpStream, limit: Duration) -> io::Result<()> {
    // Set before the first read: one that waits already would not notice.
    host.set_read_timeout(Some(limit))?;
    let (mut from_client, mut to_host) = (client.try_clone()?, host.try_clone()?);
    let client_end = Arc::new(OnceLock::new());
    let ended = Arc::clone(&client_end);
    let upload = thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_host);
        let _ = to_host.shutdown(Shutdown::Write);
        let _ = ended.set(Instant::now());
    })?;
    let (mut from_host, mut to_client) = (host, client);
    let waits = || client_end.get().is_none_or(|end: &Instant| end.elapsed() < limit);
    let copied = copy_answer(&mut from_host, &mut to_client, &waits);
    // Ends the other direction as well: no one is left to answer.
    let _ = to_client.shutdown(Shutdown::Both);
    let _ = from_host.shutdown(Shutdown::Both);
    let _ = upload.join();
    copied
}

/// Copies a host's bytes. When its time limit for reading has passed, `waits` decides whether to wait again.
fn copy_answer(host: &mut TcpStream, client: &mut TcpStream, waits: &dyn Fn() -> bool) -> io::Result<()> {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    let mut chunk = vec![0; 16 << 10];
    loop {
        match host.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(length) => client.write_all(chunk.get(..length).unwrap_or_default())?,
            Err(error) if error.kind() == Interrupted => {}
            Err(error) if matches!(error.kind(), WouldBlock | TimedOut) && waits() => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead as _;
    use std::io::BufReader;

    use super::*;

    /// A server that answers each connection with the first line that it receives.
    fn echo() -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let mut line = String::new();
                let _ = BufReader::new(&client).read_line(&mut line);
                let _ = (&client).write_all(format!("got {line}").as_bytes());
            }
        });
        port
    }

    fn ask(proxy: &ModelProxy, request: &str) -> String {
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
        client.set_read_timeout(Some(HEAD_LIMIT)).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    fn proxy_to(host: &str) -> ModelProxy {
        ModelProxy::start(vec![host.parse().unwrap()], |_| {}).unwrap()
    }

    /// Covers: IS-06
    #[test]
    fn allowed_hosts_are_reached_and_others_are_not() {
        let (allowed, other) = (echo(), echo());
        let proxy = proxy_to(&format!("localhost:{allowed}"));
        let tunnel =
            |host: &str, port: u16| ask(&proxy, &format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\nhello\n"));
        let answer = tunnel("localhost", allowed);
        assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\ngot hello\n");
        for (host, port) in [("localhost", other), ("127.0.0.1", allowed), ("example.com", 443)] {
            let answer = tunnel(host, port);
            assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
            assert!(answer.contains("config.model_hosts"), "{answer}");
        }
        let plain = ask(&proxy, &format!("GET http://localhost:{allowed}/x HTTP/1.1\r\nA: b\r\n\r\n"));
        assert_eq!(plain, "got GET /x HTTP/1.1\r\n");
        assert!(ask(&proxy, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
    }

    /// Covers: IS-06
    #[test]
    fn a_host_that_does_not_answer_is_reported_and_the_port_is_closed_afterwards() {
        let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let proxy = proxy_to(&format!("localhost:{gone}"));
        let answer = ask(&proxy, &format!("CONNECT localhost:{gone} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        let port = proxy.port();
        drop(proxy);
        let deadline = Instant::now() + HEAD_LIMIT;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            assert!(Instant::now() < deadline, "the port is still open");
        }
    }

    /// Covers: IS-06
    #[test]
    fn a_session_has_only_so_many_connections_at_once() {
        let allowed = echo();
        let proxy = proxy_to(&format!("localhost:{allowed}"));
        let open = || TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
        let held: Vec<TcpStream> = (0..CONNECTIONS_MAX).map(|_| open()).collect();
        // Refused before it asks for anything: no thread waits for it.
        assert!(ask(&proxy, "").starts_with("HTTP/1.1 503 "));
        drop(held);
        let deadline = Instant::now() + HEAD_LIMIT;
        let mut answer = String::new();
        while !answer.ends_with("got hello\n") {
            assert!(Instant::now() < deadline, "no connection is free again: {answer}");
            answer.clear();
            let mut client = open();
            // Either fails if the connection is refused meanwhile.
            let _ = write!(client, "CONNECT localhost:{allowed} HTTP/1.1\r\n\r\nhello\n");
            let _ = client.read_to_string(&mut answer);
        }
    }

    /// Two ends of a connection.
    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    /// Covers: IS-06
    #[test]
    fn a_silent_host_is_waited_for_until_its_client_has_ended() {
        let limit = Duration::from_millis(50);
        let ((mut client, near_client), (near_host, mut host)) = (connection(), connection());
        let (done, copied) = std::sync::mpsc::channel();
        thread::spawn(move || done.send(copy_both(near_client, near_host, limit).is_err()));
        client.set_read_timeout(Some(limit * 5)).unwrap();
        let waited = client.read(&mut [0]).unwrap_err().kind();
        assert!(matches!(waited, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{waited}");
        host.write_all(b"late").unwrap();
        client.set_read_timeout(Some(HEAD_LIMIT)).unwrap();
        client.read_exact(&mut [0; 4]).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        // The host neither answers nor closes.
        assert_eq!(copied.recv_timeout(HEAD_LIMIT), Ok(true));
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
}

//! A running `liza web`, and a visitor without a browser.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::support::TestProject;
use crate::support::process::send_signal;

/// The longest that anything may take on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A running server; ended with the test.
pub(crate) struct Web {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    first: String,
}

impl Web {
    /// Starts it on any port.
    pub(crate) fn start(project: &TestProject) -> Self {
        Self::start_program(project.program())
    }

    /// The same, with this program.
    pub(crate) fn start_program(mut program: Command) -> Self {
        program.args(["web", "--utc"]);
        Self::spawn(program)
    }

    /// The same in a terminal, with these variables.
    pub(crate) fn start_at_terminal(project: &TestProject, variables: &[(&str, &str)]) -> Self {
        let mut terminal = project.command("script");
        terminal.args(["-qec", &format!("'{}' web --utc", env!("CARGO_BIN_EXE_liza")), "/dev/null"]);
        terminal.env("TERM", "xterm").envs(variables.iter().copied());
        Self::spawn(terminal)
    }

    fn spawn(mut program: Command) -> Self {
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = program.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        // A terminal has notes and what is typed, too.
        let mut addresses = output.lines().map_while(Result::ok).filter(|line| line.starts_with("http"));
        thread::spawn(move || addresses.all(|line| sender.send(line).is_ok()));
        let first = lines.recv_timeout(LONG).unwrap();
        let input = child.stdin.take().unwrap();
        Self { child, input, lines, first }
    }

    /// The process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The address that it printed at its start.
    pub(crate) fn first_address(&self) -> &str {
        &self.first
    }

    /// A new address, as after Enter.
    pub(crate) fn new_address(&mut self) -> String {
        self.input.write_all(b"\n").unwrap();
        self.lines.recv_timeout(LONG).unwrap()
    }

    /// The port that it listens on.
    pub(crate) fn port(&self) -> u16 {
        let (host, _) = self.first.trim_start_matches("http://").split_once('/').unwrap();
        host.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// Somebody who has exchanged an address for a cookie.
    pub(crate) fn visitor(&mut self) -> Visitor {
        let address = self.new_address();
        let query = address.rsplit_once('/').unwrap().1;
        let answer = Request::get(&format!("/{query}")).send(self.port());
        assert_eq!(answer.status, 303, "{answer:?}");
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        Visitor { port: self.port(), prefix: answer.header("location").unwrap().to_owned(), cookie }
    }

    /// Asks it to end; returns its exit code.
    pub(crate) fn end(mut self) -> i32 {
        assert!(send_signal("TERM", &self.child.id().to_string()));
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Somebody with a cookie.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(crate) port: u16,
    /// What every path begins with, with a slash at its end.
    pub(crate) prefix: String,
    pub(crate) cookie: String,
}

impl Visitor {
    /// The request for a page, with the cookie.
    pub(crate) fn get(&self, page: &str) -> Request {
        Request::get(&format!("{}{page}", self.prefix)).with("Cookie", &self.cookie)
    }

    /// The content of a page.
    #[track_caller]
    pub(crate) fn page(&self, page: &str) -> String {
        let answer = self.get(page).send(self.port);
        assert_eq!(answer.status, 200, "{page}: {answer:?}");
        answer.body
    }

    /// The request of a form, as the page itself sends it.
    pub(crate) fn form(&self, fields: &[(&str, &str)]) -> Request {
        let body: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        Request::new("POST", &format!("{}act", self.prefix))
            .with("Cookie", &self.cookie)
            .with("Origin", &format!("http://127.0.0.1:{}", self.port))
            .with("Content-Type", "application/x-www-form-urlencoded")
            .body(&body.join("&"))
    }

    /// What an action answers.
    pub(crate) fn act(&self, fields: &[(&str, &str)]) -> Answer {
        self.form(fields).send(self.port)
    }
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

/// A request, byte for byte.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    method: String,
    path: String,
    host: Option<String>,
    headers: String,
    body: String,
}

/// What a server answered.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// 0 if it closed the connection without an answer.
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Answer {
    /// A header of the answer.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.lines().find_map(|line| {
            let (given, value) = line.split_once(':')?;
            given.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

impl Request {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        let (headers, body) = (String::new(), String::new());
        Self { method: method.to_owned(), path: path.to_owned(), host: None, headers, body }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// To another name than the address.
    pub(crate) fn host(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    pub(crate) fn body(mut self, body: &str) -> Self {
        self.body = body.to_owned();
        self.with("Content-Length", &body.len().to_string())
    }

    /// The request as text.
    pub(crate) fn text(&self, port: u16) -> String {
        let Self { method, path, host, headers, body } = self;
        let host = host.clone().unwrap_or_else(|| format!("127.0.0.1:{port}"));
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n{body}")
    }

    /// Sends it and reads the whole answer.
    pub(crate) fn send(&self, port: u16) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut bytes = Vec::new();
        // The server may refuse before it has read everything.
        let _ = stream.write_all(self.text(port).as_bytes());
        let _ = stream.read_to_end(&mut bytes);
        answer(&String::from_utf8_lossy(&bytes))
    }
}

/// An answer from its bytes.
pub(crate) fn answer(text: &str) -> Answer {
    let (headers, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let status = headers.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    Answer { status, headers: headers.to_owned(), body: body.to_owned() }
}

//! A stand-in for the model behind a real agent program: an HTTP server on 127.0.0.1 that answers from a script.
//!
//! Speaks what the programs speak: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini's protocol, all streaming.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::protocols::{Protocol, protocol_of};

/// What the model does next.
#[derive(Debug, Clone)]
pub(crate) enum Move {
    /// Runs a shell command with the program's own tool.
    Run(String),
    /// Ends the turn with this text.
    Say(String),
    /// Fails with this HTTP status, headers and body.
    Fail(u16, Vec<(&'static str, String)>, Value),
    /// Sends the beginning of an answer and closes the connection.
    Cut,
    /// Never answers.
    Hang,
}

/// A request, as the script sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conversation {
    /// Everything that the program sent, as text.
    pub(crate) text: String,
    /// How many tools have answered since the conversation began.
    pub(crate) tool_results: usize,
    /// Without it, the request is not for the script.
    pub(crate) shell: Option<ShellTool>,
    /// The names of all tools that it offers.
    pub(crate) tools: Vec<String>,
    /// The length of the request in bytes.
    pub(crate) size: usize,
}

/// A program's tool that runs shell commands.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShellTool {
    pub(crate) name: String,
    /// The name of its argument with the command.
    pub(crate) argument: &'static str,
    /// If true, a call has a description besides.
    pub(crate) is_described: bool,
}

/// What decides.
pub(crate) type Brain = dyn Fn(&Conversation) -> Move + Send + Sync;

/// A running server; its threads end with the process.
pub(crate) struct ModelServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    traffic: Arc<Mutex<Traffic>>,
}

/// The requests of a goal that offer tools, with their bytes: what a model is paid for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traffic {
    requests: usize,
    bytes: usize,
    /// Those without an answer of a tool.
    first_requests: usize,
    first_bytes: usize,
}

impl Traffic {
    fn count(&mut self, conversation: &Conversation) {
        self.requests += 1;
        self.bytes += conversation.size;
        if conversation.tool_results == 0 {
            self.first_requests += 1;
            self.first_bytes += conversation.size;
        }
    }
}

impl ModelServer {
    pub(crate) fn start(brain: impl Fn(&Conversation) -> Move + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let brain: Arc<Brain> = Arc::new(brain);
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&requests);
        let traffic: Arc<Mutex<Traffic>> = Arc::default();
        let counted = Arc::clone(&traffic);
        let brain: Arc<Brain> = Arc::new(move |conversation: &Conversation| {
            counted.lock().unwrap().count(conversation);
            (*brain)(conversation)
        });
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (brain, seen) = (Arc::clone(&brain), Arc::clone(&seen));
                // A program may hang up at any time.
                thread::spawn(move || drop(serve(&connection, &*brain, &seen)));
            }
        });
        Self { address, requests, traffic }
    }

    /// What a program has sent so far, for the table of docs/guide/clients/README.md: `just e2e` prints it.
    pub(crate) fn traffic(&self) -> String {
        let traffic = *self.traffic.lock().unwrap();
        let Traffic { requests, bytes, first_requests, first_bytes } = traffic;
        let (all, first) = (bytes / 1000, first_bytes / first_requests.max(1) / 1000);
        format!(
            "{first_requests} conversations, {requests} requests, {all} kB; a first request has {first} kB"
        )
    }

    /// The address, such as `http://127.0.0.1:1234`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Method and path of all requests.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

struct Request {
    method: String,
    path: String,
    body: Vec<u8>,
}

fn serve(connection: &TcpStream, brain: &Brain, seen: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    while let Some(request) = read_request(&mut reader)? {
        seen.lock().unwrap().push(format!("{} {}", request.method, request.path));
        answer(connection, &request, brain)?;
    }
    Ok(())
}

fn read_request(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (mut length, mut chunked) = (0, false);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let header = header.trim().to_ascii_lowercase();
        match header.split_once(':') {
            None => break,
            Some(("content-length", value)) => length = value.trim().parse().unwrap_or(0),
            Some(("transfer-encoding", value)) => chunked = value.contains("chunked"),
            Some(("expect", _)) => reader.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    while chunked {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim().split(';').next().unwrap_or("0"), 16).unwrap_or(0);
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk)?;
        chunk.truncate(size);
        body.extend(chunk);
        chunked = size > 0;
    }
    Ok(Some(Request { method, path, body }))
}

fn answer(mut connection: &TcpStream, request: &Request, brain: &Brain) -> std::io::Result<()> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let Some(protocol) = protocol_of(&request.path).filter(|_| request.method == "POST") else {
        return respond(
            connection,
            200,
            &[],
            "application/json",
            &json!({"data": [], "models": []}).to_string(),
        );
    };
    let conversation = protocol.conversation(&body);
    let next = match &conversation.shell {
        Some(_) => brain(&conversation),
        // A title, a summary, a count of tokens.
        None => Move::Say("a session of Liza".to_owned()),
    };
    match next {
        Move::Fail(status, headers, body) => {
            respond(connection, status, &headers, "application/json", &body.to_string())
        }
        Move::Cut => {
            let stream = protocol.stream(&Move::Say("I will".to_owned()), &conversation, &body);
            let half = stream.get(..stream.len() / 2).unwrap_or_default();
            write!(connection, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{half}")?;
            connection.shutdown(std::net::Shutdown::Both)
        }
        Move::Hang => {
            // Until the program hangs up.
            let mut rest = [0; 1];
            let mut stream = connection;
            let _ = stream.read(&mut rest);
            Ok(())
        }
        Move::Run(_) | Move::Say(_) => {
            let streams = protocol.streams(&request.path, &body);
            send_answer(connection, (protocol, streams), &next, &conversation, &body)
        }
    }
}

fn send_answer(
    connection: &TcpStream,
    (protocol, streams): (Protocol, bool),
    next: &Move,
    conversation: &Conversation,
    body: &Value,
) -> std::io::Result<()> {
    match streams {
        true => {
            let text = protocol.stream(next, conversation, body);
            respond(connection, 200, &[], "text/event-stream", &text)
        }
        false => {
            let text = protocol.whole(next, conversation, body).to_string();
            respond(connection, 200, &[], "application/json", &text)
        }
    }
}

fn respond(
    mut connection: &TcpStream,
    status: u16,
    headers: &[(&str, String)],
    kind: &str,
    body: &str,
) -> std::io::Result<()> {
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    write!(
        connection,
        "HTTP/1.1 {status} Status\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{more}\r\n{body}"
    )
}

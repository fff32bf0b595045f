//! A real webhook server on this machine that answers as the test asks.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

/// What the server does with one request.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    Status(u16),
    /// Accepts the request and never answers.
    Hang,
}

/// The certificate for `localhost`, trusted only by this test.
pub(crate) const CERTIFICATE: &str = include_str!("localhost.crt");
const KEY: &[u8] = include_bytes!("localhost.key.der");

pub(crate) struct Server {
    pub(crate) port: u16,
    requests: Receiver<(String, Value)>,
}

impl Server {
    /// Answers one request after the other; the last answer is repeated.
    pub(crate) fn answering(answers: &[Answer]) -> Self {
        Self::start(answers, None)
    }

    /// The same with TLS.
    pub(crate) fn with_tls(answers: &[Answer]) -> Self {
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
        let key = PrivateKeyDer::try_from(KEY).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        Self::start(answers, Some(Arc::new(config)))
    }

    fn start(answers: &[Answer], tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = channel();
        let answers = answers.to_vec();
        thread::spawn(move || {
            // Kept open, so that an unanswered request is not taken for a refused one.
            let mut held = Vec::new();
            for (n, stream) in listener.incoming().enumerate() {
                let stream = stream.unwrap();
                let answer = *answers.get(n).or(answers.last()).unwrap();
                let request = match &tls {
                    None => {
                        let mut stream = stream;
                        let request = serve(&mut stream, answer);
                        held.push(stream);
                        request
                    }
                    Some(config) => {
                        let connection = ServerConnection::new(Arc::clone(config)).unwrap();
                        serve(&mut StreamOwned::new(connection, stream), answer)
                    }
                };
                if request.is_some_and(|request| sender.send(request).is_err()) {
                    return;
                }
            }
        });
        Self { port, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/services/s3cr3t-token?x=1", self.port)
    }

    /// The next request: its first line and its body.
    #[track_caller]
    pub(crate) fn next(&self) -> (String, Value) {
        self.requests.recv_timeout(Duration::from_secs(30)).expect("a request")
    }

    /// The number of further requests.
    pub(crate) fn rest(&self) -> usize {
        self.requests.try_iter().count()
    }
}

/// Returns nothing if the client closed the connection, as it does for a certificate that it does not trust.
fn serve(stream: &mut (impl Read + Write), answer: Answer) -> Option<(String, Value)> {
    let mut text = Vec::new();
    let mut chunk = [0; 4096];
    let (head, body) = loop {
        let read = stream.read(&mut chunk).unwrap_or(0);
        text.extend_from_slice(&chunk[..read]);
        let all = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = all.split_once("\r\n\r\n") else {
            if read == 0 {
                return None;
            }
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        if body.len() >= length.unwrap_or(0usize) {
            break (head.to_owned(), body.to_owned());
        }
    };
    if let Answer::Status(status) = answer {
        let answer = format!("HTTP/1.1 {status} So\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).unwrap();
        stream.flush().unwrap();
    }
    let first = head.lines().next().unwrap_or_default().to_owned();
    Some((first, serde_json::from_str(&body).unwrap_or(Value::Null)))
}

/// A port on which no server listens.
pub(crate) fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

//! Servers on a TCP address where the person has chosen to use no TLS: the password goes only to one that asks for SCRAM, in which
//! the server proves that it knows the password. The client itself would answer any request.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready as wait};

use postgres::Socket;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The length of a request for authentication up to its kind: a letter, the length, the kind.
const HEAD: usize = 9;
/// The kinds of a request.
const NOTHING: u32 = 0;
const CLEAR_TEXT: u32 = 3;
const MD5: u32 = 5;
const SASL: u32 = 10;

/// The reason why a server gets no password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unproven {
    #[error("it asks for no password")]
    NoPassword,
    #[error("it asks for the password in clear text")]
    ClearText,
    #[error("it asks for the password with md5")]
    Md5,
    #[error("it asks for something else than a password")]
    Unknown,
}

/// Decides by the first message of a server. An error of the server is passed on.
fn check(head: [u8; HEAD]) -> Result<(), Unproven> {
    let [letter, _, _, _, _, kind @ ..] = head;
    match (letter, u32::from_be_bytes(kind)) {
        (b'E', _) | (b'R', SASL) => Ok(()),
        (b'R', NOTHING) => Err(Unproven::NoPassword),
        (b'R', CLEAR_TEXT) => Err(Unproven::ClearText),
        (b'R', MD5) => Err(Unproven::Md5),
        _ => Err(Unproven::Unknown),
    }
}

/// Stands in the client's place for TLS, with the negotiation `direct`: so it sees every byte first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnlyScram;

impl MakeTlsConnect<Socket> for OnlyScram {
    type Stream = CheckedStream;
    type TlsConnect = Self;
    type Error = Infallible;

    fn make_tls_connect(&mut self, _: &str) -> Result<Self, Infallible> {
        Ok(*self)
    }
}

impl TlsConnect<Socket> for OnlyScram {
    type Stream = CheckedStream;
    type Error = Infallible;
    type Future = Ready<Result<CheckedStream, Infallible>>;

    fn connect(self, socket: Socket) -> Self::Future {
        ready(Ok(CheckedStream { socket, head: [0; HEAD], read: 0, passed: 0 }))
    }
}

/// A connection whose first message is checked before the client sees a byte of it.
pub(crate) struct CheckedStream {
    socket: Socket,
    head: [u8; HEAD],
    read: usize,
    passed: usize,
}

impl AsyncRead for CheckedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while let Some(rest) = this.head.get_mut(this.read..).filter(|rest| !rest.is_empty()) {
            let mut rest = ReadBuf::new(rest);
            wait!(Pin::new(&mut this.socket).poll_read(context, &mut rest))?;
            match rest.filled().len() {
                // The server has closed the connection.
                0 => return Poll::Ready(Ok(())),
                length => this.read += length,
            }
        }
        if let Some(rest) = this.head.get(this.passed..).filter(|rest| !rest.is_empty()) {
            check(this.head).map_err(io::Error::other)?;
            let length = rest.len().min(buffer.remaining());
            buffer.put_slice(rest.get(..length).unwrap_or_default());
            this.passed += length;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for CheckedStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(context)
    }
}

impl TlsStream for CheckedStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use liza_store::{DatabaseError, DatabaseReason};
    use postgres::Config;

    use super::*;
    use crate::connection::connect;
    use crate::fault::fault_of;

    /// A request for authentication, as a server sends it.
    fn request(kind: u32, rest: &[u8]) -> Vec<u8> {
        let length = u32::try_from(8 + rest.len()).unwrap();
        [&b"R"[..], &length.to_be_bytes(), &kind.to_be_bytes(), rest].concat()
    }

    /// Offers no TLS, asks in this way, and returns what the client sent after that.
    fn impostor(listener: &TcpListener, asks: &[u8]) -> Vec<u8> {
        let startup = |stream: &mut TcpStream| {
            let mut length = [0; 4];
            stream.read_exact(&mut length).unwrap();
            let mut rest = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap() - 4];
            stream.read_exact(&mut rest).unwrap();
            rest
        };
        let (mut stream, _) = listener.accept().unwrap();
        // The request for TLS has only a number.
        let answer = if startup(&mut stream).len() == 4 { b"N" } else { asks };
        // One byte at a time: nothing may depend on whole messages.
        // A client that has seen enough closes the connection meanwhile.
        answer.iter().for_each(|byte| drop(stream.write_all(&[*byte])));
        let mut sent = vec![0; 1024];
        let length = stream.read(&mut sent).unwrap_or(0);
        sent.drain(..length).collect()
    }

    fn asked(mode: &str, asks: Vec<u8>) -> (DatabaseError, Vec<u8>) {
        crate::install();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || impostor(&listener, &asks));
        let text = format!("postgres://liza:secret@127.0.0.1:{port}/team?sslmode={mode}");
        let address = "postgres://liza@127.0.0.1/team".parse().unwrap();
        let config: Config = text.parse().unwrap();
        let roots = rustls::RootCertStore::empty();
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider);
        let tls = tls.with_safe_default_protocol_versions().unwrap();
        let tls = tls.with_root_certificates(roots).with_no_client_auth();
        let tls = tokio_postgres_rustls::MakeRustlsConnect::new(tls);
        let failed = |error: postgres::Error| fault_of(&address, &error);
        let error = connect(&config, || Ok(tls), failed).err().unwrap();
        (error, server.join().unwrap())
    }

    /// Covers: RO-05
    #[test]
    fn a_server_that_asks_for_less_than_scram_gets_no_password() {
        for (asks, why) in [
            (request(CLEAR_TEXT, b""), Unproven::ClearText),
            (request(MD5, b"salt"), Unproven::Md5),
            (request(NOTHING, b""), Unproven::NoPassword),
            (b"N\0\0\0\x05\0R\0\0\0".to_vec(), Unproven::Unknown),
        ] {
            let (error, sent) = asked("disable", asks);
            assert_eq!(error.reason, DatabaseReason::Unproven, "{error}");
            assert!(error.to_string().contains(&why.to_string()), "{error}");
            assert_eq!(sent, b"", "{why}");
        }
    }

    /// Covers: RO-05
    #[test]
    fn a_server_without_tls_gets_nothing_unless_the_person_has_chosen_so() {
        for mode in ["prefer", "require"] {
            let (error, sent) = asked(mode, request(SASL, b"SCRAM-SHA-256\0\0"));
            assert_eq!((error.reason, sent), (DatabaseReason::NoTls, Vec::new()), "{mode}");
        }
    }

    /// Covers: RO-05
    #[test]
    fn scram_begins_and_proves_nothing_to_an_impostor() {
        let (error, sent) = asked("disable", request(SASL, b"SCRAM-SHA-256\0\0"));
        assert_eq!(error.reason, DatabaseReason::Unreachable, "{error}");
        let sent = String::from_utf8_lossy(&sent);
        assert!(sent.starts_with('p') && sent.contains("SCRAM-SHA-256"), "{sent:?}");
        assert!(!sent.contains("secret"), "{sent:?}");
        // What the server says itself is shown.
        let refusal = b"SFATAL\0VFATAL\0C28000\0Mno entry\0\0";
        let length = u32::try_from(refusal.len() + 4).unwrap().to_be_bytes();
        let (error, _) = asked("disable", [&b"E"[..], &length, refusal].concat());
        assert_eq!((error.reason, error.detail.as_str()), (DatabaseReason::NotAllowed, "no entry"));
    }
}

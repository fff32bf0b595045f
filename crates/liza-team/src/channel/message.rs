//! The messages on a channel: one call, then signs of life, then one answer. Each is a length and a JSON
//! text. Both ends are the same program, but the session's may be anything, so every size and time is
//! limited.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(super) const CALL_MAX: usize = 4 << 20;

/// The most that all calls of one session may contain: everyone reads what it stores.
pub(super) const SENT_MAX: usize = 8 << 20;

/// The longest answer: a whole blackboard, and more.
pub(super) const ANSWER_MAX: usize = 256 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCall {
    /// Proves that the caller knows the session's variable.
    pub secret: String,
    /// With the name of the program.
    pub arguments: Vec<String>,
    /// Standard input, if an argument asks for it.
    pub input: Option<String>,
    /// The files that arguments name, with their content, read with the rights of the session.
    pub files: Vec<(String, String)>,
    pub terminal: TerminalFacts,
}

impl SessionCall {
    /// The number of bytes of its texts.
    pub fn length(&self) -> usize {
        let files = self.files.iter().flat_map(|(name, text)| [name, text]);
        self.arguments.iter().chain(&self.input).chain(files).map(String::len).sum()
    }
}

/// Facts about the streams of the caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalFacts {
    pub columns: Option<usize>,
    /// The width that the caller's variable COLUMNS asks for.
    pub fixed_columns: Option<usize>,
    /// Standard output is a terminal.
    pub output: bool,
    /// Standard output takes colour.
    pub color: bool,
    pub error_color: bool,
}

/// The stream of the caller that a text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WrittenTo {
    Output,
    Error,
}

/// The texts that a command wrote, in order, and its exit code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub written: Vec<(WrittenTo, String)>,
    pub exit: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refused {
    #[error("the message is not a command, or longer than {} MiB", CALL_MAX >> 20)]
    Malformed,
    #[error("the command did not arrive in time")]
    TooSlow,
    #[error("the caller is not a process of this session")]
    Stranger,
    #[error("code under test cannot speak for the agent")]
    UnderTest,
    /// The session is a code reviewer's, and the agent program did not run the command itself.
    #[error(
        "a code reviewer's command counts only if the agent program runs it, itself or in a shell: not through another program, and not from a process left behind"
    )]
    NotSpoken,
    #[error("the commands of this session contain more than {} MiB", SENT_MAX >> 20)]
    TooMuch,
    #[error("too many commands of this session run at once")]
    Busy,
    /// It goes on, and its answer is lost.
    #[error("the command takes longer than config.command_limit; it goes on, and its answer is lost")]
    OverLimit,
    #[error("the command ended without an answer")]
    Crashed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ServerMessage {
    Working,
    Answer(Answer),
    Refused(Refused),
}

pub(crate) fn write(stream: &mut UnixStream, message: &impl Serialize, limit: Duration) -> io::Result<()> {
    let text = serde_json::to_vec(message).map_err(io::Error::other)?;
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    stream.set_write_timeout(Some(limit))?;
    stream.write_all(&length.to_be_bytes())?;
    stream.write_all(&text)
}

/// Receives one message of at most `max` bytes, all of it within `limit`.
pub(crate) fn read<M: DeserializeOwned>(
    stream: &mut UnixStream,
    max: usize,
    limit: Duration,
) -> io::Result<M> {
    let deadline = Instant::now() + limit;
    let mut length = [0; 4];
    read_until(stream, &mut length, deadline)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > max {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // Grows as bytes arrive: a length alone must not cost memory.
    let mut text = Vec::new();
    while text.len() < length {
        let start = text.len();
        text.resize(length.min(start + (64 << 10)), 0);
        let chunk = text.get_mut(start..).unwrap_or_default();
        read_until(stream, chunk, deadline)?;
    }
    serde_json::from_slice(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn read_until(stream: &mut UnixStream, mut buffer: &mut [u8], deadline: Instant) -> io::Result<()> {
    while !buffer.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => buffer = buffer.get_mut(length..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Systems differ in the name of a timeout.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    fn call(input: &str) -> SessionCall {
        SessionCall { input: Some(input.to_owned()), ..SessionCall::default() }
    }

    /// Covers: IS-01
    #[test]
    fn a_message_arrives_as_it_was_sent() {
        let (mut one, mut other) = UnixStream::pair().unwrap();
        let sent = call(&"ä\n\u{0}".repeat(50_000));
        let copy = sent.clone();
        let writer = std::thread::spawn(move || write(&mut one, &copy, SOON));
        assert_eq!(read::<SessionCall>(&mut other, CALL_MAX, SOON).unwrap(), sent);
        writer.join().unwrap().unwrap();
    }

    /// Covers: PV-05, IS-02
    #[test]
    fn fuzz_channel() {
        liza_testkit::fuzz::fuzz("channel", |bytes, _| {
            let (mut one, mut other) = UnixStream::pair().unwrap();
            // No more than the stream keeps.
            one.write_all(bytes.get(..32 << 10).unwrap_or(bytes)).unwrap();
            drop(one);
            let Ok(call) = read::<SessionCall>(&mut other, CALL_MAX, SOON) else { return };
            let (mut one, mut other) = UnixStream::pair().unwrap();
            write(&mut one, &call, SOON).unwrap();
            assert_eq!(read::<SessionCall>(&mut other, CALL_MAX, SOON).unwrap(), call);
        });
    }

    /// Covers: IS-02
    #[test]
    fn a_message_that_is_too_long_broken_or_incomplete_is_an_error() {
        let kind = |bytes: &[u8], close: bool| {
            let (mut one, mut other) = UnixStream::pair().unwrap();
            one.write_all(bytes).unwrap();
            if close {
                drop(one);
            }
            read::<SessionCall>(&mut other, 100, Duration::from_millis(30)).unwrap_err().kind()
        };
        assert_eq!(kind(&[0, 0, 0, 101], false), io::ErrorKind::InvalidData);
        assert_eq!(kind(&[255; 8], false), io::ErrorKind::InvalidData);
        assert_eq!(kind(&[0, 0, 0, 2, b'{', b'{'], false), io::ErrorKind::InvalidData);
        assert_eq!(kind(&[0, 0, 0, 9, b'{'], false), io::ErrorKind::TimedOut);
        assert_eq!(kind(&[0, 0, 0, 9, b'{'], true), io::ErrorKind::UnexpectedEof);
        assert_eq!(kind(&[0], false), io::ErrorKind::TimedOut);
    }
}

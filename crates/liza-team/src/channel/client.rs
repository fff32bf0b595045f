//! The session's end: sends one command to the supervisor and waits for its answer.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::Address;
use super::message::{self, ANSWER_MAX, Answer, Refused, ServerMessage, SessionCall};
use super::server::WORKING_INTERVAL;

/// The longest silence of a supervisor. It shows signs of life while a command runs.
const SILENCE_LIMIT: Duration = WORKING_INTERVAL.saturating_mul(6);

#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// It has ended, or this session is an old one.
    #[error("the supervisor of this session is gone: {0}")]
    Gone(#[source] io::Error),
    #[error("the supervisor of this session does not answer: {0}")]
    NoAnswer(#[source] io::Error),
    #[error("{0}")]
    Refused(#[source] Refused),
}

/// The helper of a confined session connects for it, and reports its reason as an error number.
fn not_connected(error: io::Error) -> ChannelError {
    let is_not_spoken = error.raw_os_error() == Some(rustix::io::Errno::PERM.raw_os_error());
    if is_not_spoken { ChannelError::Refused(Refused::NotSpoken) } else { ChannelError::Gone(error) }
}

pub fn send(address: &Address, call: &SessionCall) -> Result<Answer, ChannelError> {
    let mut connection = UnixStream::connect(&address.socket).map_err(not_connected)?;
    let sent = message::write(&mut connection, call, SILENCE_LIMIT);
    loop {
        // A channel that refuses a caller does not read its call.
        match (message::read(&mut connection, ANSWER_MAX, SILENCE_LIMIT), &sent) {
            (Ok(ServerMessage::Working), _) => {}
            (Ok(ServerMessage::Answer(answer)), _) => return Ok(answer),
            (Ok(ServerMessage::Refused(why)), _) => return Err(ChannelError::Refused(why)),
            (Err(error), Ok(())) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(ChannelError::NoAnswer(error));
            }
            (Err(error), _) => return Err(ChannelError::Gone(error)),
        }
    }
}

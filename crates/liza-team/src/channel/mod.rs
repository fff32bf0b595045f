//! The channel of a session: one Unix socket on which its supervisor executes the commands of its agent.
//!
//! The socket and its peer are the identity, not a variable. A session sends its arguments and the content of what they
//! name; the supervisor executes them as that agent, in that project, and sends back what was written and the exit code.
//! Knows no command: what is executed, and whether it may be, is decided by [`SessionCommands`].

mod client;
mod command_rate;
mod message;
mod server;

use std::path::PathBuf;
use std::time::Duration;

use liza_core::model::{AgentId, Generation};

pub use client::{ChannelError, send};
pub use message::{Answer, SessionCall};
pub use message::{Refused, TerminalFacts, WrittenTo};
pub use server::{Channel, OpenChannel};

use crate::project::Project;

/// The variable that names the socket of a session, after the secret that proves who knows it.
pub const CHANNEL: &str = "LIZA_CHANNEL";

/// Whose commands a channel executes.
#[derive(Debug, Clone)]
pub struct ServedSession {
    /// The project; a session cannot name another one.
    pub project: Project,
    pub agent: AgentId,
    pub generation: Generation,
    /// The variables of the session that its supervisor does not have.
    pub environment: Vec<(String, String)>,
    /// How long a command may take.
    pub limit: Duration,
}

/// Executes the commands that arrive on channels.
pub trait SessionCommands: Send + Sync {
    /// Executes one command as the session's agent. Must not start a program or write to a path that the session names.
    fn execute(&self, session: &ServedSession, call: SessionCall) -> Answer;
}

/// Where a session reaches its supervisor, and what it proves itself with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub socket: PathBuf,
    pub secret: String,
}

impl Address {
    /// The value of [`CHANNEL`].
    pub(crate) fn to_variable(&self) -> String {
        format!("{}:{}", self.secret, self.socket.display())
    }

    /// From the value of [`CHANNEL`].
    pub fn from_variable(value: &str) -> Option<Self> {
        let (secret, socket) = value.split_once(':')?;
        Some(Self { socket: PathBuf::from(socket), secret: secret.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_its_variable() {
        let address = Address { socket: "/tmp/a:b/1".into(), secret: "5ec".to_owned() };
        assert_eq!(Address::from_variable(&address.to_variable()), Some(address));
        assert_eq!(Address::from_variable("no secret"), None);
    }
}

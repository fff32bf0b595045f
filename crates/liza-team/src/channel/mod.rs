//! The channel of a session: one Unix socket on which its supervisor executes the commands of its agent.
//!
//! The socket and its peer are the identity, not a variable. A session sends its arguments and the content of
//! the files that they name; the supervisor executes them as that agent, in that project, and sends back the
//! output and the exit code. [`SessionCommands`] decides what is executed.

mod client;
mod command_rate;
mod message;
mod server;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use liza_core::model::{AgentId, Generation, RefusedResult};

pub use client::{ChannelError, send};
pub use message::{Answer, SessionCall};
pub use message::{Refused, TerminalFacts, WrittenTo};
pub(crate) use message::{read as receive, write as send_message};
pub use server::{Channel, OpenChannel};

use crate::project::Project;

/// The variable with the secret and the socket of a session.
pub const CHANNEL: &str = "LIZA_CHANNEL";

#[derive(Debug, Clone)]
pub struct ServedSession {
    /// A session cannot name another project.
    pub project: Project,
    pub agent: AgentId,
    pub generation: Generation,
    /// Variables of the session that its supervisor doesn't have.
    pub environment: Vec<(String, String)>,
    pub limit: Duration,
    pub last_refusal: LastRefusal,
    pub untold: Untold,
}

/// Gives the notes that a session gets with its next answer.
#[derive(Clone)]
pub struct Untold(Arc<dyn Fn() -> Vec<String> + Send + Sync>);

impl Untold {
    pub(crate) fn by(find: impl Fn() -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    pub fn take(&self) -> Vec<String> {
        self.0()
    }
}

impl fmt::Debug for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Untold")
    }
}

/// The last result that a session tried to record, if that was refused; its supervisor reads it when the session has ended.
#[derive(Debug, Clone, Default)]
pub struct LastRefusal(Arc<Mutex<Option<RefusedResult>>>);

impl LastRefusal {
    pub fn set(&self, refused: Option<RefusedResult>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = refused;
    }

    pub(crate) fn get(&self) -> Option<RefusedResult> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub trait SessionCommands: Send + Sync {
    /// Executes one command as the session's agent. Must not start a program or write to a path that the session names.
    fn execute(&self, session: &ServedSession, call: SessionCall) -> Answer;
}

/// The socket of a session's supervisor, and the secret that proves the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub socket: PathBuf,
    pub secret: String,
}

impl Address {
    pub(crate) fn to_variable(&self) -> String {
        format!("{}:{}", self.secret, self.socket.display())
    }

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

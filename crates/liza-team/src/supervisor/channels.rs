//! The channels of a team's sessions: one folder for their sockets, one executor for their commands.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use liza_core::model::{AgentId, Generation};
use liza_sandbox::socket_folder::{SocketFolder, SocketUse};

use crate::channel::{Channel, LastRefusal, ServedSession, SessionCommands, Untold};
use crate::project::Project;

use super::error::SupervisorError;
use super::helper_protocol::SessionOrder;

#[derive(Clone)]
pub(super) struct Channels {
    folder: Arc<SocketFolder>,
    commands: Arc<dyn SessionCommands>,
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Channels").field(&self.folder).finish()
    }
}

impl Channels {
    pub(super) fn new(commands: Arc<dyn SessionCommands>) -> Result<Self, SupervisorError> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let folder = SocketFolder::create(SocketUse::Channel, runtime.as_deref(), &std::env::temp_dir())
            .map_err(SupervisorError::io("create a folder for the sockets of sessions"))?;
        Ok(Self { folder: Arc::new(folder), commands })
    }

    pub(super) fn place(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn next_socket(&self) -> PathBuf {
        self.folder.next()
    }

    /// Opens the channel of a session that is about to start.
    pub(super) fn open(
        &self,
        project: &Project,
        (agent, generation): (AgentId, Generation),
        order: &SessionOrder,
        (limit, untold): (Duration, Untold),
    ) -> Result<Channel, SupervisorError> {
        let session = ServedSession {
            project: project.clone(),
            agent,
            generation,
            environment: order.environment.clone(),
            limit,
            untold,
            last_refusal: LastRefusal::default(),
        };
        Channel::open(&self.folder, session, Arc::clone(&self.commands))
            .map_err(SupervisorError::io("open the socket of a session"))
    }
}

//! A command on its way through the store, whatever its type.

use liza_core::model::{Actor, AgentId, StopFiles, Timestamp};
use liza_core::protocol::{Operation, Pending, PendingRequest, Request};

use crate::call::Call;
use crate::yaml::to_value;

pub trait Job: Pending {
    /// Sets the facts that are known only under the lock.
    fn set_facts(&mut self, now: Timestamp, stop_files: StopFiles);
    fn stop_files(&self) -> StopFiles;
    /// A text that distinguishes the command from another one under the same request ID.
    fn fingerprint(&self) -> String;
    /// The answer as text, for a repeated request.
    fn answer(&self) -> String;
    fn sender(&self) -> Option<AgentId>;
    /// True if it only renews leases.
    fn is_heartbeat(&self) -> bool;
}

/// Time and stop files are set under the lock.
pub(crate) fn pending<C: Operation>(call: Call<C>) -> PendingRequest<C> {
    let Call { actor, if_revision, command } = call;
    let (now, stop_files) = (Timestamp::from_unix(0), StopFiles::default());
    PendingRequest::from(Request { actor, now, stop_files, if_revision, command })
}

impl<C: Operation> Job for PendingRequest<C> {
    fn set_facts(&mut self, now: Timestamp, stop_files: StopFiles) {
        (self.request.now, self.request.stop_files) = (now, stop_files);
    }

    fn stop_files(&self) -> StopFiles {
        self.request.stop_files
    }

    fn fingerprint(&self) -> String {
        let Request { actor, if_revision, command, .. } = &self.request;
        let text = format!("{actor:?} {if_revision:?} {command:?}");
        format!("{} {:016x}", command.verb(), xxhash_rust::xxh3::xxh3_64(text.as_bytes()))
    }

    fn answer(&self) -> String {
        match &self.answer {
            Some(Ok(reply)) => to_value(reply).map(|value| value.to_string()).unwrap_or_default(),
            Some(Err(refusal)) => refusal.to_string(),
            None => String::new(),
        }
    }

    fn sender(&self) -> Option<AgentId> {
        Actor::agent(&self.request.actor)
    }

    fn is_heartbeat(&self) -> bool {
        self.request.command.verb() == "heartbeat"
    }
}

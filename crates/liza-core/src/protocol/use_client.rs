//! use-client: an agent's next session uses this client.

use crate::model::{AgentId, Refusal, Section};
use crate::rules::clients::{ClientChoice, choose_client, probing};

use super::operation::{LoadScope, Rule};
use super::ownership::check_acts_for;
use super::permission::{Rights, SUPERVISION};
use super::reply::Nothing;
use super::tx::Tx;

/// Records the client of an agent's next session. A client that is held is tried by one session at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct UseClient {
    pub agent: AgentId,
    pub client: String,
}

impl Rule for UseClient {
    type Reply = Nothing;
    const VERB: &'static str = "use-client";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::named(&[Section::Sprint]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<Nothing, Refusal> {
        check_acts_for(tx, self.agent)?;
        match choose_client(tx.board.sprint()?, std::slice::from_ref(&self.client), tx.now) {
            ClientChoice::Use(_) => {}
            ClientChoice::Probe(_) => {
                let now = tx.now;
                let client = tx.sprint()?.clients.entry(self.client.clone()).or_default();
                client.hold = client.hold.as_ref().map(|hold| probing(hold, now));
            }
            ClientChoice::Held { client, hold } => {
                return Err(Refusal::ClientHeld { client, until: hold.until, why: hold.message });
            }
        }
        let mut entry = tx.agent(self.agent)?;
        if entry.client.as_ref() != Some(&self.client) {
            entry.client = Some(self.client.clone());
            tx.put_agent(self.agent, entry);
        }
        Ok(Nothing {})
    }
}

//! accept-integration, sync: the head of the integration branch from which the program continues.
//!
//! The program records each head that it sets. Commits that came another way stop merges until the human accepts them.

use serde::Serialize;

use crate::model::{LogAction, Refusal, Section, Sha};

use super::operation::{LoadScope, Rule};
use super::permission::{HUMAN, Rights, SUPERVISION};
use super::tx::Tx;

/// The human accepts the branch as it is, or has just brought another branch into it.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptIntegration {
    /// The head of the integration branch.
    pub head: Sha,
    /// What was done, for the log.
    pub detail: String,
}

/// Nothing was recorded before: the head that was found is where the program starts from.
#[derive(Debug, Clone, PartialEq)]
pub struct AdoptIntegration {
    /// The head of the integration branch.
    pub head: Sha,
}

/// The recorded head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IntegrationAccepted {
    /// The head of the integration branch.
    pub integration_head: Sha,
}

impl Rule for AcceptIntegration {
    type Reply = IntegrationAccepted;
    const VERB: &'static str = "accept-integration";
    const RIGHTS: Rights = HUMAN;
    const LOADS: LoadScope = LoadScope::named(&[Section::Goal]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<IntegrationAccepted, Refusal> {
        let goal = tx.goal()?;
        goal.integration_head = Some(self.head.clone());
        goal.head_test = None;
        tx.log(LogAction::IntegrationUpdated, None, &self.detail);
        Ok(IntegrationAccepted { integration_head: self.head.clone() })
    }
}

impl Rule for AdoptIntegration {
    type Reply = IntegrationAccepted;
    const VERB: &'static str = "adopt-integration";
    const RIGHTS: Rights = SUPERVISION;
    const LOADS: LoadScope = LoadScope::named(&[Section::Goal]);

    fn run(&self, tx: &mut Tx<'_>) -> Result<IntegrationAccepted, Refusal> {
        if let Some(known) = &tx.board.goal()?.integration_head {
            return Ok(IntegrationAccepted { integration_head: known.clone() });
        }
        tx.goal()?.integration_head = Some(self.head.clone());
        let detail = format!("the integration branch starts at {}", self.head.short());
        tx.log_as("system", LogAction::IntegrationUpdated, None, &detail);
        Ok(IntegrationAccepted { integration_head: self.head.clone() })
    }
}

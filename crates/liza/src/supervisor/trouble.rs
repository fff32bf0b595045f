//! What can go wrong for a supervisor, sorted by what follows from it.

use liza_core::model::{Refusal, RefusalClass};
use liza_store::StoreError;

use crate::contracts::ContractError;
use crate::effects::EffectError;
use crate::git::GitError;
use crate::providers::ProviderError;
use crate::work::WorkError;

/// What went wrong, by consequence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// Somebody else was faster, or the matter has changed: look again after a while.
    #[error("{0}")]
    Refused(String),
    /// A stop file or the end of the goal says no: the next look tells.
    #[error("{0}")]
    Halted(String),
    /// The registration is another's: this supervisor has nothing more to say.
    #[error("{0}")]
    Fenced(String),
    /// The lock could not be had, again and again.
    #[error("{0}")]
    Locked(String),
    /// The blackboard is broken: nothing more is started until somebody has mended it.
    #[error("{0}")]
    Inconsistent(String),
    /// Anything else: try again later, ever later.
    #[error("{0}")]
    Failed(String),
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        let text = refusal.to_string();
        if matches!(refusal, Refusal::Fenced { .. } | Refusal::NotRegistered { .. }) {
            return Trouble::Fenced(text);
        }
        match refusal.class() {
            RefusalClass::Refused => Trouble::Refused(text),
            RefusalClass::Inconsistent => Trouble::Inconsistent(text),
            RefusalClass::Stop => Trouble::Halted(text),
        }
    }
}

impl From<StoreError> for Trouble {
    #[allow(clippy::wildcard_enum_match_arm, reason = "what is new to us in the store is an inconsistency")]
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::Refused(refusal) => (*refusal).into(),
            StoreError::Locked { .. } | StoreError::Nested => Trouble::Locked(text),
            StoreError::Io { .. } => Trouble::Failed(text),
            _ => Trouble::Inconsistent(text),
        }
    }
}

impl From<WorkError> for Trouble {
    fn from(error: WorkError) -> Self {
        let text = error.to_string();
        match error {
            WorkError::Refused(refusal) => (*refusal).into(),
            WorkError::Store(error) => error.into(),
            WorkError::Locked { .. } => Trouble::Locked(text),
            WorkError::Git(_)
            | WorkError::Branch(_)
            | WorkError::NoIntegrationBranch { .. }
            | WorkError::Conflict { .. }
            | WorkError::Unrelated { .. }
            | WorkError::TestFailed { .. }
            | WorkError::CheckoutRefused { .. }
            | WorkError::Overtaken { .. }
            | WorkError::Io { .. } => Trouble::Failed(text),
        }
    }
}

impl From<GitError> for Trouble {
    fn from(error: GitError) -> Self {
        Trouble::Failed(error.to_string())
    }
}

impl From<EffectError> for Trouble {
    fn from(error: EffectError) -> Self {
        Trouble::Failed(error.to_string())
    }
}

impl From<ContractError> for Trouble {
    fn from(error: ContractError) -> Self {
        Trouble::Failed(error.to_string())
    }
}

impl From<ProviderError> for Trouble {
    fn from(error: ProviderError) -> Self {
        Trouble::Failed(error.to_string())
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Trouble::Failed(error.to_string())
    }
}

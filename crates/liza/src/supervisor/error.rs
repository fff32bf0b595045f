//! What can go wrong for a supervisor, and what follows from it.

use std::io;

use liza_core::model::{Refusal, RefusalClass};
use liza_store::StoreError;

use crate::contracts::ContractError;
use crate::engine::EngineError;
use crate::git::GitError;
use crate::providers::ProviderError;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// A command was refused, or failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The agent program cannot be started.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The contract cannot be read.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// A file or a process could not be used.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// No name is free for another agent of this role.
    #[error("no {role} name is free")]
    NoFreeName {
        /// The role.
        role: &'static str,
    },
    /// There was nothing to claim.
    #[error("nothing could be claimed")]
    NothingToClaim,
    /// A merge cannot go on until a person has changed something, or the branch has stopped moving.
    #[error("{message}")]
    MergeHeld {
        /// Why.
        message: String,
    },
    /// The agent crashed too often.
    #[error("crashed {times} times in a row")]
    CrashedTooOften {
        /// How often.
        times: u32,
    },
    /// A bug of ours; the panic message was printed.
    #[error("internal error in liza, see the message above; please report it")]
    Panicked,
}

/// What follows from an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consequence {
    /// Another agent was first, or something has changed: look again after a pause.
    LookAgain,
    /// A stop file, or the end of the goal: the next look shows which.
    Halted,
    /// The registration belongs to another process: this agent ends.
    Fenced,
    /// The lock could not be had in several tries: this agent ends.
    Locked,
    /// The blackboard is broken: nothing is started until it is fixed.
    Inconsistent,
    /// Anything else: try again, after longer and longer pauses.
    RetryLater,
}

impl SupervisorError {
    /// What follows.
    pub fn consequence(&self) -> Consequence {
        match self {
            SupervisorError::Engine(error) => of_engine(error),
            SupervisorError::NoFreeName { .. } | SupervisorError::NothingToClaim => Consequence::LookAgain,
            SupervisorError::Provider(_)
            | SupervisorError::Contract(_)
            | SupervisorError::Io { .. }
            | SupervisorError::MergeHeld { .. }
            | SupervisorError::CrashedTooOften { .. }
            | SupervisorError::Panicked => Consequence::RetryLater,
        }
    }

    pub(super) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }
}

fn of_engine(error: &EngineError) -> Consequence {
    match error {
        EngineError::Refused(refusal) => of_refusal(refusal),
        EngineError::Store(error) => of_store(error),
        EngineError::Locked { .. } => Consequence::Locked,
        EngineError::Git(_)
        | EngineError::Branch(_)
        | EngineError::NoIntegrationBranch { .. }
        | EngineError::Effect { .. }
        | EngineError::Io { .. } => Consequence::RetryLater,
    }
}

fn of_refusal(refusal: &Refusal) -> Consequence {
    if matches!(refusal, Refusal::Fenced { .. } | Refusal::NotRegistered { .. }) {
        return Consequence::Fenced;
    }
    match refusal.class() {
        RefusalClass::Refused => Consequence::LookAgain,
        RefusalClass::Inconsistent => Consequence::Inconsistent,
        RefusalClass::Stop => Consequence::Halted,
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "a failure that is new in the store is an inconsistency")]
fn of_store(error: &StoreError) -> Consequence {
    match error {
        StoreError::Refused(refusal) => of_refusal(refusal),
        StoreError::Locked { .. } | StoreError::Nested => Consequence::Locked,
        StoreError::Io { .. } => Consequence::RetryLater,
        _ => Consequence::Inconsistent,
    }
}

impl From<Refusal> for SupervisorError {
    fn from(refusal: Refusal) -> Self {
        EngineError::from(refusal).into()
    }
}

impl From<StoreError> for SupervisorError {
    fn from(error: StoreError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<GitError> for SupervisorError {
    fn from(error: GitError) -> Self {
        EngineError::from(error).into()
    }
}

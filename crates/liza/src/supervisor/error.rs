//! The errors of a supervisor, and what each one leads to.

use std::io;

use liza_core::model::{AgentId, Refusal, RefusalClass, TaskId};
use liza_core::text::count;
use liza_store::StoreError;

use crate::contracts::ContractError;
use crate::engine::EngineError;
use crate::git::GitError;
use crate::providers::ProviderError;

/// An error of a supervisor.
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
        /// The system's error.
        source: io::Error,
    },
    /// No name is free for another agent of this role.
    #[error("no {role} name is free")]
    NoFreeName {
        /// The role.
        role: &'static str,
    },
    /// There was nothing to claim.
    #[error("no task could be claimed")]
    NothingToClaim,
    /// A merge must wait until a person has changed something, or until the branch stops moving.
    #[error("{message}")]
    MergeHeld {
        /// Why.
        message: String,
    },
    /// A planner reached the limit of sessions without a result.
    #[error(
        "{agent} stopped: {} in a row ended without a result{}; the last one printed: {}",
        count(*times as usize, "session"),
        woken_for(woken),
        last_words.as_deref().unwrap_or("nothing")
    )]
    NoResult {
        /// Which one.
        agent: AgentId,
        /// How many.
        times: u32,
        /// What it was woken for, in words.
        woken: String,
        /// The last lines that the last of them printed.
        last_words: Option<String>,
    },
    /// An error about one task.
    #[error("{source}")]
    OnTask {
        /// Which one.
        task: TaskId,
        /// What went wrong.
        source: Box<SupervisorError>,
    },
    /// A bug in Liza; the panic message was printed.
    #[error("internal error in liza, see the message above; please report it")]
    Panicked,
}

/// What an error leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consequence {
    /// Another agent was faster, or the state has changed: check again after a pause.
    Recheck,
    /// A stop file is present or the goal has ended; the next check shows which.
    Halted,
    /// The registration belongs to another process: this agent ends.
    Fenced,
    /// The lock was not available after several tries: this agent ends.
    Locked,
    /// The blackboard is broken: nothing is started until it is fixed.
    Inconsistent,
    /// Anything else: retry with increasing pauses.
    RetryLater,
}

impl SupervisorError {
    /// What this error leads to.
    pub fn consequence(&self) -> Consequence {
        match self {
            SupervisorError::Engine(error) => of_engine(error),
            SupervisorError::OnTask { source, .. } => source.consequence(),
            SupervisorError::NoFreeName { .. } | SupervisorError::NothingToClaim => Consequence::Recheck,
            SupervisorError::Provider(_)
            | SupervisorError::Contract(_)
            | SupervisorError::Io { .. }
            | SupervisorError::MergeHeld { .. }
            | SupervisorError::NoResult { .. }
            | SupervisorError::Panicked => Consequence::RetryLater,
        }
    }

    /// The same, with the task that it is about.
    pub(super) fn on(self, task: &TaskId) -> Self {
        match self.consequence() {
            Consequence::RetryLater => Self::OnTask { task: task.clone(), source: Box::new(self) },
            Consequence::Recheck
            | Consequence::Halted
            | Consequence::Fenced
            | Consequence::Locked
            | Consequence::Inconsistent => self,
        }
    }

    /// The task that it is about, if that is known.
    pub(super) fn task(&self) -> Option<&TaskId> {
        if let Self::OnTask { task, .. } = self { Some(task) } else { None }
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
        | EngineError::Setup(_)
        | EngineError::Branch(_)
        | EngineError::NoIntegrationBranch { .. }
        | EngineError::RemoteRewound { .. }
        | EngineError::LocalCommits { .. }
        | EngineError::NoRemoteBranch { .. }
        | EngineError::RemoteBusy { .. }
        | EngineError::NotTakenBack { .. }
        | EngineError::Effect { .. }
        | EngineError::Io { .. } => Consequence::RetryLater,
    }
}

fn of_refusal(refusal: &Refusal) -> Consequence {
    if matches!(refusal, Refusal::Fenced { .. } | Refusal::NotRegistered { .. }) {
        return Consequence::Fenced;
    }
    match refusal.class() {
        RefusalClass::Refused => Consequence::Recheck,
        RefusalClass::Inconsistent => Consequence::Inconsistent,
        RefusalClass::Stop => Consequence::Halted,
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "a new kind of store error counts as an inconsistency")]
fn of_store(error: &StoreError) -> Consequence {
    match error {
        StoreError::Refused(refusal) => of_refusal(refusal),
        StoreError::Locked { .. } | StoreError::Overtaken { .. } | StoreError::Nested => Consequence::Locked,
        StoreError::Io { .. } => Consequence::RetryLater,
        StoreError::Database(error) if error.reason.is_passing() => Consequence::RetryLater,
        _ => Consequence::Inconsistent,
    }
}

/// What a planner was woken for, behind what became of it.
fn woken_for(woken: &str) -> String {
    if woken.is_empty() { String::new() } else { format!("; woken because {woken}") }
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

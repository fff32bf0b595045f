//! The errors of a supervisor, and their consequences.

use std::io;
use std::path::PathBuf;

use liza_agents::contracts::ContractError;
use liza_agents::providers::ProviderError;
use liza_core::model::{AgentId, Refusal, RefusalClass, TaskId};
use liza_core::supervise::{WorkKind, WorkSubject};
use liza_core::text::shell_word;
use liza_git::GitError;
use liza_host::disk;
use liza_status::alarms::{Remedy, sessions_without_result};
use liza_status::command_line::{CommandLine, OPEN};
use liza_store::StoreError;

use crate::engine::EngineError;
use crate::session::checkout_setup::SetupError;

#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error(transparent)]
    Contract(#[from] ContractError),
    #[error("cannot {action}: {source}")]
    Io { action: &'static str, source: io::Error },
    #[error("no {role} name is free")]
    NoFreeName { role: &'static str },
    #[error("no task could be claimed")]
    NothingToClaim,
    #[error("{task} cannot be merged: git refuses to update the checkout in {}: {message}", path.display())]
    CheckoutRefused { task: TaskId, path: PathBuf, message: String },
    #[error(
        "{agent} stopped: {}",
        sessions_without_result(*times, woken, last_words.as_deref())
    )]
    NoResult {
        agent: AgentId,
        times: u32,
        /// In words.
        woken: String,
        last_words: Option<String>,
        /// The command that starts the team again.
        run: CommandLine,
    },
    #[error("{source}")]
    OnWork { work: FailedWork, source: Box<SupervisorError> },
    /// A bug in Liza; the panic message was printed.
    #[error("internal error in liza, see the message above; please report it")]
    Panicked,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedWork {
    pub kind: WorkKind,
    pub task: Option<TaskId>,
}

impl FailedWork {
    /// Work on a task fails for all agents, everything else for this one.
    pub fn subject(&self, agent: AgentId) -> WorkSubject {
        self.task.clone().map_or(WorkSubject::Agent(agent), WorkSubject::Task)
    }
}

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
    pub fn consequence(&self) -> Consequence {
        match self {
            SupervisorError::Engine(error) => of_engine(error),
            SupervisorError::OnWork { source, .. } => source.consequence(),
            SupervisorError::NoFreeName { .. } | SupervisorError::NothingToClaim => Consequence::Recheck,
            SupervisorError::Provider(_)
            | SupervisorError::Contract(_)
            | SupervisorError::Io { .. }
            | SupervisorError::CheckoutRefused { .. }
            | SupervisorError::NoResult { .. }
            | SupervisorError::Panicked => Consequence::RetryLater,
        }
    }

    /// Adds the work that failed. An error that ends or stops the agent is about no work.
    pub fn on(self, kind: WorkKind, task: Option<&TaskId>) -> Self {
        match self.consequence() {
            Consequence::Recheck | Consequence::Inconsistent | Consequence::RetryLater => {
                let work = FailedWork { kind, task: task.cloned() };
                Self::OnWork { work, source: Box::new(self) }
            }
            Consequence::Halted | Consequence::Fenced | Consequence::Locked => self,
        }
    }

    /// The result of a validation that kept a review from beginning, in words.
    pub(super) fn validation(&self) -> Option<String> {
        let Self::Engine(error) = self else { return None };
        let refusal = error.refusal()?;
        if let Refusal::ValidationFailed { task, what, .. } = refusal {
            return Some(format!("{task} REJECTED: validation_failed: {what}"));
        }
        let Refusal::ValidationHeld { task, what } = refusal else { return None };
        Some(format!("{task} waits: {what}; its change is not blamed for it. liza status shows what to do"))
    }

    pub fn work(&self) -> Option<&FailedWork> {
        if let Self::OnWork { work, .. } = self { Some(work) } else { None }
    }

    pub(super) fn is_setup(&self) -> bool {
        match self {
            Self::OnWork { source, .. } => source.is_setup(),
            Self::Engine(error) => matches!(error, EngineError::Setup(_)),
            Self::Provider(_)
            | Self::Contract(_)
            | Self::Io { .. }
            | Self::NoFreeName { .. }
            | Self::NothingToClaim
            | Self::CheckoutRefused { .. }
            | Self::NoResult { .. }
            | Self::Panicked => false,
        }
    }

    pub fn remedy(&self) -> Option<Remedy> {
        if disk::is_lack_of_space(self) {
            let advice = "Free space on the disk".to_owned();
            return Some(Remedy { advice, command: CommandLine::shell("df -h .") });
        }
        match self {
            Self::OnWork { source, .. } => source.remedy(),
            Self::CheckoutRefused { path, .. } => {
                let path = path.to_string_lossy();
                let path = shell_word(&path);
                let advice = "Commit, stash or move what git names there".to_owned();
                Some(Remedy { advice, command: CommandLine::shell(format!("git -C {path} status")) })
            }
            Self::Engine(EngineError::Holdout { .. }) => {
                let advice = "Correct config.holdout, or the folder".to_owned();
                Some(Remedy { advice, command: CommandLine::liza(["config", "holdout", OPEN]) })
            }
            Self::Engine(EngineError::Setup(SetupError::Copy { .. })) => {
                let advice = "Correct config.copy, or the file".to_owned();
                Some(Remedy { advice, command: CommandLine::liza(["config", "copy", OPEN]) })
            }
            Self::Engine(EngineError::Setup(
                SetupError::Failed { .. } | SetupError::ChangedSettings { .. },
            )) => {
                let advice = "Correct the command, or what it needs".to_owned();
                Some(Remedy { advice, command: CommandLine::liza(["config", "setup", OPEN]) })
            }
            Self::Engine(EngineError::Git(error) | EngineError::Setup(SetupError::Git(error))) => {
                of_git(error)
            }
            Self::Engine(error) => {
                let advice = "Look at what it names".to_owned();
                let command = error.branch_answer().map(CommandLine::shell);
                command.map(|command| Remedy { advice, command })
            }
            Self::Provider(_)
            | Self::Contract(_)
            | Self::Io { .. }
            | Self::NoFreeName { .. }
            | Self::NothingToClaim
            | Self::NoResult { .. }
            | Self::Panicked => None,
        }
    }

    pub fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "git's other errors name what is wrong themselves")]
fn of_git(error: &GitError) -> Option<Remedy> {
    let (advice, command) = match error {
        GitError::RemoteUnreachable { remote, .. } => (
            format!("Check the network and the remote {remote}"),
            CommandLine::shell(format!("git ls-remote {}", shell_word(remote))),
        ),
        GitError::RemoteRefused { remote, .. } => (
            format!("Allow pushes to the remote {remote}, or use another one"),
            CommandLine::liza(["doctor"]),
        ),
        GitError::RemoteRefMissing { remote, .. } => (
            format!("Send what the remote {remote} lacks, from the machine that has it"),
            CommandLine::liza(["recover"]),
        ),
        other => (other.hint()?.to_owned(), CommandLine::liza(["doctor"])),
    };
    Some(Remedy { advice, command })
}

fn of_engine(error: &EngineError) -> Consequence {
    match error {
        EngineError::Refused(refusal) => of_refusal(refusal),
        EngineError::Store(error) => of_store(error),
        EngineError::Locked { .. } => Consequence::Locked,
        EngineError::Git(_)
        | EngineError::Setup(_)
        | EngineError::Holdout { .. }
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

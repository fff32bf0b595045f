//! The error of every command: the problem, the next step, and the exit code.
//!
//! Every layer has its own error enum; they become messages, hints and error codes here.

use std::path::Path;

use liza_core::model::{IdError, Refusal};
use liza_git::{Git, GitError, Repo};
use liza_host::disk;
use liza_store::StoreError;
use liza_team::engine::EngineError;
use serde_json::Value;

use super::exit_code::Exit;

/// The line that installs the whole program.
pub(crate) const INSTALL: &str = "cargo install --path crates/liza";

/// The reason why a command did not do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandError {
    /// A stable word for programs.
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) exit: Exit,
    /// More fields for programs.
    pub(crate) details: Vec<(String, Value)>,
}

impl CommandError {
    /// A refusal by the command itself, before any rule is checked.
    pub(crate) fn refused(code: &str, message: impl Into<String>) -> Self {
        let (code, message) = (code.to_owned(), message.into());
        Self { code, message, hint: None, exit: Exit::Refused, details: Vec::new() }
    }

    #[must_use]
    pub(crate) fn with(mut self, key: &str, value: Value) -> Self {
        self.details.push((key.to_owned(), value));
        self
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub(crate) fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// The error of a command that needs a part which was left out of this program.
    pub(crate) fn missing_feature(what: &str) -> Self {
        Self::refused("missing_feature", format!("this liza was built without {what}"))
            .hint(format!("in the clone of Liza, the whole program: {INSTALL}"))
            .exit(Exit::Missing)
    }

    /// There is no blackboard here; the repository may lack what it needs before that.
    pub(crate) fn no_project(from: &Path) -> Self {
        let message = format!("Liza is not set up here: no .liza folder in {} or above it", from.display());
        let hint = match Repo::open(&Git::new(), from).and_then(|repo| repo.head()) {
            Err(GitError::NotARepository { .. }) => {
                "this folder is not in a git repository; go to yours, then: liza init \"GOAL\""
            }
            Err(GitError::NoCommits { .. }) => {
                "this repository has no commit yet; commit your files, then: liza init \"GOAL\""
            }
            Ok(_) | Err(_) => "in the root of your repository: liza init \"GOAL\"",
        };
        Self::refused("no_project", message).hint(hint)
    }
}

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> Self {
        Self {
            code: refusal.code().to_owned(),
            message: refusal.to_string(),
            hint: refusal.hint(),
            exit: refusal.class().into(),
            details: Vec::new(),
        }
    }
}

impl From<IdError> for CommandError {
    fn from(error: IdError) -> Self {
        Self::refused("bad_id", error.to_string())
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        let made = |code: &str, exit: Exit, hint: &str| {
            let hint = (!hint.is_empty()).then(|| hint.to_owned());
            Self { code: code.to_owned(), message: message.clone(), hint, exit, details: Vec::new() }
        };
        match error {
            StoreError::Refused(refusal) => (*refusal).into(),
            StoreError::Violates(_) => made("invalid", Exit::Refused, "nothing was written"),
            StoreError::Missing { .. } => made("no_project", Exit::Refused, "liza init \"GOAL\""),
            StoreError::Lost { .. } => made("lost", Exit::Inconsistent, "liza recover"),
            StoreError::Exists { .. } => made("exists", Exit::Refused, "liza status shows it"),
            StoreError::NotEmpty { .. } => {
                made("exists", Exit::Refused, "import into a new project: liza init in another clone")
            }
            StoreError::Locked { .. } => {
                made("locked", Exit::Locked, "another process is writing; try again in 1 to 5 s")
            }
            StoreError::Overtaken { .. } => made("saved_meanwhile", Exit::Locked, "try again"),
            StoreError::Nested => made("locked", Exit::Locked, "run it after `liza lock modify` has ended"),
            StoreError::Broken(_) => made(
                "broken_state",
                Exit::Inconsistent,
                "to see what is wrong: liza validate; to repair it: liza edit",
            ),
            StoreError::NewerVersion { .. } => made("newer_version", Exit::Inconsistent, "update liza"),
            StoreError::Io { .. } => {
                made("io", Exit::Refused, "check its permissions and the free disk space: liza doctor")
            }
            StoreError::Database(ref error) => {
                let exit = if error.reason.is_passing() { Exit::Locked } else { Exit::Refused };
                made("database", exit, error.reason.hint())
            }
            StoreError::NoDatabaseClient => CommandError::missing_feature("a database client"),
            StoreError::Path(_) => {
                made("bad_path", Exit::Refused, "liza get --help shows what a path looks like")
            }
            // The store's enum is non-exhaustive; a new error is an inconsistency until it gets a line here.
            StoreError::ReadBackMismatch { .. } | _ => {
                made("store", Exit::Inconsistent, "nothing was written")
            }
        }
    }
}

impl From<GitError> for CommandError {
    fn from(error: GitError) -> Self {
        let (code, exit) = match &error {
            GitError::Missing { .. } | GitError::TooOld { .. } => ("git_missing", Exit::Missing),
            GitError::NotARepository { .. }
            | GitError::NoCheckout { .. }
            | GitError::NoCommits { .. }
            | GitError::Reftable { .. }
            | GitError::LineBreakInPath { .. } => ("no_repository", Exit::Refused),
            GitError::UnknownCommit { .. } => ("unknown_commit", Exit::Refused),
            GitError::RemoteUnreachable { .. } => {
                let hint = "check the network and the remote: liza doctor; then try again";
                return Self::refused("remote_unreachable", error.to_string()).hint(hint).exit(Exit::Git);
            }
            GitError::RemoteRefused { .. } => {
                let hint = "allow pushes to it, or use another branch or remote: liza doctor";
                return Self::refused("remote_refused", error.to_string()).hint(hint).exit(Exit::Git);
            }
            GitError::RemoteRefMissing { .. } => {
                let hint = "on the machine that has the work: liza recover";
                return Self::refused("remote_ref_missing", error.to_string()).hint(hint).exit(Exit::Git);
            }
            GitError::TimedOut { .. }
            | GitError::Failed { .. }
            | GitError::UnexpectedOutput { .. }
            | GitError::ForeignFolder { .. }
            | GitError::DamagedWorktree { .. }
            | GitError::BranchInUse { .. }
            | GitError::BranchInTheWay { .. }
            | GitError::AlteredMerge { .. }
            | GitError::NoIdentity { .. }
            | GitError::Io { .. } => ("git", Exit::Git),
        };
        let hint = error.hint().map(str::to_owned);
        Self { hint, ..Self::refused(code, error.to_string()).exit(exit) }
    }
}

impl From<EngineError> for CommandError {
    fn from(error: EngineError) -> Self {
        let (message, command) = (error.to_string(), error.branch_answer().unwrap_or_default());
        let made =
            |code: &str, exit: Exit, hint: &str| Self::refused(code, message.clone()).hint(hint).exit(exit);
        match error {
            EngineError::Refused(refusal) => (*refusal).into(),
            EngineError::Store(error) => error.into(),
            EngineError::Git(error) => error.into(),
            EngineError::Setup(_) if disk::is_lack_of_space(&error) => {
                made("setup_failed", Exit::Refused, disk::FREE_SPACE)
            }
            EngineError::Setup(_) => made(
                "setup_failed",
                Exit::Refused,
                "correct it: liza config setup COMMAND, or liza config copy '[FILE]'",
            ),
            EngineError::Holdout { .. } => {
                made("holdout_unusable", Exit::Refused, "correct it: liza doctor says what is missing")
            }
            EngineError::Branch(_) => {
                made("bad_branch", Exit::Inconsistent, "liza config integration_branch NAME")
            }
            EngineError::NoIntegrationBranch { .. } => {
                made("no_integration_branch", Exit::Git, "liza doctor --fix creates it")
            }
            EngineError::RemoteRewound { .. } => made("remote_rewound", Exit::Git, &command),
            EngineError::LocalCommits { .. } => made("local_commits", Exit::Git, &command),
            EngineError::NoRemoteBranch { .. } => made("no_remote_branch", Exit::Git, &command),
            EngineError::RemoteBusy { .. } => made("remote_busy", Exit::Locked, "try again"),
            EngineError::NotTakenBack { .. } => made("not_taken_back", Exit::Git, &command),
            EngineError::Locked { .. } => {
                made("locked", Exit::Locked, "try again when the other process is done")
            }
            EngineError::Effect { .. } => {
                made("effect", Exit::Inconsistent, "remove the file, then liza recover")
            }
            EngineError::Io { .. } => made("io", Exit::Refused, "liza doctor checks the disk"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: MM-01
    #[test]
    fn a_database_without_a_client_names_the_line_that_installs_it() {
        let error = CommandError::from(StoreError::NoDatabaseClient);
        assert_eq!((error.code.as_str(), error.exit.code()), ("missing_feature", 5));
        assert!(error.hint.is_some_and(|hint| hint.ends_with(INSTALL)));
    }
}

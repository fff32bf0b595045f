//! Everything that can go wrong with git, typed by what a caller can do about it.
//!
//! Each error says what was being done and keeps git's own message; nothing here decides what happens next.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::program::version::GitVersion;

/// Why a git operation failed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no `git` on the search path.
    #[error("git is not on PATH: install git {} or newer", GitVersion::OLDEST)]
    Missing {
        /// The error of the operating system.
        source: io::Error,
    },
    /// The `git` on the search path lacks features that Liza needs.
    #[error("git {found} is too old: install git {} or newer", GitVersion::OLDEST)]
    TooOld { found: GitVersion },
    /// Git did not finish in time and was killed with its children.
    #[error("{action} took longer than {} s, git was killed ({command})", limit.as_secs())]
    TimedOut {
        action: String,
        /// The command that was run.
        command: String,
        limit: Duration,
    },
    /// Git exited with an error.
    #[error("{action} failed: {message} ({command}{})", status.map(|code| format!(", exit {code}")).unwrap_or_default())]
    Failed {
        action: String,
        /// The command that was run.
        command: String,
        /// Its exit status; `None` when a signal ended it.
        status: Option<i32>,
        message: String,
    },
    /// Git printed something that cannot be parsed.
    #[error("{action} failed: unexpected output from git: {output:?} ({command})")]
    UnexpectedOutput {
        action: String,
        /// The command that was run.
        command: String,
        /// The beginning of its output.
        output: String,
    },
    /// The folder is not in a git repository.
    #[error("{} is not in a git repository", path.display())]
    NotARepository { path: PathBuf },
    /// The repository has no files checked out.
    #[error("{} is a bare repository or a .git folder", path.display())]
    NoCheckout { path: PathBuf },
    /// The repository has no commit yet.
    #[error("{} has no commit yet", path.display())]
    NoCommits {
        /// The root of the repository.
        path: PathBuf,
    },
    /// Something that Liza did not create is where a task's worktree belongs.
    #[error("{} is not a worktree that Liza created: move it away, then try again", path.display())]
    ForeignFolder { path: PathBuf },
    /// The repository of a task's worktree cannot be used.
    #[error("the repository in {} cannot be used: {why}", path.display())]
    DamagedWorktree {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A branch that has to be created again is checked out elsewhere.
    #[error("branch {branch} is checked out in {}: switch to another branch there, then try again", path.display())]
    BranchInUse {
        branch: String,
        /// The folder in which it is checked out.
        path: PathBuf,
    },
    /// A branch whose name is a folder of the branches that Liza creates.
    #[error(
        "{action} failed: there is a branch {branch}, so git cannot create {branch}/…: rename it with `git branch -m {branch} NEW-NAME`"
    )]
    BranchInTheWay { action: String, branch: &'static str },
    /// The path of the repository cannot be used with git.
    #[error("{path:?} has a line break in its name, which git does not support: rename the folder")]
    LineBreakInPath { path: PathBuf },
    /// The result of a merge has changes of neither side.
    #[error("the merge of {commit} has changes of neither side, so it was not used: {}", list(paths))]
    AlteredMerge {
        /// The commit that was to be merged.
        commit: String,
        paths: Vec<PathBuf>,
    },
    /// There is no such commit here, or the abbreviated hash is ambiguous.
    #[error("{name} is not a commit of this repository: {message}")]
    UnknownCommit { name: String, message: String },
    /// Git has no name and email address for the committer.
    #[error("git has no identity to commit with: set user.name and user.email with `git config` ({message})")]
    NoIdentity { message: String },
    /// The remote cannot be reached, or did not answer in time. What was sent may have arrived.
    #[error("cannot reach the remote {remote}: {message}")]
    RemoteUnreachable {
        remote: String,
        /// What git or the remote said.
        message: String,
    },
    /// The remote refused a push; nothing has changed there.
    #[error("the remote {remote} refused {what}: {message}")]
    RemoteRefused { remote: String, what: String, message: String },
    /// The remote has no reference of that name (any more).
    #[error("the remote {remote} has no {name}")]
    RemoteRefMissing { remote: String, name: String },
    #[error("{action} failed: {}: {source}", path.display())]
    Io {
        action: String,
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl GitError {
    /// An IO error with what was being done to which file.
    pub fn io(action: &str, path: &Path, source: io::Error) -> Self {
        Self::Io { action: action.to_owned(), path: path.to_owned(), source }
    }

    /// What the person does about it, where it is always the same.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotARepository { .. } => {
                Some("go to your repository and repeat the command; a new one begins with: git init")
            }
            Self::NoCheckout { .. } => Some("run it in a checkout: git clone FOLDER"),
            Self::NoCommits { .. } => Some(
                "agents work on commits: git add --all && git commit -m \"First commit\"; without any file yet: \
                 git commit --allow-empty -m \"First commit\"",
            ),
            Self::NoIdentity { .. } => Some(
                "git config --global user.name \"Your Name\"; git config --global user.email you@example.com",
            ),
            Self::Missing { .. }
            | Self::TooOld { .. }
            | Self::TimedOut { .. }
            | Self::Failed { .. }
            | Self::UnexpectedOutput { .. }
            | Self::ForeignFolder { .. }
            | Self::DamagedWorktree { .. }
            | Self::BranchInUse { .. }
            | Self::BranchInTheWay { .. }
            | Self::LineBreakInPath { .. }
            | Self::AlteredMerge { .. }
            | Self::UnknownCommit { .. }
            | Self::RemoteUnreachable { .. }
            | Self::RemoteRefused { .. }
            | Self::RemoteRefMissing { .. }
            | Self::Io { .. } => None,
        }
    }

    /// Git's own message, where there is one.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Failed { message, .. }
            | Self::RemoteUnreachable { message, .. }
            | Self::RemoteRefused { message, .. }
            | Self::UnknownCommit { message, .. }
            | Self::NoIdentity { message } => Some(message),
            Self::Missing { .. }
            | Self::TooOld { .. }
            | Self::TimedOut { .. }
            | Self::UnexpectedOutput { .. }
            | Self::NotARepository { .. }
            | Self::NoCheckout { .. }
            | Self::NoCommits { .. }
            | Self::ForeignFolder { .. }
            | Self::DamagedWorktree { .. }
            | Self::BranchInUse { .. }
            | Self::BranchInTheWay { .. }
            | Self::LineBreakInPath { .. }
            | Self::AlteredMerge { .. }
            | Self::RemoteRefMissing { .. }
            | Self::Io { .. } => None,
        }
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>().join(", ")
}

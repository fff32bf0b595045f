//! Errors of git, typed by the caller's next step. Each names the action and keeps git's own message.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_host::disk;

use crate::program::version::GitVersion;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git is not on PATH: install git {} or newer", GitVersion::OLDEST)]
    Missing { source: io::Error },
    #[error("git {found} is too old: install git {} or newer", GitVersion::OLDEST)]
    TooOld { found: GitVersion },
    /// It was killed with its children.
    #[error("{action} took longer than {} s, git was killed ({command})", limit.as_secs())]
    TimedOut { action: String, command: String, limit: Duration },
    #[error("{action} failed: {message} ({command}{})", status.map(|code| format!(", exit {code}")).unwrap_or_default())]
    Failed {
        action: String,
        command: String,
        /// `None` when a signal ended it.
        status: Option<i32>,
        message: String,
    },
    #[error("{action} failed: unexpected output from git: {output:?} ({command})")]
    UnexpectedOutput { action: String, command: String, output: String },
    #[error("{} is not in a git repository", path.display())]
    NotARepository { path: PathBuf },
    #[error("{} is a bare repository or a .git folder", path.display())]
    NoCheckout { path: PathBuf },
    #[error("{} has no commit yet", path.display())]
    NoCommits { path: PathBuf },
    #[error("{} keeps its references in the format reftable, which Liza does not support", path.display())]
    Reftable { path: PathBuf },
    #[error("{} is not a worktree that Liza created: move it away, then try again", path.display())]
    ForeignFolder { path: PathBuf },
    #[error("the repository in {} cannot be used: {why}", path.display())]
    DamagedWorktree { path: PathBuf, why: String },
    /// A branch that has to be created again is checked out elsewhere.
    #[error("branch {branch} is checked out in {}: switch to another branch there, then try again", path.display())]
    BranchInUse { branch: String, path: PathBuf },
    /// A branch whose name is a folder of the branches that Liza creates.
    #[error(
        "{action} failed: there is a branch {branch}, so git cannot create {branch}/…: rename it with `git branch -m {branch} NEW-NAME`"
    )]
    BranchInTheWay { action: String, branch: &'static str },
    #[error("{path:?} has a line break in its name, which git does not support: rename the folder")]
    LineBreakInPath { path: PathBuf },
    #[error("the merge of {commit} has changes of neither side, so it was not used: {}", list(paths))]
    AlteredMerge { commit: String, paths: Vec<PathBuf> },
    /// There is no such commit here, or the abbreviated hash is ambiguous.
    #[error("{name} is not a commit of this repository: {message}")]
    UnknownCommit { name: String, message: String },
    #[error("git has no identity to commit with: set user.name and user.email with `git config` ({message})")]
    NoIdentity { message: String },
    /// The sent data may have arrived.
    #[error("cannot reach the remote {remote}: {message}")]
    RemoteUnreachable { remote: String, message: String },
    /// Nothing has changed there.
    #[error("the remote {remote} refused {what}: {message}")]
    RemoteRefused { remote: String, what: String, message: String },
    #[error("the remote {remote} has no {name}")]
    RemoteRefMissing { remote: String, name: String },
    #[error("{action} failed: {}: {source}", path.display())]
    Io { action: String, path: PathBuf, source: io::Error },
}

impl GitError {
    pub fn io(action: &str, path: &Path, source: io::Error) -> Self {
        Self::Io { action: action.to_owned(), path: path.to_owned(), source }
    }

    /// The person's next step, where it is always the same.
    pub fn hint(&self) -> Option<&'static str> {
        if disk::is_lack_of_space(self) {
            return Some(disk::FREE_SPACE);
        }
        match self {
            Self::NotARepository { .. } => {
                Some("go to your repository and repeat the command; a new one begins with: git init")
            }
            Self::NoCheckout { .. } => Some("run it in a checkout: git clone FOLDER"),
            Self::NoCommits { .. } => Some(
                "agents work on commits: git add --all && git commit -m \"First commit\"; without any file yet: \
                 git commit --allow-empty -m \"First commit\"",
            ),
            Self::Reftable { .. } => {
                Some("change it, then repeat the command: git refs migrate --ref-format=files")
            }
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

    /// Git's own message.
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
            | Self::Reftable { .. }
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

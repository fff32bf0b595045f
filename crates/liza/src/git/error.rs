//! Everything that can go wrong with git, typed by what a caller can do about it.
//!
//! Each error says what was being done and keeps git's own words; nothing here decides what happens next.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::run::Version;

/// Why a git operation did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no `git` on the path.
    #[error("the git program was not found: install git {} or newer", Version::OLDEST)]
    Missing {
        /// What the operating system said.
        source: io::Error,
    },
    /// The `git` on the path lacks what we need.
    #[error("git {found} is too old: install git {} or newer", Version::OLDEST)]
    TooOld {
        /// What is installed.
        found: Version,
    },
    /// Git did not end in time; it and its children were killed.
    #[error("{doing}: git took longer than {} s and was stopped ({command})", limit.as_secs())]
    TimedOut {
        /// What was being done.
        doing: String,
        /// What was run.
        command: CommandLine,
        /// How long it was given.
        limit: Duration,
    },
    /// Git said no.
    #[error("{doing}: {message} ({command}{})", status.map(|code| format!(", exit {code}")).unwrap_or_default())]
    Failed {
        /// What was being done.
        doing: String,
        /// What was run.
        command: CommandLine,
        /// Its exit status; `None` when a signal ended it.
        status: Option<i32>,
        /// Git's own words.
        message: String,
    },
    /// Git answered with something that we do not understand.
    #[error("{doing}: git's answer was not understood: {answer:?} ({command})")]
    Unreadable {
        /// What was being done.
        doing: String,
        /// What was run.
        command: CommandLine,
        /// The beginning of what it answered.
        answer: String,
    },
    /// The folder is not in a git repository.
    #[error("{} is not in a git repository: run `git init` there first", path.display())]
    NotARepository {
        /// The folder.
        path: PathBuf,
    },
    /// The repository has no files checked out.
    #[error("{} is a bare repository or a .git folder: run this in a checkout", path.display())]
    NoCheckout {
        /// The folder.
        path: PathBuf,
    },
    /// The repository has no commit yet.
    #[error("{} has no commit yet: make a first commit (`git commit --allow-empty -m start`)", path.display())]
    NoCommits {
        /// The repository's root.
        path: PathBuf,
    },
    /// Where a task's worktree should be is something that we did not make.
    #[error("{} is not a worktree of ours: move it away, then try again", path.display())]
    Foreign {
        /// Where.
        path: PathBuf,
    },
    /// Somebody else has a branch checked out that would have to be made anew.
    #[error("branch {branch} is checked out in {}: switch to another branch there, then try again", path.display())]
    BranchInUse {
        /// Which.
        branch: String,
        /// Where.
        path: PathBuf,
    },
    /// No such commit here, or the digits fit several.
    #[error("{name} names no commit of this repository: {message}")]
    UnknownCommit {
        /// What was given.
        name: String,
        /// Git's own words.
        message: String,
    },
    /// Git does not know in whose name to commit.
    #[error("git does not know who commits here: set user.name and user.email with `git config` ({message})")]
    NoIdentity {
        /// Git's own words.
        message: String,
    },
    /// Something about a file went wrong.
    #[error("{doing}: {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: String,
        /// With which file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

impl GitError {
    /// An IO error with what was being done to which file.
    pub(crate) fn io(doing: &str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing: doing.to_owned(), path: path.to_owned(), source }
    }

    /// Git's own words, where it said some.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Failed { message, .. }
            | Self::UnknownCommit { message, .. }
            | Self::NoIdentity { message } => Some(message),
            Self::Missing { .. }
            | Self::TooOld { .. }
            | Self::TimedOut { .. }
            | Self::Unreadable { .. }
            | Self::NotARepository { .. }
            | Self::NoCheckout { .. }
            | Self::NoCommits { .. }
            | Self::Foreign { .. }
            | Self::BranchInUse { .. }
            | Self::Io { .. } => None,
        }
    }
}

/// A command for people to read and to try by hand; never given to a shell by us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine(pub Vec<String>);

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "git")?;
        self.0.iter().try_for_each(|word| write!(f, " {word}"))
    }
}

//! Why the store could not do what it was asked. Whatever the error, the files are as they were.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_core::model::Refusal;
use liza_core::rules::invariants::Violation;

use crate::path::PathError;
use crate::yaml::{Place, YamlError};

/// Something in a file that is not as it should be, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub file: PathBuf,
    /// Where in it.
    pub place: Option<Place>,
    /// The task or agent, where one is known.
    pub subject: Option<String>,
    /// The key whose value is wrong.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
}

impl Fault {
    pub(crate) fn new(file: &Path, subject: Option<&str>, error: YamlError) -> Self {
        let YamlError { message, place, key } = error;
        Self { file: file.to_owned(), place, subject: subject.map(str::to_owned), key, message }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(place) = self.place {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        if let Some(subject) = &self.subject {
            write!(f, ": {subject}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ": {key}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Why the store refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system said no.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The rules say no.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The write would break what must hold.
    #[error("{}", list(.0))]
    Violates(Vec<Violation>),
    /// There is no blackboard.
    #[error("{path} does not exist; `liza init` makes a blackboard")]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// There is one already.
    #[error("{path} exists already")]
    Exists {
        /// What is in the way.
        path: PathBuf,
    },
    /// Somebody else held the lock all the time.
    #[error("{path} is locked; gave up after {waited:?}")]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// How long.
        waited: Duration,
    },
    /// The caller runs inside a command that holds the lock.
    #[error(
        "the blackboard is locked by the `lock modify` that runs this command; it cannot be written from inside"
    )]
    Nested,
    /// The file cannot be read as a blackboard.
    #[error("{0}")]
    Broken(Fault),
    /// A path of `lock read` or `lock write` cannot be used.
    #[error("{0}")]
    Path(PathError),
    /// The file was written by a newer program.
    #[error(
        "{path} has version {found}; this program knows versions up to {known}: update it before writing"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: i64,
        /// What we know.
        known: i64,
    },
    /// The text that was about to be written did not mean what it should; nothing was written.
    #[error("refusing to write {path}: the new text would not read back as meant ({what})")]
    Unfaithful {
        /// The file.
        path: PathBuf,
        /// What differed.
        what: String,
    },
}

fn list(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl From<Refusal> for StoreError {
    fn from(refusal: Refusal) -> Self {
        StoreError::Refused(Box::new(refusal))
    }
}

impl StoreError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| StoreError::Io { action, path, source }
    }
}

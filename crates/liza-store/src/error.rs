//! Why the store could not do what was asked. The blackboard is unchanged after each of these errors, except one that says
//! that the outcome is unknown.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_core::model::Refusal;
use liza_core::rules::invariants::Violation;

use crate::database::DatabaseError;
use crate::document::PathError;
use crate::yaml::{Position, YamlError};

/// Invalid content of a file, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFault {
    pub file: PathBuf,
    /// The position in the file, if known.
    pub position: Option<Position>,
    /// The key whose value is invalid, if known.
    pub key: Option<String>,
    pub message: String,
}

impl FileFault {
    pub(crate) fn new(file: &Path, error: YamlError) -> Self {
        let YamlError { message, position, key } = error;
        Self { file: file.to_owned(), position, key, message }
    }
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(position) = self.position {
            write!(f, ":{}:{}", position.line, position.column)?;
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
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What the store was doing.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The rules refuse the command.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The write would break invariants.
    #[error("{}", join(.0))]
    Violates(Vec<Violation>),
    #[error("{path} does not exist; create a blackboard with: liza init \"GOAL\"")]
    Missing { path: PathBuf },
    /// The blackboard was deleted or emptied, and its last version is kept.
    #[error("{path} is gone or empty; its last version is kept. Restore it: liza recover")]
    Lost { path: PathBuf },
    /// There is a blackboard already.
    #[error("{path} already exists")]
    Exists { path: PathBuf },
    /// The blackboard has tasks, so another one cannot be imported into it.
    #[error("{path}: the blackboard has tasks; only an empty one can be filled")]
    NotEmpty {
        /// The file of the blackboard.
        path: PathBuf,
    },
    /// Another process held the lock until the timeout.
    #[error("another process holds the lock {path}; timed out after {:.1} s", .waited.as_secs_f64())]
    Locked {
        path: PathBuf,
        /// How long the store waited.
        waited: Duration,
    },
    /// Another program saved the file between the read and the write.
    #[error("{path} was saved by another program while it was being written; try again")]
    Overtaken { path: PathBuf },
    /// The caller runs inside a command that holds the lock.
    #[error(
        "this command runs inside `liza lock modify`, which holds the lock; write after `lock modify` has ended"
    )]
    Nested,
    /// The file is not a valid blackboard.
    #[error("{0}")]
    Broken(FileFault),
    /// A path or value of `lock read` or `lock write` is invalid.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The file was written by a newer program.
    #[error(
        "{path} has version {found}, and this liza supports versions up to {known}; update liza to write it"
    )]
    NewerVersion { path: PathBuf, found: i64, known: i64 },
    /// The database could not be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The blackboard is in a database, and this program has no client for one.
    #[error("the blackboard is in a database, and this liza was built without the feature `database`")]
    NoDatabaseClient,
    /// The new state has no YAML form; nothing was written.
    #[error("cannot write {path}: {source}")]
    Encode { path: PathBuf, source: YamlError },
    /// The new text would not read back as the intended state; nothing was written.
    #[error("{path} was not written: {what} would not read back as intended; please report this as a bug")]
    ReadBackMismatch { path: PathBuf, what: String },
}

fn join(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl From<Refusal> for StoreError {
    fn from(refusal: Refusal) -> Self {
        StoreError::Refused(Box::new(refusal))
    }
}

impl StoreError {
    /// A system call on that path failed.
    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| StoreError::Io { action, path, source }
    }

    /// The same error for another caller; only its text, if it is not that of a database.
    pub(crate) fn copied(&self, action: &'static str, path: &Path) -> Self {
        if let StoreError::Database(error) = self {
            return error.clone().into();
        }
        StoreError::io(action, path)(io::Error::other(self.to_string()))
    }

    pub(crate) fn broken(path: &Path, error: YamlError) -> Self {
        StoreError::Broken(FileFault::new(path, error))
    }
}

//! Errors of the store. The blackboard is unchanged after each of them, except one with an unknown outcome.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_core::model::Refusal;
use liza_core::rules::invariants::Violation;

use crate::database::DatabaseError;
use crate::document::PathError;
use crate::yaml::{Position, YamlError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFault {
    pub file: PathBuf,
    pub position: Option<Position>,
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

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error(transparent)]
    Refused(Box<Refusal>),
    #[error("{}", join(.0))]
    Violates(Vec<Violation>),
    #[error("{path} does not exist; create a blackboard with: liza init \"GOAL\"")]
    Missing { path: PathBuf },
    #[error("{path} is gone or empty; its last version is kept. Restore it: liza recover")]
    Lost { path: PathBuf },
    #[error("{path} already exists")]
    Exists { path: PathBuf },
    #[error("{path}: the blackboard has tasks; only an empty one can be filled")]
    NotEmpty { path: PathBuf },
    #[error("another process holds the lock {path}; timed out after {:.1} s", .waited.as_secs_f64())]
    Locked { path: PathBuf, waited: Duration },
    #[error("{path} was saved by another program while it was being written; try again")]
    Overtaken { path: PathBuf },
    /// The caller runs inside a command that holds the lock.
    #[error(
        "this command runs inside `liza lock modify`, which holds the lock; write after `lock modify` has ended"
    )]
    Nested,
    #[error("{0}")]
    Broken(FileFault),
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(
        "{path} has version {found}, and this liza supports versions up to {known}; update liza to write it"
    )]
    NewerVersion { path: PathBuf, found: i64, known: i64 },
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("the blackboard is in a database, and this liza was built without the feature `database`")]
    NoDatabaseClient,
    /// Nothing was written.
    #[error("cannot write {path}: {source}")]
    Encode { path: PathBuf, source: YamlError },
    /// Nothing was written.
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
    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| StoreError::Io { action, path, source }
    }

    /// The same error for another caller; only its text, unless it is that of a database.
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

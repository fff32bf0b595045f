//! Errors of a drill. None of them changes the project.

use std::io;
use std::path::{Path, PathBuf};

use liza_core::Refusal;
use liza_git::GitError;
use liza_store::StoreError;
use liza_team::engine::EngineError;
use liza_team::run::CopyError;
use liza_team::supervisor::SupervisorError;

#[derive(Debug, thiserror::Error)]
pub enum DrillError {
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

impl DrillError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

impl From<GitError> for DrillError {
    fn from(error: GitError) -> Self {
        Self::Engine(error.into())
    }
}

impl From<StoreError> for DrillError {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}

impl From<Refusal> for DrillError {
    fn from(refusal: Refusal) -> Self {
        Self::Engine(refusal.into())
    }
}

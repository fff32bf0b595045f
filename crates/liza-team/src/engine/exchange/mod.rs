//! The exchange of work with other machines, through the git remote that the settings name. Sends and fetches
//! commits of tasks, keeps the integration branch in step with the remote's, publishes merges.

mod follow;
mod problem;
mod publish;
mod receipts;
mod task_work;

use std::time::Duration;

use liza_core::model::{Board, Section};
use liza_git::{Branch, GitError, RemoteProbe, WorkRemote};
use problem::ProblemKind;

use crate::project::Project;

use super::error::EngineError;

pub use problem::{failed_since, remote_problem};
pub use publish::Published;
pub use task_work::TaskSender;

#[derive(Debug)]
pub struct Exchange<'p> {
    project: &'p Project,
    remote: WorkRemote<'p>,
    integration: Branch,
}

impl<'p> Exchange<'p> {
    /// `None` if no remote is set.
    pub fn of(project: &'p Project) -> Result<Option<Self>, EngineError> {
        Self::with(project, &project.store().read_parts(&[Section::Config], &[])?)
    }

    pub fn with(project: &'p Project, board: &Board) -> Result<Option<Self>, EngineError> {
        let config = board.config()?;
        let Some(name) = &config.remote else { return Ok(None) };
        // The blackboard of a team may come from elsewhere: it must not name a program or another host.
        if !project.repo()?.remotes()?.iter().any(|(known, _)| known == name) {
            let message =
                "this repository has no remote of that name; add it: git remote add NAME URL".to_owned();
            return Err(GitError::RemoteUnreachable { remote: name.clone(), message }.into());
        }
        let integration = super::integration_branch(board)?;
        let limit = Duration::from_secs(config.remote_limit.0);
        Ok(Some(Self { project, remote: project.repo()?.work_remote(name, limit), integration }))
    }

    pub fn integration(&self) -> &Branch {
        &self.integration
    }

    pub fn remote(&self) -> &str {
        self.remote.name()
    }

    /// Tests everything that the exchange needs; leaves nothing behind.
    pub fn probe(&self) -> Result<RemoteProbe, EngineError> {
        self.noted(ProblemKind::Unreachable, self.remote.probe(&self.integration).map_err(EngineError::from))
    }

    /// Records a problem for the screens, or forgets one that is over.
    fn noted<T>(&self, worked: ProblemKind, result: Result<T, EngineError>) -> Result<T, EngineError> {
        match &result {
            Ok(_) => problem::forget(self.project.folder(), worked),
            Err(error) => problem::note(self.project.folder(), error),
        }
        result
    }
}

//! remove: takes everything out of a repository that Liza put into it.
//!
//! Work that is on no branch of the person's is saved on a `rescue/` branch first, and those branches stay.

use std::fs;
use std::io;
use std::path::PathBuf;

use liza_core::model::TaskId;

use crate::engine::{EngineError, integration_branch};
use crate::git::{Branch, Repo, Rescue};
use crate::project::{EXCLUDED, Project};

/// What will be taken out, and what stays.
#[derive(Debug)]
pub(crate) struct Removal {
    /// The folders of Liza that exist.
    pub(crate) folders: Vec<PathBuf>,
    /// The tasks with a branch or a worktree.
    pub(crate) tasks: Vec<TaskId>,
    /// How many references only Liza uses.
    pub(crate) references: usize,
    /// The integration branch, if the main branch has all of it.
    pub(crate) merged_integration: Option<Branch>,
    /// The integration branch, if it has work that the main branch has not.
    pub(crate) kept_integration: Option<Branch>,
}

/// What would be removed.
///
/// # Errors
/// When git or the blackboard cannot be read.
pub(crate) fn plan_removal(project: &Project) -> Result<Removal, EngineError> {
    let (repo, board) = (project.repo()?, project.state()?.board.clone());
    let integration = integration_branch(&board)?;
    let main = board.config.ready().and_then(|config| config.main_branch.clone());
    let is_merged = is_merged(repo, &integration, main.as_deref())?;
    let exists = repo.tip(&integration)?.is_some();
    let folders = [project.folder().to_owned(), project.root().join(".worktrees")];
    Ok(Removal {
        folders: folders.into_iter().filter(|folder| folder.exists()).collect(),
        tasks: repo.inventory()?.into_keys().collect(),
        references: repo.own_refs()?.len(),
        merged_integration: (exists && is_merged).then(|| integration.clone()),
        kept_integration: (exists && !is_merged).then_some(integration),
    })
}

/// Whether the main branch has all commits of the integration branch, and the branch is checked out nowhere.
fn is_merged(repo: &Repo, integration: &Branch, main: Option<&str>) -> Result<bool, EngineError> {
    let main: Option<Branch> = main.and_then(|name| name.parse().ok());
    let tips = (repo.tip(integration)?, main.map(|main| repo.tip(&main)).transpose()?.flatten());
    let (Some(tip), Some(main)) = tips else { return Ok(false) };
    Ok(repo.is_ancestor(&tip, &main)? && repo.checkouts_of(integration)?.is_empty())
}

/// Removes it. What is interrupted can be repeated: the blackboard goes last.
///
/// # Errors
/// When git or the file system fails.
pub(crate) fn carry_out_removal(project: &Project, plan: &Removal) -> Result<Vec<Rescue>, EngineError> {
    let (repo, board) = (project.repo()?, project.state()?.board.clone());
    let integration = integration_branch(&board)?;
    let mut rescued = Vec::new();
    for task in &plan.tasks {
        rescued.extend(repo.remove_worktree(task, None, &integration)?.rescued);
    }
    if let Some(branch) = &plan.merged_integration
        && let Some(tip) = repo.tip(branch)?
    {
        repo.delete_branch(branch, &tip)?;
    }
    repo.remove_leftovers();
    repo.delete_refs(&repo.own_refs()?)?;
    for folder in plan.folders.iter().rev() {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(EngineError::io("remove", folder)(error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    repo.include_again(&EXCLUDED)?;
    Ok(rescued)
}

//! remove: takes everything out of a repository that Liza put into it. Changes only this clone: other
//! machines may use the database and the git remote. Work that is on no branch of the person's is saved on a
//! `rescue/` branch first, and those branches stay.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_core::model::{Board, Config, Loaded, Sha, TaskId};
use liza_git::{Branch, Repo, Rescue};
use liza_host::worktrees::{WORKTREES, keep_inside, worktrees_folder};
use liza_store::kept_in_git;

use crate::engine::{EngineError, FileLock, integration_branch};
use crate::project::{EXCLUDED, Project};

const LOCK_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct Removal {
    pub folder: PathBuf,
    /// Other files in it stay.
    pub worktrees: PathBuf,
    pub tasks: Vec<TaskId>,
    /// The reason why the blackboard cannot be read, if it cannot.
    pub unreadable: Option<String>,
    /// The number of references that only Liza uses.
    pub references: usize,
    /// It stays as it is.
    pub remote: Option<String>,
    /// Its work is not rescued.
    pub integration: Branch,
    /// The integration branch and its head, if the main branch has all of it.
    pub merged_integration: Option<(Branch, Sha)>,
    /// The integration branch, if it has work that the main branch lacks.
    pub kept_integration: Option<Branch>,
}

pub fn plan_removal(project: &Project) -> Result<Removal, EngineError> {
    let repo = project.repo()?;
    // An unreadable blackboard must not keep a person from removing it; then nothing is known to be merged.
    let (board, unreadable) = match project.state() {
        Ok(state) => (state.board.clone(), None),
        Err(error) => (Board::default(), Some(error.to_string())),
    };
    let integration = integration_branch(&board).or_else(|_| integration_branch(&readable_default()))?;
    let config = board.config.ready();
    let main = config.and_then(|config| config.main_branch.clone());
    let remote = config.and_then(|config| config.remote.clone());
    let is_merged = is_merged(repo, &integration, main.as_deref())?;
    let tip = repo.tip(&integration)?;
    // A worktree that a person made there has neither a task nor a branch of one.
    let mut tasks = Vec::new();
    for task in repo.inventory()?.into_keys() {
        if board.knows(&task) || repo.tip(&Branch::of(&task))?.is_some() {
            tasks.push(task);
        }
    }
    Ok(Removal {
        folder: project.folder().to_owned(),
        worktrees: worktrees_folder(project.root()),
        tasks,
        unreadable,
        references: repo.own_refs().len(),
        remote,
        kept_integration: tip.is_some().then(|| integration.clone()).filter(|_| !is_merged),
        merged_integration: tip.filter(|_| is_merged).map(|tip| (integration.clone(), tip)),
        integration,
    })
}

fn readable_default() -> Board {
    Board { config: Loaded::Ready(Config::default()), ..Board::default() }
}

/// True if the main branch has all commits of the integration branch, which is checked out nowhere.
fn is_merged(repo: &Repo, integration: &Branch, main: Option<&str>) -> Result<bool, EngineError> {
    let main: Option<Branch> = main.and_then(|name| name.parse().ok());
    let tips = (repo.tip(integration)?, main.map(|main| repo.tip(&main)).transpose()?.flatten());
    let (Some(tip), Some(main)) = tips else { return Ok(false) };
    Ok(repo.is_ancestor(&tip, &main)? && repo.checkouts_of(integration)?.is_empty())
}

/// An interrupted removal can be repeated: the blackboard goes last.
pub fn carry_out_removal(project: &Project, plan: &Removal) -> Result<Vec<Rescue>, EngineError> {
    let _lock = FileLock::at(&FileLock::of_merges(project.folder()), LOCK_TIMEOUT)?;
    let (repo, integration) = (project.repo()?, &plan.integration);
    let mut rescued = Vec::new();
    for task in &plan.tasks {
        rescued.extend(repo.remove_worktree(task, None, integration)?.rescued);
        repo.remove_review(task)?;
    }
    if let Some((branch, tip)) = &plan.merged_integration {
        repo.delete_branch(branch, tip)?;
    }
    repo.remove_leftovers();
    repo.delete_refs(&repo.own_refs())?;
    // Not empty if a person put something there.
    let _ = fs::remove_dir(&plan.worktrees);
    keep_inside(project.root()).map_err(EngineError::io("remove", &plan.worktrees))?;
    let [blackboard, worktrees] = EXCLUDED;
    repo.include_again(&[blackboard])?;
    if !project.root().join(WORKTREES).exists() {
        repo.include_again(&[worktrees])?;
    }
    kept_in_git(project.root()).as_deref().and_then(Path::parent).map_or(Ok(()), remove_folder)?;
    remove_folder(&plan.folder)?;
    Ok(rescued)
}

fn remove_folder(folder: &Path) -> Result<(), EngineError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(EngineError::io("remove", folder)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

//! A copy of a project for a rehearsal: a clone in a temporary folder, with the current blackboard. Changes
//! nothing in the project.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use liza_core::model::{Actor, Loaded, LogAction, LogEntry, State};
use liza_git::{Git, GitError, Repo};
use liza_host::durable;
use liza_store::{Store, StoreError};

use crate::engine::Engine;
use crate::lifecycle::recover;
use crate::project::{EXCLUDED, Project, now};
use crate::run::demo::{DemoError, temporary_folder};
use crate::session::checkout_setup::{SetupError, copy_files};

/// The references that a project has and its copy needs.
const REFS: [&str; 3] =
    ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", "+refs/liza/*:refs/liza/*"];

/// The settings of the repository itself that the agents' commits need.
const SETTINGS: [&str; 2] = ["user.name", "user.email"];

const COPY_MARK: &str = "rehearsal-of";

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Folder(#[from] DemoError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error("cannot copy {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

/// Copies the project: its branches, its uncommitted files and its blackboard without agents.
pub fn copy_for_rehearsal(project: &Project) -> Result<Project, CopyError> {
    let (git, from, to) = (Git::new(), project.root(), temporary_folder("liza-rehearsal")?);
    let call = |arguments: &[&str]| git.command("copying the project", &to).args(arguments).read();
    let source = from.display().to_string();
    call(&["clone", "-q", "--no-hardlinks", &source, "."])?;
    call(&[&["fetch", "-q", "--update-head-ok", &source][..], &REFS].concat())?;
    // Nothing that a rehearsal does can be pushed.
    call(&["remote", "remove", "origin"])?;
    copy_identity(&git, from, &to)?;
    let repo = Repo::open(&git, &to)?;
    repo.exclude(&EXCLUDED)?;
    for path in uncommitted(&git, from)? {
        copy_file(from, &to, &path)?;
    }
    copy_named(project, &repo)?;
    copy_blackboard(project, &to)?;
    let mark = to.join(".liza").join(COPY_MARK);
    durable::replace_private_file(&mark, format!("{source}\n").as_bytes())
        .map_err(|source| CopyError::File { path: mark, source })?;
    let copy = Project::open(&to)?;
    // Worktrees are not copied: those of claimed tasks are checked out again, before anyone could miss them.
    // The team reports failed repairs.
    let _ = recover(&Engine::new(&copy, Actor::Human));
    Ok(copy)
}

/// Copies the settings of the repository itself that agents need.
pub fn copy_identity(git: &Git, from: &Path, to: &Path) -> Result<(), GitError> {
    for key in SETTINGS {
        let value = git.command("reading the configuration", from).args(["config", "--get", key]).read();
        if let Ok(value) = value {
            let value = String::from_utf8_lossy(&value).trim().to_owned();
            git.command("copying the configuration", to).args(["config", key, &value]).check()?;
        }
    }
    Ok(())
}

pub fn is_rehearsal_copy(project: &Project) -> bool {
    project.folder().join(COPY_MARK).is_file()
}

/// True if the project exists only for rehearsals.
pub fn is_demo(project: &Project) -> bool {
    project.folder().join("playbook.yaml").is_file()
}

/// The files that differ from the last commit or are not in it. Ignored ones stay behind.
fn uncommitted(git: &Git, root: &Path) -> Result<Vec<PathBuf>, GitError> {
    let call = |arguments: &[&str]| git.command("listing uncommitted files", root).args(arguments).read();
    let mut list = call(&["ls-files", "-z", "--modified", "--others", "--exclude-standard"])?;
    list.extend(call(&["diff-index", "-z", "--cached", "--name-only", "HEAD"])?);
    let paths = list.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(paths.map(liza_git::path_of).collect())
}

/// Copies the ignored files that `config.copy` names, from which the copy prepares its own checkouts.
pub fn copy_named(project: &Project, copy: &Repo) -> Result<(), CopyError> {
    let state = project.store().snapshot()?;
    let Some(config) = state.board.config.ready() else { return Ok(()) };
    copy_files(project, config, copy.root())?;
    // What only a setting of the person ignores is not ignored in a clone.
    let patterns: Vec<String> = config.copy.iter().map(|path| format!("/{path}")).collect();
    copy.exclude(&patterns.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok(())
}

fn copy_file(from: &Path, to: &Path, path: &Path) -> Result<(), CopyError> {
    let failed = |source| CopyError::File { path: path.to_owned(), source };
    // A deleted file, a folder with its own repository and a link stay behind.
    let is_file = fs::symlink_metadata(from.join(path)).is_ok_and(|data| data.is_file());
    if !is_file || !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Ok(());
    }
    let target = to.join(path);
    target.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    fs::copy(from.join(path), target).map(drop).map_err(failed)
}

/// Agents stay behind: the copy's own team registers under the same names and continues their claims.
fn copy_blackboard(project: &Project, to: &Path) -> Result<(), CopyError> {
    let mut state = project.store().snapshot()?;
    close_in(&mut state);
    let log = LogEntry {
        timestamp: now(),
        agent: "human".to_owned(),
        action: LogAction::GoalCreated.name().to_owned(),
        task: None,
        detail: format!("copied for a rehearsal from {}", project.root().display()),
    };
    Store::create(to, &state, &log)?;
    Ok(())
}

/// Changes a blackboard for a copy, which nothing may leave; the copy's own agents register under the same names.
pub fn close_in(state: &mut State) {
    state.board.agents = Loaded::Ready(Default::default());
    if let Loaded::Ready(config) = &mut state.board.config {
        config.remote = None;
        config.escalation_webhook = None;
        if let Some(file) = &mut config.team_file {
            file.values.shift_remove("escalation_webhook");
        }
    }
}

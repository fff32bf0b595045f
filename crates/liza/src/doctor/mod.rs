//! doctor: checks everything that a team of agents needs, and reports the fix of each problem.
//!
//! Checking changes nothing; [`fix`] creates the parts that need no question.

mod blackboard;
mod clients;
mod confinement;
mod environment;
mod gate;
mod git;
mod programs;
mod result;
mod start;

use std::path::Path;

use blackboard::{blackboard, database, log, misspelled, open_database, specifications};
use clients::clients;
use confinement::confinement;
use git::{
    branches, copies, git_version, integration_test, remote, repository, unrecorded_merges, validation,
};
use liza_agents::providers::{LoginPlaces, default_provider, installed_clients};
use liza_git::{Git, Repo};
use liza_store::StoreError;
use liza_team::engine::{EngineError, integration_branch};
use liza_team::lifecycle::merged_commits;
use liza_team::observe::last_run::last_run;
use liza_team::project::{EXCLUDED, Project};
use liza_team::session::client_version::client_version;
use liza_team::session::plan::home;
use programs::{budget, missing_programs, programs, used_programs};
use result::{broken, good, warning};

pub use result::{Check, Health};

/// Less space than this is a failure.
const SPACE_BROKEN: u64 = 100 << 20;
/// Less space than this is a warning.
const SPACE_WARNING: u64 = 1 << 30;

pub fn check(git: &Git, folder: &Path, project: Option<&Project>, liza: &Path) -> Vec<Check> {
    let mut checks = vec![git_version(git)];
    let repo = match Repo::open(git, project.map_or(folder, Project::root)) {
        Ok(repo) => Some(repo),
        Err(error) => {
            let fix = error.hint().unwrap_or("run liza doctor in a git repository");
            checks.push(broken("repository", error.to_string(), fix));
            None
        }
    };
    if let Some(repo) = &repo {
        checks.extend(repository(repo));
    }
    checks.push(space(project.map_or(folder, Project::root)));
    match project.map(|project| project.store().snapshot()) {
        None => checks.push(broken("blackboard", "missing", "liza init \"GOAL\"")),
        Some(Err(error)) => {
            let repair = "to see what is wrong: liza validate; to repair it: liza edit";
            let fix = if let StoreError::Database(fault) = &error { fault.reason.hint() } else { repair };
            checks.push(broken("blackboard", error.to_string(), fix));
        }
        Some(Ok(state)) => {
            checks.extend(project.map(blackboard));
            checks.extend(project.into_iter().flat_map(database));
            checks.extend(project.and_then(|project| open_database(project, &state, liza)));
            checks.extend(project.map(log));
            checks.extend(project.and_then(misspelled));
            checks.extend(project.and_then(|project| start::team_file(project, home().as_deref())));
            checks.extend(start::settings(&state));
            checks.extend(start::goal(&state));
            checks.extend(project.map(|project| specifications(project, &state)));
            checks.extend(repo.as_ref().and_then(|repo| integration_test(repo, &state)));
            checks.extend(validation(&state));
            checks.extend(repo.as_ref().and_then(|repo| gate::gate(repo, &state)));
            checks.extend(project.and_then(|project| gate::holdout(project, &state)));
            let folder = project.map_or(folder, Project::folder);
            checks.extend(repo.iter().flat_map(|repo| branches(repo, folder, &state)));
            checks.extend(project.into_iter().flat_map(|project| copies(project, &state)));
            checks.extend(project.and_then(|project| unrecorded_merges(project, &state)));
            checks.extend(project.and_then(remote));
            checks.extend(project.into_iter().flat_map(|project| confinement(project, &state, liza)));
        }
    }
    let state = project.and_then(|project| project.store().snapshot().ok());
    let config = state.as_ref().and_then(|state| state.board.config.ready());
    let home = home();
    let variable = |name: &str| std::env::var_os(name);
    let places = LoginPlaces { home: home.as_deref(), variable: &variable };
    let used = used_programs(config, &places);
    let installed = installed_clients(config, &places, client_version);
    checks.push(programs(&installed, &used));
    let run = project.map(last_run).unwrap_or_default().run;
    checks.extend(clients(installed, &places, &used, state.as_ref(), &run));
    checks.extend(config.into_iter().flat_map(|config| missing_programs(config, default_provider(&places))));
    checks.extend(config.and_then(|config| budget(config, default_provider(&places))));
    checks
}

/// Creates missing parts that need no question: the integration branch at the current commit if nothing was
/// merged yet, and the lines in git's list of excluded files.
pub fn fix(project: &Project) -> Result<(), EngineError> {
    let repo = project.repo()?;
    repo.exclude(&EXCLUDED)?;
    let integration = integration_branch(&project.store().snapshot()?.board)?;
    // With merged work, `recover` creates it, or says why it cannot: at the current commit, that work would be missing.
    if merged_commits(&project.store().snapshot()?.board).is_empty() {
        repo.create_branch(&integration, &repo.head()?.commit)?;
    }
    Ok(())
}

fn space(folder: &Path) -> Check {
    let Ok(room) = rustix::fs::statvfs(folder) else {
        return warning("disk space", "unknown", "for details: df -h");
    };
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    let found = format!("{} MiB free", free >> 20);
    match free {
        free if free < SPACE_BROKEN => {
            broken("disk space", found, "free some space: each worktree is a full checkout")
        }
        free if free < SPACE_WARNING => {
            warning("disk space", found, "free some space soon: each worktree is a full checkout")
        }
        _ => good("disk space", found),
    }
}

//! doctor: looks at everything that a team of agents needs, and says how to fix what is not in order.
//!
//! Looks only; [`fix`] makes what can be made without a question.

use std::collections::BTreeSet;
use std::path::Path;

use liza_core::model::{State, Status};
use liza_core::rules::invariants::DiskFacts as _;
use liza_store::{ProjectDisk, misspelled_keys};

use crate::engine::{EngineError, integration_branch};
use crate::git::{FolderState, Git, Repo};
use crate::project::{EXCLUDED, Project, now};
use crate::providers::builtin_programs;
use crate::sys::find_program;

/// With less space than this, work will fail; with less than the other, soon.
const SPACE_BROKEN: u64 = 100 << 20;
const SPACE_WORRY: u64 = 1 << 30;

/// How a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// As it should be.
    Good,
    /// Works, but a person should know.
    Worry,
    /// Work will fail.
    Broken,
}

impl Health {
    /// The word for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Health::Good => "ok",
            Health::Worry => "warn",
            Health::Broken => "fail",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What.
    pub name: &'static str,
    /// How it is.
    pub health: Health,
    /// What was seen.
    pub found: String,
    /// How to fix it.
    pub fix: Option<String>,
}

fn good(name: &'static str, found: impl Into<String>) -> Check {
    Check { name, health: Health::Good, found: found.into(), fix: None }
}

fn worry(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Check {
    Check { name, health: Health::Worry, found: found.into(), fix: Some(fix.into()) }
}

fn broken(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Check {
    Check { name, health: Health::Broken, found: found.into(), fix: Some(fix.into()) }
}

/// Looks at everything, as far as it is there.
pub fn check(git: &Git, folder: &Path, project: Option<&Project>) -> Vec<Check> {
    let mut checks = vec![git_version(git)];
    let repo = match Repo::open(git, project.map_or(folder, Project::root)) {
        Ok(repo) => Some(repo),
        Err(error) => {
            checks.push(broken("repository", error.to_string(), "run liza in a git repository"));
            None
        }
    };
    if let Some(repo) = &repo {
        checks.extend(repository(repo));
    }
    checks.push(space(project.map_or(folder, Project::root)));
    match project.map(|project| project.store().snapshot()) {
        None => checks.push(broken("blackboard", "there is none here", "liza init \"GOAL\"")),
        Some(Err(error)) => {
            checks.push(broken("blackboard", error.to_string(), "liza validate, then liza edit"))
        }
        Some(Ok(state)) => {
            checks.extend(project.map(blackboard));
            checks.extend(project.and_then(misspelled));
            checks.extend(project.map(|project| specifications(project, &state)));
            checks.extend(repo.iter().flat_map(|repo| branches(repo, &state)));
        }
    }
    checks.push(programs());
    checks
}

/// Makes what is missing and can be made without a question: the integration branch at the present commit, and
/// git's list of excluded files.
///
/// # Errors
///
/// When git cannot.
pub fn fix(project: &Project) -> Result<(), EngineError> {
    let repo = project.repo()?;
    repo.exclude(&EXCLUDED)?;
    let integration = integration_branch(&project.store().snapshot()?.board)?;
    repo.create_branch(&integration, &repo.head()?.commit)?;
    Ok(())
}

fn git_version(git: &Git) -> Check {
    match git.require_version() {
        Ok(version) => good("git", format!("version {version}")),
        Err(error) => broken("git", error.to_string(), "install a newer git"),
    }
}

/// The person's own checkout, and whether merge commits can be made in it.
fn repository(repo: &Repo) -> Vec<Check> {
    let state = match (repo.head(), repo.unfinished_operation()) {
        (Err(error), _) => broken("repository", error.to_string(), "git commit --allow-empty -m start"),
        (Ok(_), Ok(Some(business))) => worry(
            "repository",
            format!("a {business} is under way in {}", repo.root().display()),
            format!("git {business} --continue, or git {business} --abort"),
        ),
        (Ok(head), Ok(None)) => {
            let branch = head.branch.unwrap_or_else(|| "no branch (detached HEAD)".to_owned());
            good("repository", format!("{} on {branch}", repo.root().display()))
        }
        (Ok(_), Err(error)) => broken("repository", error.to_string(), "git status says more"),
    };
    let identity = match repo.identity() {
        Ok(name) => good("identity", format!("merges are committed as {name}")),
        Err(error) => broken(
            "identity",
            error.to_string(),
            "git config user.name \"You\"; git config user.email you@example.com",
        ),
    };
    vec![state, identity]
}

fn space(folder: &Path) -> Check {
    let Ok(room) = rustix::fs::statvfs(folder) else {
        return worry("disk space", "unknown", "look at it by hand: df");
    };
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    let found = format!("{} MiB free", free >> 20);
    match free {
        free if free < SPACE_BROKEN => {
            broken("disk space", found, "make room: each worktree is a full checkout")
        }
        free if free < SPACE_WORRY => {
            worry("disk space", found, "make room soon: each worktree is a full checkout")
        }
        _ => good("disk space", found),
    }
}

fn blackboard(project: &Project) -> Check {
    match project.store().validate(now()) {
        Ok(wrong) if wrong.is_empty() => good("blackboard", "valid"),
        Ok(wrong) => {
            let first = wrong.first().map(ToString::to_string).unwrap_or_default();
            let found = format!("{} violation(s), the first: {first}", wrong.len());
            broken("blackboard", found, "liza validate shows all; liza recover settles what a crash left")
        }
        Err(error) => broken("blackboard", error.to_string(), "liza edit"),
    }
}

/// Keys that have no effect because they are probably misspelled.
fn misspelled(project: &Project) -> Option<Check> {
    let keys = misspelled_keys(&project.store().state_file()).unwrap_or_default();
    let found: Vec<String> = keys.iter().map(ToString::to_string).collect();
    (!found.is_empty()).then(|| worry("keys", found.join("; "), "liza edit"))
}

/// The files that the goal and the open tasks have to conform to.
fn specifications(project: &Project, state: &State) -> Check {
    let open = state.bodies().filter(|(_, body)| !body.record().status.is_some_and(Status::is_terminal));
    let named = open.filter_map(|(_, body)| body.record().spec_ref.as_deref());
    let goal = state.board.goal.ready().and_then(|goal| goal.spec_ref.as_deref());
    let files: BTreeSet<&str> =
        named.chain(goal).map(|reference| reference.split('#').next().unwrap_or(reference)).collect();
    let disk = ProjectDisk::new(project.root());
    let missing: Vec<&str> = files.iter().copied().filter(|file| !disk.spec_exists(file)).collect();
    if missing.is_empty() {
        return good("specifications", format!("{} file(s), all there", files.len()));
    }
    let fix = "write them, or liza init --template for the vision";
    worry("specifications", format!("missing: {}", missing.join(", ")), fix)
}

fn branches(repo: &Repo, state: &State) -> Vec<Check> {
    let integration = match integration_branch(&state.board) {
        Ok(branch) => branch,
        Err(error) => return vec![broken("integration branch", error.to_string(), "liza edit")],
    };
    let branch = match repo.tip(&integration) {
        Ok(Some(head)) => good("integration branch", format!("{integration} at {}", head.short())),
        Ok(None) => {
            broken("integration branch", format!("{integration} does not exist"), "liza doctor --fix")
        }
        Err(error) => broken("integration branch", error.to_string(), "git branch --list says more"),
    };
    let excluded = match repo.excludes(&EXCLUDED) {
        Ok(true) => good("excluded files", EXCLUDED.join(" ")),
        Ok(false) => worry("excluded files", "git sees .liza or .worktrees", "liza doctor --fix"),
        Err(error) => broken("excluded files", error.to_string(), "look at .git/info/exclude"),
    };
    vec![branch, excluded, worktrees(repo, state)]
}

/// Every task that needs one has one, and no other is there.
fn worktrees(repo: &Repo, state: &State) -> Check {
    let there = match repo.inventory() {
        Ok(there) => there,
        Err(error) => return broken("worktrees", error.to_string(), "git worktree list says more"),
    };
    let wants = |task| state.board.body(task).is_ok_and(|body| body.record().worktree.is_some());
    let healthy = |task| there.get(task).is_some_and(|found| found.folder == FolderState::Healthy);
    let missing = state.board.tasks.keys().filter(|task| wants(task) && !healthy(task));
    let unneeded = there.keys().filter(|task| !wants(task));
    let reserved = |task| state.board.summary(task).is_some_and(|head| head.reservation.is_some());
    let wrong: Vec<String> = missing
        .map(|task| format!("{task} has none"))
        .chain(unneeded.filter(|task| !reserved(task)).map(|task| format!("{task} needs none")))
        .collect();
    if wrong.is_empty() {
        return good("worktrees", format!("{} in use", there.len()));
    }
    broken("worktrees", wrong.join(", "), "liza recover")
}

fn programs() -> Check {
    let known = builtin_programs();
    let found: Vec<&str> =
        known.iter().map(String::as_str).filter(|name| find_program(name).is_some()).collect();
    if found.is_empty() {
        let fix = format!("install one of {}", known.join(", "));
        return worry("agent programs", "none on PATH", fix);
    }
    good("agent programs", found.join(", "))
}

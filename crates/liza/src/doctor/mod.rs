//! doctor: checks everything that a team of agents needs, and reports how to fix problems.
//!
//! Checking changes nothing; [`fix`] creates what can be created without asking.

mod clients;
mod confinement;
mod environment;
mod gate;
mod result;
mod start;

use std::collections::BTreeSet;
use std::path::Path;

use clients::clients;
use confinement::confinement;
use liza_agents::providers::{LoginPlaces, default_provider};
use liza_agents::providers::{Provider, ProviderError, builtin_programs};
use liza_core::model::{Config, Role, Sha, State, Status, TaskId};
use liza_core::rules::invariants::DiskFacts as _;
use liza_core::text::count;
use liza_core::text::shell_word;
use liza_git::{FolderState, Git, RemoteProbe, Repo};
use liza_sandbox::sys::find_program;
use liza_store::{ProjectDisk, StoreError};
use liza_team::engine::{EngineError, Exchange, integration_branch};
use liza_team::lifecycle::{found_merges, lost_merges, merged_commits};
use liza_team::observe::database_health::{DatabaseFinding, Verdict, database_findings};
use liza_team::observe::vision_gap;
use liza_team::project::machine::works_here;
use liza_team::project::{EXCLUDED, Project, now};
use liza_team::session::plan::home;
use result::{broken, good, warning};

pub use result::{Check, Health};

/// Less space than this is a failure.
const SPACE_BROKEN: u64 = 100 << 20;
/// Less space than this is a warning.
const SPACE_WARNING: u64 = 1 << 30;

/// Checks everything that exists here.
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
            checks.extend(project.map(log));
            checks.extend(project.and_then(misspelled));
            checks.extend(project.and_then(|project| start::team_file(project, home().as_deref())));
            checks.extend(start::goal(&state));
            checks.extend(project.map(|project| specifications(project, &state)));
            checks.extend(repo.as_ref().and_then(|repo| integration_test(repo, &state)));
            checks.extend(repo.as_ref().and_then(|repo| gate::gate(repo, &state)));
            let folder = project.map_or(folder, Project::folder);
            checks.extend(repo.iter().flat_map(|repo| branches(repo, folder, &state)));
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
    checks.push(programs(&used));
    checks.extend(clients(&places, &used, state.as_ref()));
    checks.extend(config.into_iter().flat_map(|config| missing_programs(config, default_provider(&places))));
    checks
}

/// Creates what is missing and needs no question: the integration branch at the current commit if nothing was merged
/// yet, and the lines in git's list of excluded files.
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

fn git_version(git: &Git) -> Check {
    match git.require_version() {
        Ok(version) => good("git", format!("version {version}")),
        Err(error) => broken("git", error.to_string(), "install a newer git"),
    }
}

/// The person's own checkout, and whether git has a committer for merges.
fn repository(repo: &Repo) -> Vec<Check> {
    let state = match (repo.head(), repo.unfinished_operation()) {
        (Err(error), _) => {
            let fix = error.hint().unwrap_or("for details: git status");
            broken("repository", error.to_string(), fix)
        }
        (Ok(_), Ok(Some(operation))) => warning(
            "repository",
            format!("a {operation} is in progress in {}", repo.root().display()),
            format!("to finish it: git {operation} --continue; to undo it: git {operation} --abort"),
        ),
        (Ok(head), Ok(None)) => {
            let branch = head.branch.unwrap_or_else(|| "no branch (detached HEAD)".to_owned());
            good("repository", format!("{} on {branch}", repo.root().display()))
        }
        (Ok(_), Err(error)) => broken("repository", error.to_string(), "for details: git status"),
    };
    let identity = match repo.identity() {
        Ok(name) => good("identity", format!("merges are committed as {name}")),
        Err(error) => broken(
            "identity",
            error.to_string(),
            "git config user.name \"You\"; git config user.email you@example.com",
        ),
    };
    let mut checks = vec![state, identity];
    checks.extend(branch_names(repo));
    checks.extend(trust(repo));
    checks
}

/// A branch that keeps git from creating those of tasks.
fn branch_names(repo: &Repo) -> Option<Check> {
    match repo.blocking_branch() {
        Ok(None) => None,
        Ok(Some(name)) => {
            let found = format!("there is a branch {name}, so git cannot create {name}/…");
            Some(broken("branch names", found, format!("git branch -m {name} NEW-NAME")))
        }
        Err(error) => Some(broken("branch names", error.to_string(), "for details: git branch --list")),
    }
}

/// What an agent could have planted in the repository; Liza ignores it, other programs do not.
fn trust(repo: &Repo) -> Vec<Check> {
    let mut checks = Vec::new();
    if repo.has_replacements().unwrap_or(false) {
        let found = "refs/replace shows commits as others; Liza ignores that, your git does not";
        checks.push(warning(
            "replaced commits",
            found,
            "to list them: git replace --list; to delete one: git replace --delete OBJECT",
        ));
    }
    let programs = repo.ignored_programs().unwrap_or_default();
    if let [first, ..] = programs.as_slice() {
        let found = format!("Liza does not run what .git/config names: {}", programs.join(", "));
        // A subsection may contain any character, and an agent may have chosen it.
        let key = shell_word(first);
        let fix = format!("if it is yours: liza config --trust; if not: git config --unset {key}");
        checks.push(warning("configuration", found, fix));
    }
    checks
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

fn blackboard(project: &Project) -> Check {
    match project.store().validate(now()) {
        Ok(wrong) if wrong.is_empty() => good("blackboard", "valid"),
        Ok(wrong) => {
            let first = wrong.first().map(ToString::to_string).unwrap_or_default();
            let found = format!("{}, the first: {first}", count(wrong.len(), "violation"));
            broken("blackboard", found, "show all: liza validate; repair after a crash: liza recover")
        }
        Err(error) => broken("blackboard", error.to_string(), "liza edit"),
    }
}

/// The database of the blackboard; nothing if it is a file.
fn database(project: &Project) -> Vec<Check> {
    let checked = |finding: DatabaseFinding| match finding.verdict {
        Verdict::Good => good("database", finding.found),
        Verdict::Warning(fix) => warning("database", finding.found, fix),
        Verdict::Broken(fix) => broken("database", finding.found, fix),
    };
    match database_findings(project.store()) {
        Ok(findings) => findings.into_iter().map(checked).collect(),
        Err(error) => vec![broken("database", error.to_string(), "for details: liza status")],
    }
}

fn log(project: &Project) -> Check {
    match project.store().log_faults() {
        Ok(damaged) if damaged.is_empty() => good("log", "every entry can be read"),
        Ok(damaged) => {
            let first = damaged.first().cloned().unwrap_or_default();
            warning("log", format!("{} damaged, the first: {first}", damaged.len()), "check .liza/log.yaml")
        }
        Err(error) => warning("log", error.to_string(), "check .liza/log.yaml"),
    }
}

/// A test that the person has, and that tests no merge.
fn integration_test(repo: &Repo, state: &State) -> Option<Check> {
    let unused = repo.unused_test(&integration_branch(&state.board).ok()?).ok()?;
    Some(match unused {
        Some(unused) => warning("integration test", unused.problem(), unused.fix()),
        None => good("integration test", start::test_in_words(repo.root()).to_owned()),
    })
}

/// Keys that have no effect because they are probably misspelled.
fn misspelled(project: &Project) -> Option<Check> {
    let keys = project.store().misspelled_keys().unwrap_or_default();
    let found: Vec<String> = keys.iter().map(ToString::to_string).collect();
    (!found.is_empty()).then(|| warning("keys", found.join("; "), "liza edit"))
}

/// The specification files of the goal and the open tasks.
fn specifications(project: &Project, state: &State) -> Check {
    let open = state.bodies().filter(|(_, body)| !body.record().status.is_some_and(Status::is_terminal));
    let named = open.filter_map(|(_, body)| body.record().spec_ref.as_deref());
    let goal = state.board.goal.ready().and_then(|goal| goal.spec_ref.as_deref());
    let goal = goal.map(|reference| reference.split('#').next().unwrap_or(reference));
    let files: BTreeSet<&str> =
        named.chain(goal).map(|reference| reference.split('#').next().unwrap_or(reference)).collect();
    let disk = ProjectDisk::new(project.root());
    let missing: Vec<&str> = files.iter().copied().filter(|file| !disk.spec_exists(file)).collect();
    if missing.is_empty() {
        return match (vision_gap(project, state), goal) {
            (Some(gap), Some(vision)) => warning("specifications", gap.problem(vision), gap.command(vision)),
            (Some(_), None) | (None, _) => {
                good("specifications", format!("{}, none missing", count(files.len(), "file")))
            }
        };
    }
    let fix = "write them; for a vision document to fill in: liza init --template";
    warning("specifications", format!("missing: {}", missing.join(", ")), fix)
}

fn branches(repo: &Repo, folder: &Path, state: &State) -> Vec<Check> {
    let integration = match integration_branch(&state.board) {
        Ok(branch) => branch,
        Err(error) => {
            return vec![broken(
                "integration branch",
                error.to_string(),
                "liza config integration_branch NAME",
            )];
        }
    };
    let branch = match repo.tip(&integration) {
        Ok(Some(head)) => good("integration branch", format!("{integration} at {}", head.short())),
        Ok(None) => {
            broken("integration branch", format!("{integration} does not exist"), "liza doctor --fix")
        }
        Err(error) => broken("integration branch", error.to_string(), "for details: git branch --list"),
    };
    let excluded = match repo.excludes(&EXCLUDED) {
        Ok(true) => good("excluded files", EXCLUDED.join(" ")),
        Ok(false) => {
            warning("excluded files", "git does not exclude .liza and .worktrees", "liza doctor --fix")
        }
        Err(error) => broken("excluded files", error.to_string(), "check .git/info/exclude"),
    };
    let mut checks = vec![branch, excluded, worktrees(repo, folder, state)];
    checks.extend(merged_work(repo, state));
    checks
}

/// Tasks that wait because their merges are on the branch and not on the blackboard.
fn unrecorded_merges(project: &Project, state: &State) -> Option<Check> {
    let found = found_merges(project, state);
    let tasks: Vec<&str> = found.tasks().map(TaskId::as_str).collect();
    let text = || format!("on the branch and not on the blackboard: the merges of {}", tasks.join(", "));
    (!tasks.is_empty())
        .then(|| warning("integration branch", text(), "to record them: liza accept-integration"))
}

/// Whether work can be exchanged through the git remote, if one is set.
fn remote(project: &Project) -> Option<Check> {
    let exchange = match Exchange::of(project) {
        Ok(Some(exchange)) => exchange,
        Ok(None) if project.store().is_in_database() => {
            let found = "the team has a database and no git remote: no other machine gets the work";
            return Some(warning("remote", found, "liza config remote origin"));
        }
        Ok(None) => return None,
        Err(error) => {
            return Some(broken("remote", error.to_string(), "to use another one: liza config remote NAME"));
        }
    };
    let name = exchange.remote().to_owned();
    Some(match exchange.probe() {
        Err(error) => broken(
            "remote",
            error.to_string(),
            format!("check the address and the login: git ls-remote {name}"),
        ),
        Ok(RemoteProbe { refusal: Some(why), .. }) => {
            let found = format!("{name} refuses pushes to the integration branch: {why}");
            broken("remote", found, "on its server, allow pushes to the branch without a pull request")
        }
        Ok(RemoteProbe { head: None, .. }) => {
            let found = format!("{name} has no integration branch");
            broken("remote", found, format!("git push {name} {}", exchange.integration()))
        }
        Ok(RemoteProbe { head: Some(head), refusal: None }) if lacks_merges(project, &head) => {
            let found =
                format!("the integration branch on {name} is at {}, without all merged work", head.short());
            broken("remote", found, "what is missing: liza status")
        }
        Ok(RemoteProbe { head: Some(head), refusal: None }) => {
            let found = format!("{name} takes pushes; its integration branch is at {}", head.short());
            good("remote", found)
        }
    })
}

/// Whether a head of the remote's branch, as far as it is known here, does not contain the recorded one.
fn lacks_merges(project: &Project, head: &Sha) -> bool {
    let recorded = project.state().ok().and_then(|state| state.board.goal.ready()?.integration_head.clone());
    let lacks = |repo: &Repo, recorded: &Sha| {
        repo.has_commit(head).is_ok_and(|known| known) && !repo.is_ancestor(recorded, head).unwrap_or(true)
    };
    recorded.is_some_and(|recorded| project.repo().is_ok_and(|repo| lacks(repo, &recorded)))
}

/// Whether merged work is still on the branch.
fn merged_work(repo: &Repo, state: &State) -> Option<Check> {
    let lost = match lost_merges(repo, &state.board) {
        Ok(lost) => lost,
        Err(error) => return Some(broken("merged work", error.to_string(), "for details: git log")),
    };
    let command = lost.last()?.command();
    let found: Vec<String> = lost.iter().map(ToString::to_string).collect();
    Some(broken("merged work", found.join("; "), command))
}

/// Whether every task that needs a worktree has one, and there are no others.
fn worktrees(repo: &Repo, folder: &Path, state: &State) -> Check {
    let existing = match repo.inventory() {
        Ok(existing) => existing,
        Err(error) => return broken("worktrees", error.to_string(), "for details: git worktree list"),
    };
    let wants = |task: &TaskId| {
        let body = state.board.body(task);
        body.is_ok_and(|body| body.record().worktree.is_some()) && works_here(folder, &state.board, task)
    };
    let healthy = |task| existing.get(task).is_some_and(|found| found.folder == FolderState::Healthy);
    let missing = state.board.tasks.keys().filter(|task| wants(task) && !healthy(task));
    let unneeded = existing.keys().filter(|task| !wants(task));
    let reserved = |task| state.board.summary(task).is_some_and(|head| head.reservation.is_some());
    let wrong: Vec<String> = missing
        .map(|task| format!("missing for {task}"))
        .chain(unneeded.filter(|task| !reserved(task)).map(|task| format!("not needed for {task}")))
        .collect();
    if wrong.is_empty() {
        return good("worktrees", format!("{} in use", existing.len()));
    }
    broken("worktrees", wrong.join(", "), "liza recover")
}

/// The agent programs that the roles would use, each once.
fn used_programs(config: Option<&Config>, places: &LoginPlaces<'_>) -> Vec<String> {
    let default = default_provider(places);
    let of_role = |role: &Role| match config {
        Some(config) => names_of(config, *role, default),
        None => default.map(str::to_owned).into_iter().collect(),
    };
    let mut used: Vec<String> = Vec::new();
    for name in Role::ALL.iter().flat_map(of_role) {
        if !used.contains(&name) {
            used.push(name);
        }
    }
    used
}

fn programs(used: &[String]) -> Check {
    let known = builtin_programs();
    let found: Vec<&str> =
        known.iter().map(String::as_str).filter(|name| find_program(name).is_some()).collect();
    if found.is_empty() {
        let fix = format!("install one of {}", known.join(", "));
        return warning("agent programs", "none on PATH", fix);
    }
    let used = if used.is_empty() { String::new() } else { format!("; liza run uses {}", used.join(", ")) };
    good("agent programs", format!("{}{used}", found.join(", ")))
}

fn names_of(config: &Config, role: Role, default: Option<&str>) -> Vec<String> {
    let provider = Provider::choose_or(config, role, None, default.unwrap_or_default());
    provider.map(|provider| provider.names()).unwrap_or_default()
}

/// The programs of the roles in the config that are not installed, or cannot be used; a role that names none uses that one.
fn missing_programs(config: &Config, default: Option<&str>) -> Vec<Check> {
    let named = Role::ALL.iter().filter(|role| {
        let keys = [role.to_string(), role.id_prefix().to_owned()];
        keys.iter().any(|key| config.roles.contains_key(key))
    });
    let problem = |role: &Role| {
        let chosen = match default {
            Some(default) => Provider::choose_or(config, *role, None, default),
            None => Provider::choose(config, *role, None),
        };
        let provider = match chosen {
            Ok(provider) => provider,
            Err(error) => return Some(broken("roles", error.to_string(), role_fix(*role))),
        };
        let error = provider.installed_program().err()?;
        let install = if let ProviderError::Missing { install, .. } = &error { install.as_str() } else { "" };
        let fix = if install.is_empty() { role_fix(*role) } else { install.to_owned() };
        Some(broken("roles", format!("{}: {error}", role.title()), fix))
    };
    named.filter_map(problem).collect()
}

/// The command that gives a role another agent program.
fn role_fix(role: Role) -> String {
    format!("liza config roles.{role}.provider NAME")
}

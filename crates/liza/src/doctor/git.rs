//! Checks of git: its version, the repository, the branches, the integration test, the remote, worktrees.

use std::path::Path;

use liza_core::model::{Sha, State, TaskId};
use liza_core::text::shell_word;
use liza_git::{FolderState, Git, RemoteProbe, Repo};
use liza_team::engine::{Exchange, integration_branch};
use liza_team::lifecycle::{found_merges, lost_merges};
use liza_team::project::machine::works_here;
use liza_team::project::{EXCLUDED, Project};
use liza_team::session::checkout_setup::copy_leading_back;

use super::result::{Check, broken, good, warning};

pub(super) fn git_version(git: &Git) -> Check {
    match git.require_version() {
        Ok(version) => good("git", format!("version {version}")),
        Err(error) => broken("git", error.to_string(), "install a newer git"),
    }
}

/// The person's own checkout, and the committer for merges.
pub(super) fn repository(repo: &Repo) -> Vec<Check> {
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

/// Things that an agent could have planted in the repository; Liza ignores them, other programs do not.
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

/// A test that the person has, and that tests no merge.
pub(super) fn integration_test(repo: &Repo, state: &State) -> Option<Check> {
    let unused = repo.unused_test(&integration_branch(&state.board).ok()?).ok()?;
    Some(match unused {
        Some(unused) => warning("integration test", unused.problem(), unused.fix()),
        None => {
            let is_validated = state.board.config.ready().is_some_and(|config| !config.validation.is_empty());
            good("integration test", super::start::test_in_words(repo.root(), is_validated))
        }
    })
}

/// The commands that validate all work before its review.
pub(super) fn validation(state: &State) -> Option<Check> {
    let commands = &state.board.config.ready()?.validation;
    Some(match commands.as_slice() {
        [] => good(
            "validation",
            "none; to run commands before every review: liza config validation '[\"COMMAND\"]'",
        ),
        commands => good("validation", format!("before every review: {}", commands.join("; "))),
    })
}

pub(super) fn branches(repo: &Repo, folder: &Path, state: &State) -> Vec<Check> {
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
pub(super) fn unrecorded_merges(project: &Project, state: &State) -> Option<Check> {
    let found = found_merges(project, state);
    let tasks: Vec<&str> = found.tasks().map(TaskId::as_str).collect();
    let text = || format!("on the branch and not on the blackboard: the merges of {}", tasks.join(", "));
    (!tasks.is_empty())
        .then(|| warning("integration branch", text(), "to record them: liza accept-integration"))
}

/// Worktrees with a copied folder that leads to the person's code: an earlier version copied links as they were.
pub(super) fn copies(project: &Project, state: &State) -> Vec<Check> {
    let (Some(config), Ok(repo)) = (state.board.config.ready(), project.repo()) else { return Vec::new() };
    let tasks = repo.inventory().unwrap_or_default().into_keys();
    let check = |task: TaskId| {
        let (file, copy) = copy_leading_back(project, config, &repo.worktree_path(&task))?;
        let found = format!(
            "{} in the worktree of {task} leads to your checkout: its tests run your code, and not that of the task",
            file.display()
        );
        let copy = copy.to_string_lossy();
        Some(warning(
            "copied files",
            found,
            format!("rm -r {}; its next session copies it again", shell_word(&copy)),
        ))
    };
    tasks.filter_map(check).collect()
}

/// The exchange of work through the git remote, if one is set.
pub(super) fn remote(project: &Project) -> Option<Check> {
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

/// True if a head of the remote's branch, as far as it is known here, does not contain the recorded one.
fn lacks_merges(project: &Project, head: &Sha) -> bool {
    let recorded = project.state().ok().and_then(|state| state.board.goal.ready()?.integration_head.clone());
    let lacks = |repo: &Repo, recorded: &Sha| {
        repo.has_commit(head).is_ok_and(|known| known) && !repo.is_ancestor(recorded, head).unwrap_or(true)
    };
    recorded.is_some_and(|recorded| project.repo().is_ok_and(|repo| lacks(repo, &recorded)))
}

fn merged_work(repo: &Repo, state: &State) -> Option<Check> {
    let lost = match lost_merges(repo, &state.board) {
        Ok(lost) => lost,
        Err(error) => return Some(broken("merged work", error.to_string(), "for details: git log")),
    };
    let command = lost.last()?.command();
    let found: Vec<String> = lost.iter().map(ToString::to_string).collect();
    Some(broken("merged work", found.join("; "), command))
}

/// The check that every task that needs a worktree has one, and that there are no others.
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

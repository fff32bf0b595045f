//! The protection of the files that decide what the integration test runs, and the acceptance tests that no session reads.

use liza_core::model::{Sandbox, State};
use liza_git::{Protected, Repo};
use liza_ids::gate::{GatePatterns, protect_command};
use liza_sandbox::confine::expand;
use liza_team::engine::integration_branch;
use liza_team::lifecycle::Holdout;
use liza_team::project::Project;
use liza_team::session::plan::{holdout_folder, home};

use super::result::{Check, broken, good, warning};

/// Files that decide what the integration test runs, and that any task can change.
pub(super) fn gate(repo: &Repo, state: &State) -> Option<Check> {
    let settings = &state.board.config.ready()?.gate;
    let head = repo.tip(&integration_branch(&state.board).ok()?).ok()??;
    let patterns = GatePatterns::new(settings);
    let protected = repo.protected(&head, &patterns).ok().filter(Protected::has_test)?;
    let open = patterns.unprotected_deciding(protected.near_the_top());
    let found =
        format!("any task can change what decides what the integration test runs: {}", open.join(", "));
    (!open.is_empty()).then(|| warning("gate", found, protect_command(settings, &open)))
}

/// `config.holdout`, if it is set.
pub(super) fn holdout(project: &Project, state: &State) -> Option<Check> {
    let config = state.board.config.ready()?;
    let folder = holdout_folder(config)?;
    let holdout = match Holdout::of(project, config)? {
        Ok(holdout) => holdout,
        Err(problem) => {
            return Some(broken("holdout", problem, "correct the folder, or: liza config holdout --unset"));
        }
    };
    let is_granted = |path: &String| folder.starts_with(expand(path, home().as_deref()));
    let granted = [&config.sandbox_readable, &config.sandbox_writable];
    Some(if config.sandbox == Sandbox::Off {
        warning("holdout", "sessions can read it: config.sandbox is off", "liza config sandbox auto")
    } else if granted.iter().any(|paths| paths.iter().any(is_granted)) {
        let found = "sessions can read it: config.sandbox_readable or config.sandbox_writable contains it";
        warning("holdout", found, "liza config sandbox_readable '[PATH]', without it")
    } else {
        good("holdout", format!("{} acceptance tests that no session reads", holdout.names()))
    })
}

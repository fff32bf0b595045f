//! The protection of the files that decide what the integration test runs.

use liza_core::model::State;
use liza_git::{Protected, Repo};
use liza_ids::gate::{GatePatterns, protect_command};
use liza_team::engine::integration_branch;

use super::result::{Check, warning};

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

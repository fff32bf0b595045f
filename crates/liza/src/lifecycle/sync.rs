//! sync: brings another branch, normally the main branch, into the integration branch, and records the new head.
//!
//! The human's way to add commits that no task made; merges of tasks go through `wt_merge`.

use std::time::Duration;

use liza_core::model::{Refusal, Sha, TaskId};
use liza_core::protocol::AcceptIntegration;

use crate::engine::{Engine, EngineError, FileLock, integration_branch};
use crate::git::{Branch, MergeError};

/// How long to wait for a merge in progress.
const LOCK_TIMEOUT: Duration = Duration::from_secs(120);

/// Under this name git keeps what was brought in.
const NAME: &str = "sync";

/// The result of a sync.
#[derive(Debug)]
pub enum SyncOutcome {
    /// The integration branch contains the other branch now.
    Synced {
        /// Its new head.
        head: Sha,
        /// The number of commits that it gained.
        commits: u64,
    },
    /// It contained the other branch already.
    UpToDate {
        /// Its head.
        head: Sha,
    },
    /// It was not moved.
    Failed(MergeError),
}

/// Merges `from` into the integration branch.
///
/// # Errors
/// When the integration branch has foreign commits, or git or the blackboard fails.
pub fn sync(engine: &Engine<'_>, from: &Branch) -> Result<SyncOutcome, EngineError> {
    let integration = integration_branch(&engine.read(&[])?)?;
    let _lock = FileLock::at(&FileLock::of_merges(engine.project().folder()), LOCK_TIMEOUT)?;
    let old = engine.integration_head(&integration)?;
    check_recorded(engine, &old)?;
    let repo = engine.repo()?;
    let Some(tip) = repo.tip(from)? else {
        return Ok(SyncOutcome::Failed(MergeError::NoBranch { branch: from.clone() }));
    };
    let text = format!("Merge {from} into {integration}\n");
    let merge = match repo.prepare_branch_merge(&integration, (from, &tip), &text) {
        Ok(merge) => merge,
        Err(MergeError::AlreadyMerged { .. }) => return Ok(SyncOutcome::UpToDate { head: old }),
        Err(error) => return Ok(SyncOutcome::Failed(error)),
    };
    let name: TaskId = NAME.parse().map_err(|_| Refusal::Missing { what: "a name" })?;
    if let Err(error) = repo.move_branch(&integration, &merge, &name) {
        return Ok(SyncOutcome::Failed(error));
    }
    let commits = repo.count_commits(&merge.old, &merge.new)?;
    let (head, detail) = (merge.new, format!("{from} was merged into {integration}"));
    engine.execute(AcceptIntegration { head: head.clone(), detail })?;
    Ok(SyncOutcome::Synced { head, commits })
}

/// What is on the branch without Liza has to be accepted first: it would be accepted in silence otherwise.
pub(super) fn check_recorded(engine: &Engine<'_>, found: &Sha) -> Result<(), EngineError> {
    let state = engine.project().state()?;
    let recorded = state.board.goal.ready().and_then(|goal| goal.integration_head.clone());
    match recorded.filter(|recorded| recorded != found) {
        Some(recorded) => Err(Refusal::ForeignCommits { recorded, found: found.clone() }.into()),
        None => Ok(()),
    }
}

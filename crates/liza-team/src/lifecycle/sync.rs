//! sync: merges another branch, normally the main branch, into the integration branch, and records the new
//! head. The human's way to add commits that no task made; merges of tasks go through `wt_merge`.

use std::time::Duration;

use liza_core::model::{Refusal, Sha, TaskId};
use liza_core::protocol::AcceptIntegration;
use liza_git::{Branch, MergeError, MergeKind, PendingMerge};

use crate::engine::{Engine, EngineError, Exchange, FileLock, MergeWords, Published, integration_branch};

use super::move_intent::{MoveIntent, MovingCommand};
use super::shared_merge::record_found_merges;

const LOCK_TIMEOUT: Duration = Duration::from_secs(120);

/// The name under which git keeps the merge.
const NAME: &str = "sync";

#[derive(Debug)]
pub enum SyncOutcome {
    Synced {
        head: Sha,
        /// The number of commits that were brought, without that of the merge.
        commits: u64,
    },
    UpToDate {
        head: Sha,
    },
    Failed(MergeError),
}

pub fn sync(engine: &Engine<'_>, from: &Branch) -> Result<SyncOutcome, EngineError> {
    let integration = integration_branch(&engine.read(&[])?)?;
    let _lock = FileLock::at(&FileLock::of_merges(engine.project().folder()), LOCK_TIMEOUT)?;
    let repo = engine.repo()?;
    let Some(tip) = repo.tip(from)? else {
        return Ok(SyncOutcome::Failed(MergeError::NoBranch { branch: from.clone() }));
    };
    let exchange = Exchange::of(engine.project())?;
    let merge = loop {
        let old = current_head(engine, exchange.as_ref(), &integration)?;
        check_recorded(engine, &old)?;
        let draft = match repo.draft_branch_merge(&integration, &tip) {
            Ok(Some(draft)) => draft,
            Ok(None) => return Ok(SyncOutcome::UpToDate { head: old }),
            Err(error) => return Ok(SyncOutcome::Failed(error)),
        };
        let kind = MergeKind::Sync { from, into: &integration };
        let words = MergeWords { kind, title: None, approved_by: None, without_validation: false };
        let merge = engine.state_merge(&draft, &words, Vec::new())?;
        let detail = format!("{from} was merged into {integration}");
        MoveIntent::new(&integration, &merge, MovingCommand::Sync { detail }).begin(engine.project())?;
        match make_visible(engine, exchange.as_ref(), &integration, &merge) {
            Ok(Published::Done) => break merge,
            // Each time, a merge of a task came first; it is recorded before the next round.
            Ok(Published::Moved) => {}
            Err(NotVisible::Engine(error)) => return Err(error),
            Err(NotVisible::Git(error)) => {
                // After a failure of git, the branch may have moved: the next command finds out.
                if !matches!(error, MergeError::Git(_)) {
                    MoveIntent::end(engine.project())?;
                }
                return Ok(SyncOutcome::Failed(error));
            }
        }
    };
    let commits = repo.count_commits(&merge.old, &tip)?;
    let (head, detail) = (merge.new, format!("{from} was merged into {integration}"));
    engine.execute(AcceptIntegration { head: head.clone(), detail, merged: Vec::new() })?;
    MoveIntent::end(engine.project())?;
    Ok(SyncOutcome::Synced { head, commits })
}

/// The head of the integration branch, the target of the next merge.
pub(super) fn current_head(
    engine: &Engine<'_>,
    exchange: Option<&Exchange<'_>>,
    integration: &Branch,
) -> Result<Sha, EngineError> {
    let Some(exchange) = exchange else { return engine.integration_head(integration) };
    let head = exchange.follow()?.head;
    record_found_merges(engine, &head)?;
    exchange.bring_receipts()?;
    Ok(head)
}

enum NotVisible {
    Engine(EngineError),
    Git(MergeError),
}

/// Moves the branch here, or the one of the remote.
fn make_visible(
    engine: &Engine<'_>,
    exchange: Option<&Exchange<'_>>,
    integration: &Branch,
    merge: &PendingMerge,
) -> Result<Published, NotVisible> {
    let repo = engine.repo().map_err(NotVisible::Engine)?;
    if let Some(exchange) = exchange {
        repo.movable_checkouts(integration, merge).map_err(NotVisible::Git)?;
        return exchange.publish(None, merge).map_err(NotVisible::Engine);
    }
    let name = || Refusal::Missing { what: "a name" }.into();
    let name: TaskId = NAME.parse().map_err(|_| NotVisible::Engine(name()))?;
    repo.move_branch(integration, merge, &name).map(|()| Published::Done).map_err(NotVisible::Git)
}

/// Refuses commits on the branch that Liza did not make: they would be accepted in silence otherwise.
pub(super) fn check_recorded(engine: &Engine<'_>, found: &Sha) -> Result<(), EngineError> {
    let state = engine.project().state()?;
    let recorded = state.board.goal.ready().and_then(|goal| goal.integration_head.clone());
    match recorded.filter(|recorded| recorded != found) {
        Some(recorded) => Err(Refusal::ForeignCommits { recorded, found: found.clone() }.into()),
        None => Ok(()),
    }
}

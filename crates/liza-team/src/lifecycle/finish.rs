//! finish: takes the goal's result out of the integration branch, to the main branch here or to a remote.
//! Only the human's command calls it. Work that did not pass reviews is refused.

use std::time::Duration;

use liza_core::model::{GoalStatus, Refusal, Sha, TaskId};
use liza_core::protocol::Finish;
use liza_git::{Branch, MergeError, MergeKind, Remote};

use crate::engine::{Engine, EngineError, Exchange, FileLock, MergeWords, integration_branch};

use super::move_intent::{MoveIntent, MovingCommand, record_taken};
use super::sync::{check_recorded, current_head};

const LOCK_TIMEOUT: Duration = Duration::from_secs(120);

/// The name under which git keeps the merge.
const NAME: &str = "finish";

#[derive(Debug)]
pub struct GoalResult {
    pub goal: String,
    pub status: GoalStatus,
    pub title: String,
    pub integration: Branch,
    pub head: Sha,
    /// The human has taken exactly this.
    pub is_taken: bool,
}

#[derive(Debug)]
pub enum FinishOutcome {
    Merged {
        head: Sha,
        /// The number of commits that it gained.
        commits: u64,
    },
    UpToDate,
    Failed(MergeError),
}

pub fn goal_result(engine: &Engine<'_>) -> Result<GoalResult, EngineError> {
    let integration = integration_branch(&engine.read(&[])?)?;
    let exchange = Exchange::of(engine.project())?;
    let head = current_head(engine, exchange.as_ref(), &integration)?;
    check_recorded(engine, &head)?;
    let state = engine.project().state()?;
    let goal = state.board.goal()?;
    let title = liza_core::text::one_line(&goal.description, 120);
    let is_taken = goal.taken.as_ref().is_some_and(|taken| taken.head == head);
    Ok(GoalResult { goal: goal.id.clone(), status: goal.status, title, integration, head, is_taken })
}

/// Merges the result into the main branch, and updates every checkout of it.
pub fn merge_into_main(
    engine: &Engine<'_>,
    result: &GoalResult,
    main: &Branch,
) -> Result<FinishOutcome, EngineError> {
    let _lock = FileLock::at(&FileLock::of_merges(engine.project().folder()), LOCK_TIMEOUT)?;
    let finish = Finish { head: result.head.clone(), detail: format!("merged into {main}") };
    // Refused before anything has moved.
    engine.check(engine.project().stop_files(), finish.clone())?;
    let repo = engine.repo()?;
    let merge = match repo.draft_branch_merge(main, &result.head) {
        // The line of the main branch is then that of the integration branch.
        Ok(Some(draft)) if draft.is_forward => draft.trial,
        Ok(Some(draft)) => {
            let kind = MergeKind::Finish { goal: &result.goal };
            let words =
                MergeWords { kind, title: Some(&result.title), approved_by: None, without_validation: false };
            engine.state_merge(&draft, &words, Vec::new())?
        }
        Ok(None) => {
            if !result.is_taken {
                record_taken(engine, Finish { detail: format!("{main} has it"), ..finish })?;
            }
            return Ok(FinishOutcome::UpToDate);
        }
        Err(error) => return Ok(FinishOutcome::Failed(error)),
    };
    let name: TaskId = NAME.parse().map_err(|_| Refusal::Missing { what: "a name" })?;
    let Finish { head, detail } = finish.clone();
    let command = MovingCommand::Finish { goal: result.goal.clone(), head, detail };
    MoveIntent::new(main, &merge, command).begin(engine.project())?;
    if let Err(error) = repo.move_branch(main, &merge, &name) {
        // After a failure of git, the branch may have moved: the next command finds out.
        if !matches!(error, MergeError::Git(_)) {
            MoveIntent::end(engine.project())?;
        }
        return Ok(FinishOutcome::Failed(error));
    }
    let commits = repo.count_commits(&merge.old, &merge.new).unwrap_or_default();
    record_taken(engine, finish)?;
    MoveIntent::end(engine.project())?;
    Ok(FinishOutcome::Merged { head: merge.new, commits })
}

/// Publishes the result as a branch of a remote. It counts as taken after `record_taken` with the result.
pub fn publish(
    engine: &Engine<'_>,
    result: &GoalResult,
    (remote, branch): (&Remote, &Branch),
) -> Result<Finish, EngineError> {
    let detail = format!("pushed to {} as {branch}", remote.name);
    let finish = Finish { head: result.head.clone(), detail };
    engine.check(engine.project().stop_files(), finish.clone())?;
    engine.repo()?.push(remote, &result.head, branch)?;
    Ok(finish)
}

//! Merges of tasks that are on the integration branch and not on the blackboard: a restored older copy of a
//! database lacks the last records. Reads only; `liza_core::rules::found_merges` decides the rest.

use liza_core::model::{Board, Section, Sha, State, TaskId};
use liza_core::rules::found_merges::FoundMerges;
use liza_git::Repo;

use crate::engine::{Engine, EngineError, integration_branch};
use crate::project::Project;

/// The tasks whose merge is on the integration branch here and not on the blackboard. Starts git only if the
/// branch or the recorded head has moved since the last look.
pub fn found_merges(project: &Project, state: &State) -> FoundMerges {
    heads(project, &state.board).map_or(FoundMerges::NONE, |(recorded, head)| {
        FoundMerges::new(&state.board, &project.branch_steps(&recorded, &head))
    })
}

/// True if the integration branch is still at the last merge, nearly always. Does not start git.
pub fn is_at_recorded_head(project: &Project, board: &Board) -> bool {
    let recorded = recorded_head(board);
    recorded.is_some() && head_on_disk(project, board) == recorded
}

/// Refuses work on a task whose merge is on the branch, which is at `head`, and not on the blackboard.
pub(super) fn refuse_found_merge(
    engine: &Engine<'_>,
    task: &TaskId,
    head: Option<&Sha>,
) -> Result<(), EngineError> {
    let project = engine.project();
    let read = || project.store().read_parts(&[Section::Goal, Section::Config], &[]);
    let head = match head {
        Some(head) => Some(head.clone()),
        None => heads(project, &read()?).map(|(_, head)| head),
    };
    let Some(head) = head else { return Ok(()) };
    // After the head: a merge is on the branch first, and recorded then.
    if recorded_head(&read()?).is_none_or(|recorded| recorded == head) {
        return Ok(());
    }
    let state = project.state()?;
    let Some(recorded) = recorded_head(&state.board) else { return Ok(()) };
    Ok(FoundMerges::new(&state.board, &project.branch_steps(&recorded, &head)).check(task)?)
}

fn recorded_head(board: &Board) -> Option<Sha> {
    board.goal.ready()?.integration_head.clone()
}

/// The recorded head and that of the branch here, if they differ.
fn heads(project: &Project, board: &Board) -> Option<(Sha, Sha)> {
    let recorded = recorded_head(board)?;
    let head = head_on_disk(project, board).or_else(|| tip(project, board))?;
    (recorded != head).then_some((recorded, head))
}

fn head_on_disk(project: &Project, board: &Board) -> Option<Sha> {
    let branch = integration_branch(board).ok()?;
    let folder = project.root().join(".git");
    if folder.is_dir() {
        return Repo::head_on_disk(&folder, &branch);
    }
    // In a linked worktree, the branches are elsewhere.
    Repo::head_on_disk(project.repo().ok()?.common_dir(), &branch)
}

fn tip(project: &Project, board: &Board) -> Option<Sha> {
    project.repo().ok()?.tip(&integration_branch(board).ok()?).ok()?
}

//! Completes an interrupted `finish` or `sync` before a command that moves a branch or starts a team.

use liza_team::engine::EngineError;
use liza_team::lifecycle::settle_moves;
use liza_team::project::Project;

use crate::cli::context::Context;

/// Completes or takes back an interrupted move; a note reports it.
pub(crate) fn settle_interrupted(context: &Context, project: &Project) -> Result<(), EngineError> {
    let report = settle_moves(project)?;
    let repaired = report.repaired.iter().map(|finding| format!("repaired {finding}"));
    let left = report.left.iter().map(|finding| format!("could not repair {finding}"));
    repaired.chain(left).for_each(|line| context.screen.note(&line));
    Ok(())
}

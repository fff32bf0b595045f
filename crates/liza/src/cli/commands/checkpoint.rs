//! `liza checkpoint`: all agents stop for a review by a person.

use std::path::PathBuf;

use liza_core::model::State;
use liza_core::protocol::{Checkpoint, CheckpointCause};
use liza_report::summary::{self, digest};
use liza_team::project::now;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Stop all agents for a review of the sprint.
///
/// No new work starts, claims are kept, and a summary of the sprint is written to .liza/sprint_summary.md. Repeat the
/// command to update the summary.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza checkpoint
  liza resume")]
pub(crate) struct Args {
    /// The project; default the one in the current folder.
    #[arg(value_name = "PROJECT_ROOT")]
    root: Option<PathBuf>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let context = context.at(args.root.as_deref())?;
    let project = context.project()?;
    let command = Checkpoint { cause: CheckpointCause::Human };
    let done = context.execute(&project, command)?;
    let state = project.store().snapshot()?;
    let is_tested = project.is_tested(&state);
    let (digest, summary) = (digest(&state), summary::write(project.store(), &state, is_tested, now()));
    let mut lines = vec![match done.reply.changed {
        false => "already at a checkpoint; the summary is updated".to_owned(),
        true => began(&state),
    }];
    lines.extend(digest.iter().map(|line| format!("  {line}")));
    match &summary {
        Ok(path) => lines.push(format!("summary  {}", path.display())),
        // Only a warning: the checkpoint itself has succeeded.
        Err(error) => context.screen.note(&format!("liza: cannot write the summary: {error}")),
    }
    lines.push("After your review: liza resume".to_owned());
    let mut reply = context.reply(&done, lines.join("\n"));
    reply.result["summary"] = json!(summary.ok());
    reply.result["digest"] = json!(digest);
    Ok(reply)
}

/// The effect of a checkpoint on running work.
fn began(state: &State) -> String {
    let grace = state.board.config.ready().map(|config| format!(" (up to {})", config.stop_grace));
    let grace = grace.unwrap_or_default();
    format!("checkpoint: no new work starts; running sessions may end their work{grace}")
}

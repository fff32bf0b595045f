//! `liza checkpoint`: everybody stops for a human's look.

use std::path::PathBuf;

use liza_core::protocol::{Checkpoint, CheckpointCause};
use serde_json::json;

use crate::project::now;
use crate::report::summary::{self, digest};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Stop everybody for a look at the sprint.
///
/// Nothing new starts, claims are kept, and .liza/sprint_summary.md says how the sprint stands. Said again, the summary
/// is written anew.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza checkpoint
  liza resume --decision continue")]
pub(crate) struct Args {
    /// Another project than the one that you are in.
    #[arg(value_name = "PROJECT_ROOT")]
    root: Option<PathBuf>,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let context = context.at(args.root.as_deref())?;
    let project = context.project()?;
    let command = Checkpoint { cause: CheckpointCause::Human };
    let done = context.execute(&project, command)?;
    let state = project.store().snapshot()?;
    let (digest, summary) = (digest(&state), summary::write(&project, &state, now()));
    let mut lines = vec![match done.reply.changed {
        false => "the checkpoint stands already; its summary is new".to_owned(),
        true => "checkpoint: nothing new starts, running sessions come to an end".to_owned(),
    }];
    lines.extend(digest.iter().map(|line| format!("  {line}")));
    match &summary {
        Ok(path) => lines.push(format!("summary  {}", path.display())),
        // Everybody has stopped; that is what was asked for.
        Err(error) => context.screen.note(&format!("liza: the summary could not be written: {error}")),
    }
    lines.push("when you have looked: liza resume --decision continue".to_owned());
    let mut reply = context.reply(&done, lines.join("\n"));
    reply.result["summary"] = json!(summary.ok());
    reply.result["digest"] = json!(digest);
    Ok(reply)
}

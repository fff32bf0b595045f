//! `liza import`: fills an empty blackboard with an exported one.

use std::path::PathBuf;

use liza_core::model::LogEntry;
use liza_core::text::count;
use liza_store::Export;
use liza_team::project::now;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::shared_settings::note_unused_settings;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Fill an empty blackboard with what `liza export` wrote.
///
/// The blackboard may be a file or in a database; create it first with `liza init`. The export is imported as it is,
/// violations included: `liza validate` lists them, `liza recover` repairs worktrees that are not here.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza import backup.yaml
  liza init --store postgres://liza@db.example/team && liza import backup.yaml")]
pub(crate) struct Args {
    /// The exported file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    context.human_only("import")?;
    let path = context.directory.join(&args.file);
    let text = context.read_text(&path).map_err(|error| {
        let message = format!("cannot read {}: {error}", path.display());
        CommandError::refused("io", message).hint("name a file that `liza export` wrote")
    })?;
    let export = Export::parse(&text).map_err(|error| {
        let message = format!("{}: {error}", path.display());
        CommandError::refused("bad_file", message).hint("name a file that `liza export` wrote")
    })?;
    let now = now();
    let log = LogEntry {
        timestamp: now,
        agent: "human".to_owned(),
        action: "imported".to_owned(),
        task: None,
        detail: format!("the blackboard in {}", args.file.display()),
    };
    let imported = project.store().import(&export, &log, now)?;
    context.report_notices(&imported.notices);
    note_unused_settings(context, project.store())?;
    let state = project.store().snapshot()?;
    let (tasks, archived) = (state.board.tasks.len(), export.archived());
    let (new, old) = (count(tasks, "task"), count(archived, "archived entry"));
    let said = format!("imported {new} and {old}; next: liza validate");
    let result = json!({"tasks": tasks, "archived": archived, "revision": imported.revision});
    Ok(Reply::new(said, result))
}

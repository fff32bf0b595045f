//! `liza export`: the whole blackboard in one file.

use std::path::PathBuf;

use liza_host::durable::replace_private_file;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Write the whole blackboard to one file.
///
/// The file has the state, the log and the archive. For a backup, or to move a project between a file and a database: `liza import` takes it back. Prompts, outputs of
/// sessions and git are not part of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza export backup.yaml
  liza export > backup.yaml")]
pub(crate) struct Args {
    /// The file; without it, standard output.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    context.human_only("export")?;
    let export = project.store().export()?;
    let text = export.text().map_err(|error| CommandError::refused("io", error.to_string()))?;
    let Some(file) = args.file else {
        let result = json!({"export": text});
        return Ok(Reply::new(text.trim_end().to_owned(), result));
    };
    let path = context.directory.join(&file);
    replace_private_file(&path, text.as_bytes()).map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        CommandError::refused("io", message).hint("name a file in a folder that you may write")
    })?;
    let said = format!("exported to {}", file.display());
    Ok(Reply::new(said, json!({"file": path.display().to_string(), "bytes": text.len()})))
}

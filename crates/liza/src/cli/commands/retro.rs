//! `liza retro`: the retrospective of the sprint.

use std::path::PathBuf;

use liza_core::evidence::reviewer_rates;
use liza_core::model::Section;
use liza_core::protocol::WriteRetro;
use liza_drill::table;
use liza_report::{masker, retro};
use liza_team::observe::drills::read_records;
use liza_team::project::{Project, now};
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::input::read_file;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::{Reply, to_json};

/// Print or write the retrospective of the sprint.
///
/// Liza fills it from the data of the sprint; edit it and add your own conclusions. `liza sprint new` archives it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza retro
  liza retro --write
  liza retro > retro.md && ${EDITOR:-vi} retro.md && liza retro --file retro.md")]
pub(crate) struct Args {
    /// Save it in the sprint.
    #[arg(long)]
    write: bool,
    /// Save this text instead; - reads standard input.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Replace a retrospective that a person wrote.
    #[arg(long, requires = "write", conflicts_with = "file")]
    force: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let state = project.store().snapshot()?;
    let sprint = state.board.sprint.get(Section::Sprint)?;
    if let Some(file) = &args.file {
        return keep(&project, context, &sprint.id, &read_file(context, file, "--file")?);
    }
    let (drills, of_drills) = match read_records(project.folder()) {
        Ok(records) => {
            let rates = reviewer_rates(&records);
            (table(&rates), to_json(&rates))
        }
        Err(error) => (vec![format!("- The results cannot be read: {error}")], json!(null)),
    };
    let page =
        retro::render(&state, retro::previous(project.store(), sprint).as_ref(), drills, &masker(), now());
    let page = page.trim_end().to_owned();
    if !args.write {
        let result = json!({"sprint": sprint.id, "text": page, "written": false, "drills": of_drills});
        return Ok(Reply::new(page, result).at(state.board.revision.0));
    }
    let own = |text: &&String| !text.trim().is_empty() && !text.contains(retro::FILLED);
    if sprint.retrospective.as_ref().filter(own).is_some() && !args.force {
        let message = format!("{} already has a retrospective written by a person", sprint.id);
        let hint = "print it: liza sprint show; replace it: liza retro --write --force";
        return Err(CommandError::refused("retrospective_exists", message).hint(hint));
    }
    keep(&project, context, &sprint.id, &page)
}

fn keep(project: &Project, context: &Context, sprint: &str, text: &str) -> Result<Reply, CommandError> {
    let done = context.execute(project, WriteRetro { text: text.to_owned() })?;
    let saved = format!("the retrospective of {sprint} is saved; to print it: liza sprint show");
    let result = json!({"sprint": sprint, "text": text, "written": true});
    Ok(Reply::new(saved, result).at(done.revision.0))
}

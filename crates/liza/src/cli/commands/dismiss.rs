//! `liza dismiss`: closes a discovery that needs no task, or accepts a direct edit of the file.

use std::str::FromStr;

use liza_core::model::{DirectEditId, DiscoveryId};
use liza_core::protocol::{DismissDiscovery, DismissEdit};

use liza_team::project::now;

use crate::cli::commands::lock::begin_edit;
use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Close a discovery without a task, or accept a direct edit.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza dismiss disc-1
  liza dismiss edit-12")]
pub(crate) struct Args {
    /// The discovery, or the edit as `liza status` names it.
    #[arg(value_name = "DISC|EDIT")]
    subject: Subject,
}

#[derive(Debug, Clone, Copy)]
enum Subject {
    Discovery(DiscoveryId),
    Edit(DirectEditId),
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let discovery = text.parse().map(Self::Discovery);
        discovery.or_else(|_| text.parse().map(Self::Edit)).map_err(|_| {
            format!(
                "{text:?} is neither a discovery (disc-N) nor a direct edit (edit-N); to drop a task: \
                     liza abandon-task TASK --reason TEXT"
            )
        })
    }
}

/// Records an edit that only a look has seen, so that it can be dismissed.
fn record_edit(edit: DirectEditId, context: &Context) -> Result<(), CommandError> {
    let project = context.project()?;
    if project.store().pending_edit(now()).is_some_and(|pending| pending.id == edit) {
        let mut session = begin_edit(&project, context, "dismiss")?;
        session.begin_modify(now())?;
        session.undo_modify()?;
    }
    Ok(())
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    match args.subject {
        Subject::Discovery(discovery) => {
            context.run(DismissDiscovery { discovery }, |reply| format!("{} is dismissed", reply.discovery))
        }
        Subject::Edit(edit) => {
            record_edit(edit, context)?;
            context.run(DismissEdit { edit }, |reply| format!("{} is dismissed", reply.edit))
        }
    }
}

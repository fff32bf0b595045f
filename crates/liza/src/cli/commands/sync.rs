//! `liza sync`: brings the main branch into the integration branch.

use liza_core::text::count;
use liza_git::{Branch, BranchError, MergeError};
use liza_team::lifecycle::{SyncOutcome, sync};
use liza_team::project::Project;

use crate::cli::context::Context;
use crate::cli::interrupted_moves::settle_interrupted;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::Reply;

/// Merge the main branch into the integration branch.
///
/// Brings your own commits to the agents: the next claim starts from them. The main branch is config.main_branch,
/// recorded by liza init.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza sync
  liza sync release-2")]
pub(crate) struct Args {
    /// The branch to merge, if it is not the main branch.
    branch: Option<String>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("sync")?;
    let project = context.project()?;
    settle_interrupted(context, &project)?;
    let from = source(&project, args.branch)?;
    let engine = context.engine(&project)?;
    let (head, commits) = match context.reported(&engine, sync(&engine, &from))? {
        SyncOutcome::Synced { head, commits } => (head, commits),
        SyncOutcome::UpToDate { head } => (head, 0),
        SyncOutcome::Failed(error) => return Err(failed(&from, &error)),
    };
    let text = match commits {
        0 => format!("the integration branch already contains {from}"),
        number => {
            let commits = count(usize::try_from(number).unwrap_or(usize::MAX), "commit");
            format!("{from} is merged into the integration branch: {commits}, now at {}", head.short())
        }
    };
    let result = serde_json::json!({ "integration_head": head, "commits": commits, "from": from.as_str() });
    Ok(Reply::new(text, result))
}

/// The named branch, the recorded main branch, or the one that is checked out.
fn source(project: &Project, named: Option<String>) -> Result<Branch, CommandError> {
    let state = project.store().snapshot()?;
    let config = state.board.config()?;
    let here = || project.repo().ok()?.head().ok()?.branch;
    let refused = |message: String| CommandError::refused("no_branch", message).hint("liza sync BRANCH");
    let name = named.or_else(|| config.main_branch.clone()).or_else(here);
    let name = name.ok_or_else(|| refused("the main branch is not known".to_owned()))?;
    if name == config.integration_branch {
        return Err(refused(format!("{name} is the integration branch itself")));
    }
    let branch: Branch =
        name.parse().map_err(|error: BranchError| CommandError::refused("bad_branch", error.to_string()))?;
    match project.repo()?.tip(&branch)? {
        Some(_) => Ok(branch),
        None => Err(refused(format!("there is no branch {branch}"))),
    }
}

fn failed(from: &Branch, error: &MergeError) -> CommandError {
    let message = format!("{from} cannot be merged into the integration branch: {error}");
    let hint = "the branch is unchanged; to resolve it yourself: merge by hand, then liza accept-integration";
    CommandError::refused("not_synced", message).hint(hint).exit(Exit::Git)
}

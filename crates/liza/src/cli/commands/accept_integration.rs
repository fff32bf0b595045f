//! `liza accept-integration`: the human accepts commits on the integration branch that Liza did not merge.

use liza_core::protocol::AcceptIntegration;
use liza_core::rules::found_merges::unrecorded;
use liza_core::text::count;
use liza_ids::BranchMerge;
use liza_team::engine::{Exchange, integration_branch};

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Accept commits on the integration branch that bypassed the reviews.
///
/// Liza merges only onto the head that it set itself. Commits that came another way stop all merges until you accept
/// them here, or move the branch back with git. With a git remote, commits that only your branch has are pushed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza accept-integration")]
pub(crate) struct Args {}

pub(crate) fn run(_args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let engine = context.engine(&project)?;
    let board = engine.read(&[])?;
    let integration = integration_branch(&board)?;
    let exchange = Exchange::with(&project, &board)?;
    let head = match &exchange {
        Some(exchange) => exchange.publish_branch()?,
        None => engine.integration_head(&integration)?,
    };
    let recorded =
        project.store().snapshot()?.board.goal.ready().and_then(|goal| goal.integration_head.clone());
    let detail = match &recorded {
        Some(recorded) if *recorded == head => format!("{integration} is at {}, as expected", head.short()),
        Some(recorded) => {
            let commits = project.repo()?.list_commits(recorded, &head).unwrap_or_default();
            let number = count(commits.len(), "commit");
            format!("accepted {number} on {integration}: {}", commits.join("; "))
        }
        None => format!("{integration} starts at {}", head.short()),
    };
    let merged: Vec<BranchMerge> = match &recorded {
        Some(recorded) => {
            let (beyond, state) = (project.branch_steps(recorded, &head), project.state()?);
            unrecorded(&state.board, &beyond).into_iter().cloned().collect()
        }
        None => Vec::new(),
    };
    let mut text = detail.clone();
    let accept = AcceptIntegration { head: head.clone(), detail, merged: merged.clone() };
    if recorded.as_ref() != Some(&head) {
        // Only the human's word becomes a statement.
        engine.check(project.stop_files(), accept.clone())?;
        exchange.iter().try_for_each(Exchange::bring_receipts)?;
        engine.state_acceptance(recorded.as_ref(), &head)?;
        exchange.iter().try_for_each(Exchange::send_receipts)?;
    }
    if !merged.is_empty() {
        let tasks: Vec<&str> = merged.iter().map(|merge| merge.task.as_str()).collect();
        text.push_str(&format!("; merges that the blackboard had lost are recorded: {}", tasks.join(", ")));
    }
    context.run_in(&project, accept, |_| text)
}

//! `liza resume`: all agents continue after PAUSE or CHECKPOINT.

use liza_core::model::{DECISIONS, SprintStatus};
use liza_core::protocol::{Resume, Resumed};
use liza_team::observe::last_run::last_run;
use liza_team::run::is_team_running;

use crate::cli::confirm::{GOAL_ENDS, confirm_end};
use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Continue after a pause or a checkpoint.
///
/// Your decision is kept in the sprint and in the log. `--decision stop` does not continue: it ends the goal
/// permanently, like `liza abort`, and asks first in a terminal. If nothing is paused, nothing happens.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza resume
  liza resume --decision replan --note \"auth first\"")]
pub(crate) struct Args {
    /// What you decided at the checkpoint.
    #[arg(long, value_name = "DECISION", value_parser = clap::builder::PossibleValuesParser::new(DECISIONS))]
    decision: Option<String>,
    /// A note on the decision.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    note: Option<Text>,
    /// Do not ask before --decision stop.
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    if args.decision.as_deref() == Some("stop") {
        confirm_end(context, args.yes, GOAL_ENDS)?;
    }
    let command = Resume { decision: args.decision, note: Text::read_some(args.note, context)? };
    let project = context.project()?;
    let done = context.execute(&project, command)?;
    let runs = is_team_running(&project, &project.store().snapshot()?)?;
    Ok(context.reply(&done, text(&done.reply, runs, &last_run(&project).run)))
}

fn text(reply: &Resumed, runs: bool, run: &str) -> String {
    match (reply.changed, reply.sprint) {
        (false, SprintStatus::InProgress) if !runs => {
            format!("not paused; no team is running. Start it: {run}")
        }
        (true, SprintStatus::InProgress) if !runs => {
            format!("resumed; no team is running. Start it: {run}")
        }
        (false, SprintStatus::InProgress) => "not paused; work continues".to_owned(),
        (true, SprintStatus::InProgress) => "work continues; to see it: liza status".to_owned(),
        (_, SprintStatus::Aborted) => "the goal is ABORTED; start over: liza goal new \"GOAL\"".to_owned(),
        (_, status @ (SprintStatus::Checkpoint | SprintStatus::Completed)) => {
            format!("the sprint is {status}; to continue: liza sprint new, or liza goal new \"GOAL\"")
        }
    }
}

//! `liza resume`: everybody goes on after PAUSE or CHECKPOINT.

use liza_core::model::{DECISIONS, Fields, Value};
use liza_core::protocol::Resume;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::input::Text;
use crate::cli::ui::output::{Reply, word};
use super::update_sprint_metrics::and_complete_sprint;

/// Go on after a pause or a checkpoint.
///
/// What you decided is kept in the sprint and in the log. `--decision stop` does not go on: it ends the goal for good,
/// as `liza abort` does. Where nothing was paused nothing happens.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza resume
  liza resume --decision replan --note \"auth first\"")]
pub(crate) struct Args {
    /// What you decided at the checkpoint.
    #[arg(long, value_name = "DECISION", value_parser = clap::builder::PossibleValuesParser::new(DECISIONS))]
    decision: Option<String>,
    /// In your words.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    note: Option<Text>,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let command = Resume { decision: args.decision, note: Text::read_some(args.note, context)? };
    let reply = context.run_in(&project, command, told)?;
    // What a person has given up during the look may have been the last of it.
    Ok(and_complete_sprint(&project, context, reply))
}

fn told(reply: &Fields) -> String {
    match (reply.get("changed"), word(reply, "sprint").as_str()) {
        (Some(Value::Bool(false)), "IN_PROGRESS") => "nothing was paused: work goes on".to_owned(),
        (_, "IN_PROGRESS") => "work goes on; liza status shows where it stands".to_owned(),
        (_, "ABORTED") => {
            "the goal is ABORTED, nothing goes on; liza goal new \"GOAL\" starts over".to_owned()
        }
        (_, status) => format!("the sprint is {status}; liza sprint new or liza goal new \"GOAL\" goes on"),
    }
}

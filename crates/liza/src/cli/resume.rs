//! `liza resume`: everybody goes on after PAUSE or CHECKPOINT.

use liza_core::Command;
use liza_core::sprint::DECISIONS;

use super::context::Context;
use super::error::CommandError;
use super::input::Text;
use super::output::{Reply, word};

/// Go on after a pause or a checkpoint.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza resume
  liza resume --decision replan --note \"auth first\"")]
pub(super) struct Args {
    /// What you decided at the checkpoint.
    #[arg(long, value_name = "DECISION", value_parser = clap::builder::PossibleValuesParser::new(DECISIONS))]
    decision: Option<String>,
    /// In your words.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    note: Option<Text>,
}

/// Runs it.
pub(super) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let command = Command::Resume { decision: args.decision, note: Text::read_some(args.note)? };
    context.submit_and_tell(command, |reply| match word(reply, "sprint").as_str() {
        "IN_PROGRESS" => "work goes on; liza status shows where it stands".to_owned(),
        "ABORTED" => "the goal is ABORTED, nothing goes on; liza goal new \"GOAL\" starts over".to_owned(),
        status => format!("the sprint is {status}; liza sprint new or liza goal new \"GOAL\" goes on"),
    })
}

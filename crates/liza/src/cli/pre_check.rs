//! `liza pre-check`: the coder says what it is about to do.

use liza_core::model::TaskId;
use liza_core::protocol::{Command, Intent, PreCheck};

use super::context::Context;
use super::error::CommandError;
use super::input::Text;
use super::output::Reply;

/// Say what you are about to do, before you do it.
///
/// The code reviewer compares it with the result.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza pre-check retry-orders --intent \"wrap create_order in the retry helper\" \\
    --validation \"cargo test retry\" --assumption \"5xx is safe to repeat\" --file src/orders.rs")]
pub(super) struct Args {
    /// Which task.
    task: TaskId,
    /// What you are going to do.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    intent: Text,
    /// The command that will show that it works.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    validation: Text,
    /// What you take for granted; may be repeated.
    #[arg(long = "assumption", value_name = "TEXT", allow_hyphen_values = true)]
    assumptions: Vec<Text>,
    /// What could go wrong; may be repeated.
    #[arg(long = "risk", value_name = "TEXT", allow_hyphen_values = true)]
    risks: Vec<Text>,
    /// What you will touch; may be repeated.
    #[arg(long = "file", value_name = "PATH", allow_hyphen_values = true)]
    files: Vec<Text>,
}

/// Runs it.
pub(super) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let intent = Intent {
        intent: args.intent.read()?,
        validation: args.validation.read()?,
        assumptions: Text::read_all(args.assumptions)?,
        risks: Text::read_all(args.risks)?,
        files: Text::read_all(args.files)?,
    };
    let name = args.task.clone();
    let command = Command::from(PreCheck { task: args.task, intent });
    context.submit_and_tell(command, |_| {
        format!("noted in the history of {name}; go on, then: liza submit-for-review {name} COMMIT")
    })
}

//! `liza pre-check`: the coder records its intent.

use liza_core::model::TaskId;
use liza_core::protocol::{Intent, PreCheck};

use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Record what you are about to do, before you do it.
///
/// The code reviewer compares it with the result.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza pre-check retry-orders --intent \"wrap create_order in the retry helper\" \\
    --validation \"cargo test retry\" --assumption \"5xx is safe to repeat\" --file src/orders.rs")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// What you are going to do.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    intent: Text,
    /// The command that will show that it works.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    validation: Text,
    /// What you assume; repeatable.
    #[arg(long = "assumption", value_name = "TEXT", allow_hyphen_values = true)]
    assumptions: Vec<Text>,
    /// What could go wrong; repeatable.
    #[arg(long = "risk", value_name = "TEXT", allow_hyphen_values = true)]
    risks: Vec<Text>,
    /// A file that you will change; repeatable.
    #[arg(long = "file", value_name = "PATH", allow_hyphen_values = true)]
    files: Vec<Text>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let intent = Intent {
        intent: args.intent.read(context)?,
        validation: args.validation.read(context)?,
        assumptions: Text::read_all(args.assumptions, context)?,
        risks: Text::read_all(args.risks, context)?,
        files: Text::read_all(args.files, context)?,
    };
    let name = args.task.clone();
    let command = PreCheck { task: args.task, intent };
    context.run(command, |_| {
        format!("added to the history of {name}; when you are done: liza submit-for-review {name} COMMIT")
    })
}

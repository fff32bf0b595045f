//! `liza web`: the team in a browser, with the actions of the screen.

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;
#[cfg(feature = "web")]
use crate::cli::web_server::serve;

/// Watch and steer the team in a browser.
///
/// Prints an address of this machine that works once, within a minute, in one browser; Enter prints another one. Shows
/// the board live, tasks with their history, changes and sessions, agents, alerts, the log and charts, and has the actions
/// of liza tui. The team runs elsewhere: ending this with Ctrl-C does not stop it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza web
  liza web --port 4040
  ssh -L 4040:127.0.0.1:4040 HOST       (then open the address here)")]
pub(crate) struct Args {
    /// The port; any free one if it is 0.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("web")?;
    serve(args.port, context)
}

#[cfg(not(feature = "web"))]
fn serve(_: u16, _: &Context) -> Result<Reply, CommandError> {
    Err(CommandError::missing_feature("the pages in a browser"))
}

//! `liza tui`: the team on one live screen, with keys for a person's decisions.

use crate::cli::context::Context;
use crate::cli::live_screen;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;
use crate::cli::ui::theme_name::ThemeName;

/// Watch and steer the team on one live screen.
///
/// Shows what needs you, the tasks by state, the agents and the log, and opens a task with its history, diff, prompt and
/// output. Keys pause, resume, answer, approve and more; each shows its command. The team runs elsewhere: leaving the
/// screen does not stop it. Press ? for the keys.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza tui
  liza tui --theme light
  NO_COLOR=1 liza tui")]
pub(crate) struct Args {
    /// The colours: auto, dark, light or plain.
    #[arg(long, value_name = "NAME", value_enum, default_value_t, hide_possible_values = true)]
    theme: ThemeName,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("tui")?;
    let project = context.project()?;
    live_screen::show_team(context, &project, args.theme)
}

//! `liza completions`: the completion script for a shell.

use clap_complete::Shell;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Print the completion script for your shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza completions bash > ~/.local/share/bash-completion/completions/liza
  liza completions zsh > \"${fpath[1]}/_liza\"
  liza completions fish > ~/.config/fish/completions/liza.fish")]
pub(crate) struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let mut cli = (context.services.command_line)();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "liza", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    Ok(Reply::new(script.clone(), json!({"shell": args.shell.to_string(), "script": script})))
}

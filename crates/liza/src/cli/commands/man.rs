//! `liza man`: the manual, generated from the help.

use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Print the manual page, or write one page per command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza man | man -l -
  liza man status | man -l -
  liza man --dir ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Print the page of this command instead of the whole program.
    command: Option<String>,
    /// Write all pages into this folder.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    dir: Option<PathBuf>,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let mut cli = (context.services.command_line)();
    cli.build();
    if let Some(folder) = &args.dir {
        return write_all(&cli, folder);
    }
    let page = match &args.command {
        None => page(cli)?,
        Some(name) => {
            let found = cli.find_subcommand(name).cloned();
            let unknown = || CommandError::refused("usage", format!("unknown command {name}"));
            page(found.ok_or_else(|| unknown().hint("liza --help lists the commands"))?)?
        }
    };
    Ok(Reply::new(page.clone(), json!({"page": page})))
}

fn page(command: Command) -> Result<String, CommandError> {
    let mut page = Vec::new();
    let rendered = Man::new(command).render(&mut page);
    rendered.map_err(|error| CommandError::refused("io", format!("cannot write the page: {error}")))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn write_all(cli: &Command, folder: &Path) -> Result<Reply, CommandError> {
    let failed = |error: std::io::Error| {
        CommandError::refused("io", format!("cannot write to {}: {error}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(cli.clone(), folder).map_err(failed)?;
    let folder = folder.display().to_string();
    Ok(Reply::new(format!("manual pages written to {folder}"), json!({"folder": folder})))
}

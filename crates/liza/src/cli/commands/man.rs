//! `liza man`: the manual, generated from the help.

use std::path::{Path, PathBuf};

use clap::{Arg, Command};
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
    let rendered = Man::new(command.clone()).render(&mut page);
    rendered.map_err(|error| CommandError::refused("io", format!("cannot write the page: {error}")))?;
    Ok(with_values(&String::from_utf8_lossy(&page), &command))
}

/// The page with the names of values in its synopsis, which the generator leaves out.
fn with_values(page: &str, command: &Command) -> String {
    let Some((before, rest)) = page.split_once(".SH SYNOPSIS\n") else { return page.to_owned() };
    let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let options = command.get_arguments().filter(|option| option.get_action().takes_values());
    let synopsis = options.fold(line.to_owned(), |line, option| with_value(&line, option));
    format!("{before}.SH SYNOPSIS\n{synopsis}\n{after}")
}

fn with_value(line: &str, option: &Arg) -> String {
    let values = option.get_value_names().unwrap_or_default().iter();
    let values = values.map(|value| format!(" \\fI{value}\\fR")).collect::<String>();
    let escaped = |name: &str| name.replace('-', "\\-");
    match (option.get_long(), option.get_short()) {
        (Some(long), _) => {
            let name = format!("\\fB\\-\\-{}\\fR", escaped(long));
            line.replacen(&name, &format!("{name}{values}"), 1)
        }
        (None, Some(short)) => {
            let name = format!("\\fB\\-{short}");
            line.replacen(&format!("{name} \\fR"), &format!("{name}\\fR{values}"), 1)
        }
        (None, None) => line.to_owned(),
    }
}

fn write_all(cli: &Command, folder: &Path) -> Result<Reply, CommandError> {
    let failed = |error: std::io::Error| {
        CommandError::refused("io", format!("cannot write to {}: {error}", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut cli = cli.clone().disable_help_subcommand(true);
    cli.build();
    write_pages(&cli, folder, &failed)?;
    let folder = folder.display().to_string();
    Ok(Reply::new(format!("manual pages written to {folder}"), json!({"folder": folder})))
}

/// The page of a command and those of its own commands.
fn write_pages(
    command: &Command,
    folder: &Path,
    failed: &impl Fn(std::io::Error) -> CommandError,
) -> Result<(), CommandError> {
    for own in command.get_subcommands().filter(|own| !own.is_hide_set()) {
        write_pages(own, folder, failed)?;
    }
    let name = Man::new(command.clone()).get_filename();
    std::fs::write(folder.join(name), page(command.clone())?).map_err(failed)
}

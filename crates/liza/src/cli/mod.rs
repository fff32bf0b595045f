//! The command line: one file per command, one place for errors, one for exit codes.
//!
//! A command gathers facts, submits, and tells what came of it; the rules are in `liza-core`.

mod add_task;
mod context;
mod error;
mod exit_code;
mod note;
mod output;
mod validate;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use context::{Context, Global};
use error::CommandError;
use exit_code::Exit;
use output::{Reply, Screen};

/// Peer-supervised multi-agent coding that you can trust with your repository.
#[derive(Debug, Parser)]
#[command(name = "liza", version, disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

/// Every command; its help is the doc comment in its own file.
#[derive(Debug, Subcommand)]
enum Verb {
    AddTask(add_task::Args),
    Note(note::Args),
    Validate(validate::Args),
}

/// Parses, runs, prints; returns the exit code.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.collect();
    ExitCode::from(run(arguments).code())
}

fn run(arguments: Vec<OsString>) -> Exit {
    let json = arguments.iter().any(|argument| argument == "--json");
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, json),
    };
    let screen = Screen { json: cli.global.json, quiet: cli.global.quiet, color: cli.global.color };
    match Context::new(&cli.global).and_then(|context| dispatch(cli.verb, &context)) {
        Ok(reply) => {
            screen.reply(&reply);
            Exit::Success
        }
        Err(error) => {
            screen.error(&error);
            error.exit
        }
    }
}

fn dispatch(verb: Verb, context: &Context) -> Result<Reply, CommandError> {
    match verb {
        Verb::AddTask(args) => add_task::run(args, context),
        Verb::Note(args) => note::run(args, context),
        Verb::Validate(args) => validate::run(&args, context),
    }
}

/// Help and version are a success; everything else that the parser says is a usage error.
fn usage(error: &clap::Error, json: bool) -> Exit {
    if !error.use_stderr() {
        // A closed pipe is no error: `liza --help | head`.
        let _ = error.print();
        return Exit::Success;
    }
    if json {
        let message = error.to_string();
        let message = message.trim().trim_start_matches("error: ");
        Screen { json, ..Screen::default() }.error(&CommandError::refused("usage", message));
    } else {
        let _ = error.print();
    }
    Exit::Refused
}

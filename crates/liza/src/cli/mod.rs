//! The command line: parses, runs one command with everything it needs, prints its answer.

mod agent_programs;
mod commands;
mod confirm;
mod context;
mod contract_links;
mod editing_program;
mod end_text;
mod input;
mod interrupted_moves;
#[cfg(feature = "screen")]
mod live_screen;
#[cfg(not(feature = "screen"))]
#[path = "no_screen.rs"]
mod live_screen;
mod masked_addresses;
mod missing_feature;
#[cfg(feature = "trial")]
mod model_trial;
mod own_commands;
mod own_files;
mod pager;
mod pull_request;
mod rehearsal_check;
#[cfg(feature = "screen")]
mod screen_source;
mod session;
mod setting_check;
mod shared_settings;
mod spec_path;
mod starting_files;
mod task_name;
mod team_notes;
mod team_observers;
mod test_trial;
mod ui;
mod verb;
#[cfg(feature = "web")]
mod web_seat;
#[cfg(feature = "web")]
mod web_server;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::CommandFactory as _;
use clap::error::ErrorKind;
use context::{Caller, Context, Environment, Services, no_directory};
use liza_sandbox::sys::inherited::keep_descriptors;
use liza_team::channel::SessionCommands;
use liza_team::project::identity::sessions_around;
use ui::console::{Console, ProcessConsole, Stream};
use ui::error::CommandError;
use ui::exit_code::Exit;
use ui::layout::clean;
use ui::output::{Color, Screen};
use ui::suggestions::best_first;
use verb::{Cli, VerbName, dispatch, parse};

/// Runs the command line of this process; returns the exit code.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    keep_descriptors();
    let arguments: Vec<OsString> = arguments.collect();
    if commands::confine::is_stage(&arguments) {
        return ExitCode::from(liza_sandbox::confine::serve());
    }
    if commands::confine::is_keeper(&arguments) {
        return ExitCode::from(liza_sandbox::confine::serve_keeper());
    }
    if let Some((process, port)) = liza_sandbox::confine::forwarded(&arguments) {
        return ExitCode::from(liza_sandbox::confine::serve_forward(process, port));
    }
    if let Some((number, file)) = liza_sandbox::confine::kept_filter(&arguments) {
        return ExitCode::from(liza_sandbox::confine::serve_filter(number, file));
    }
    let environment = Environment::of_process();
    let sessions = sessions_around();
    let console: Arc<dyn Console> = Arc::new(ProcessConsole);
    let directory = std::env::current_dir();
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("liza"));
    let exit = match directory {
        Ok(directory) => {
            run(arguments, Caller { sessions, directory, environment, console, program, on_behalf: None })
        }
        Err(error) => {
            let screen = Screen::new(console, Color::Auto, None);
            let error = no_directory(&PathBuf::from("."), &error);
            screen.error(&error);
            error.exit
        }
    };
    ExitCode::from(exit.code())
}

/// Executes the commands of agent sessions, for a supervisor.
pub fn session_commands() -> Arc<dyn SessionCommands> {
    Arc::new(session::CommandRunner(run))
}

/// Parses, runs, prints.
fn run(arguments: Vec<OsString>, caller: Caller) -> Exit {
    let arguments = commands::lock::options_first(ui::old_names::translate(arguments));
    let json = arguments.iter().any(|argument| argument == "--json");
    let columns = caller.environment.text("COLUMNS").and_then(|text| text.trim().parse().ok());
    let cli = match parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&best_first(error), &arguments, json, caller.console),
    };
    let screen = Screen::new(Arc::clone(&caller.console), cli.global.color, columns);
    // An agent compares times with those in files.
    let utc = cli.global.utc || caller.on_behalf.is_some();
    let screen = Screen { json: cli.global.json, quiet: cli.global.quiet, utc, ..screen };
    if let Some(exit) = session::forward(&cli, &arguments, &caller, &screen) {
        return exit;
    }
    let (confined, in_shell) = (session::is_confined(&caller), session::is_in_shell(&caller));
    let services = Services { command_line: Cli::command, session_commands, run };
    let (session, verb) = (caller.on_behalf.clone(), VerbName::from(&cli.verb));
    let allowed = match &session {
        Some(session) => session::check(session.actor, &cli.verb),
        None => Ok(()),
    };
    let context = allowed.and_then(|()| Context::new(caller, &cli.global, screen.clone(), services));
    let done = context.and_then(|context| Ok((dispatch(cli.verb, &context)?, context)));
    if let Some(session) = session.filter(|_| verb.is_result()) {
        session.note_result(verb.into_str(), done.as_ref().err());
    }
    match done {
        Ok((reply, context)) => {
            screen.reply(&reply);
            context.remind();
            reply.exit
        }
        Err(error) => {
            let error = if confined { session::explain_denial(error) } else { error };
            let error = if in_shell { session::explain_shell(error) } else { error };
            screen.error(&error);
            error.exit
        }
    }
}

/// Help and version are a success; everything else that the parser reports is a usage error.
fn usage(error: &clap::Error, arguments: &[OsString], json: bool, console: Arc<dyn Console>) -> Exit {
    let stream = if error.use_stderr() { Stream::Error } else { Stream::Output };
    let exit = if error.use_stderr() { Exit::Refused } else { Exit::Success };
    if json && exit == Exit::Refused {
        let message = error.to_string();
        let message = message.trim().trim_start_matches("error: ");
        let screen = Screen { json, ..Screen::new(console, Color::Never, None) };
        screen.error(&CommandError::refused("usage", message));
        return exit;
    }
    let text = error.render();
    // An error quotes what was typed, which may be anything.
    let is_help = exit == Exit::Success;
    let text =
        if is_help && console.has_color(stream) { text.ansi().to_string() } else { clean(&text.to_string()) };
    let lacks = error.kind() == ErrorKind::MissingRequiredArgument;
    let example = if lacks { example_of(arguments).unwrap_or_default() } else { String::new() };
    // A closed pipe is not an error: `liza --help | head`.
    let _ = console.write(stream, &format!("{text}{example}"));
    exit
}

/// The first example in the help of the command that was typed.
fn example_of(arguments: &[OsString]) -> Option<String> {
    let command = Cli::command();
    let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str());
    let verb = words.find_map(|word| command.find_subcommand(word))?;
    let help = verb.get_after_help()?.to_string();
    let example = help.lines().map(str::trim).find(|line| line.starts_with("liza "))?;
    Some(format!("  example: {example}\n"))
}

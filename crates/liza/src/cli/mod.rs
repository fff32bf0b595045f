//! The command line: parses, runs one command with everything it needs, prints its answer.

mod commands;
mod context;
mod contract_links;
mod spec_path;
mod ui;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::project::{AGENT_GENERATION, AGENT_ID, actor_from};

use context::{Caller, Context, Environment, GlobalOptions, no_directory};
use ui::console::{Console, ProcessConsole, Stream};
use ui::error::CommandError;
use ui::exit_code::Exit;
use ui::help::grouped;
use ui::layout::clean;
use ui::output::{Color, Reply, Screen};

/// Peer-supervised multi-agent coding that you can trust with your repository.
#[derive(Debug, Parser)]
#[command(name = "liza", version, disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    global: GlobalOptions,
    #[command(subcommand)]
    verb: Verb,
}

/// Declares the list of commands; the parser and the dispatch follow from it.
macro_rules! verbs {
    ($($(#[$attribute:meta])* $name:ident = $module:ident,)+) => {
        /// Every command; its help is the doc comment in its own file.
        #[derive(Debug, Subcommand)]
        enum Verb {
            $($(#[$attribute])* $name(commands::$module::Args),)+
        }

        fn dispatch(verb: Verb, context: &Context) -> Result<Reply, CommandError> {
            match verb {
                $(Verb::$name(args) => commands::$module::run(args, context),)+
            }
        }
    };
}

verbs! {
    AbandonTask = abandon_task,
    Abort = abort,
    AcceptIntegration = accept_integration,
    AddTask = add_task,
    Agent = agent,
    Align = align,
    Analyze = analyze,
    Anomaly = anomaly,
    Answer = answer,
    Archive = archive,
    Checkpoint = checkpoint,
    ClaimReview = claim_review,
    ClaimTask = claim_task,
    ClearStaleReviewClaims = clear_stale_review_claims,
    Completions = completions,
    ConvertDiscovery = convert_discovery,
    Demo = demo,
    Deregister = deregister,
    Discover = discover,
    Dismiss = dismiss,
    Doctor = doctor,
    Edit = edit,
    EditTask = edit_task,
    Finalize = finalize,
    Get = get,
    Goal = goal,
    Graph = graph,
    Handoff = handoff,
    Heartbeat = heartbeat,
    Init = init,
    Lock = lock,
    Log = log,
    Man = man,
    MarkBlocked = mark_blocked,
    Note = note,
    Pause = pause,
    PreCheck = pre_check,
    Recover = recover,
    Register = register,
    Rehearsal = rehearsal,
    ReleaseClaim = release_claim,
    Resolve = resolve,
    Resume = resume,
    Retro = retro,
    Run = run,
    #[command(hide = true)]
    Session = session,
    Setup = setup,
    Show = show,
    SpecChange = spec_change,
    Sprint = sprint,
    Status = status,
    SubmitForReview = submit_for_review,
    SubmitVerdict = submit_verdict,
    SupersedeTask = supersede_task,
    Sync = sync,
    UnblockTask = unblock_task,
    UpdateSprintMetrics = update_sprint_metrics,
    Validate = validate,
    Watch = watch,
    WtCreate = wt_create,
    WtDelete = wt_delete,
    WtMerge = wt_merge,
}

/// Runs the command line of this process; returns the exit code.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let environment = Environment::of_process();
    let (id, generation) = (environment.text(AGENT_ID), environment.text(AGENT_GENERATION));
    let actor = actor_from(id, generation);
    let console: Arc<dyn Console> = Arc::new(ProcessConsole);
    let directory = std::env::current_dir();
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("liza"));
    let exit = match directory {
        Ok(directory) => run(arguments.collect(), Caller { actor, directory, environment, console, program }),
        Err(error) => {
            let screen = Screen::new(console, Color::Auto, None);
            let error = no_directory(&PathBuf::from("."), &error);
            screen.error(&error);
            error.exit
        }
    };
    ExitCode::from(exit.code())
}

/// Parses, runs, prints.
fn run(arguments: Vec<OsString>, caller: Caller) -> Exit {
    let arguments = commands::lock::options_first(ui::old_names::translate(arguments));
    let json = arguments.iter().any(|argument| argument == "--json");
    let columns = caller.environment.text("COLUMNS").and_then(|text| text.trim().parse().ok());
    let parsed = grouped(Cli::command()).try_get_matches_from(arguments);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, json, caller.console),
    };
    let screen = Screen::new(Arc::clone(&caller.console), cli.global.color, columns);
    let screen = Screen { json: cli.global.json, quiet: cli.global.quiet, ..screen };
    let context = Context::new(caller, &cli.global, screen.clone(), Cli::command);
    match context.and_then(|context| Ok((dispatch(cli.verb, &context)?, context))) {
        Ok((reply, context)) => {
            screen.reply(&reply);
            context.remind();
            reply.exit
        }
        Err(error) => {
            screen.error(&error);
            error.exit
        }
    }
}

/// Help and version are a success; everything else that the parser reports is a usage error.
fn usage(error: &clap::Error, json: bool, console: Arc<dyn Console>) -> Exit {
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
    // A closed pipe is not an error: `liza --help | head`.
    let _ = console.write(stream, &text);
    exit
}

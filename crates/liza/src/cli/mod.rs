//! The command line: one file per command, one place for errors, one for exit codes.
//!
//! A command gathers facts, submits, and tells what came of it; the rules are in `liza-core`.

mod abandon_task;
mod abort;
mod add_task;
mod agent;
mod align;
mod analyze;
mod anomaly;
mod archive;
mod checkpoint;
mod claim_review;
mod claim_task;
mod clear_stale_review_claims;
mod completions;
mod context;
mod convert_discovery;
mod demo;
mod deregister;
mod discover;
mod doctor;
mod edit;
mod edit_task;
mod error;
mod exit_code;
mod finalize;
mod get;
mod goal;
mod graph;
mod groups;
mod handoff;
mod heartbeat;
mod init;
mod input;
mod layout;
mod links;
mod lock;
mod log;
mod man;
mod mark_blocked;
mod note;
mod old_names;
mod output;
mod pause;
mod pre_check;
mod recover;
mod register;
mod rehearsal;
mod release_claim;
mod resolve;
mod resume;
mod retro;
mod run;
mod session;
mod setup;
mod show;
mod spec;
mod spec_change;
mod sprint;
mod status;
mod submit_for_review;
mod submit_verdict;
mod supersede_task;
mod teller;
mod unblock_task;
mod update_sprint_metrics;
mod validate;
mod watch;
mod wt_create;
mod wt_delete;
mod wt_merge;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

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
    AbandonTask(abandon_task::Args),
    Abort(abort::Args),
    AddTask(add_task::Args),
    Agent(agent::Args),
    Align(align::Args),
    Analyze(analyze::Args),
    Anomaly(anomaly::Args),
    Archive(archive::Args),
    Checkpoint(checkpoint::Args),
    ClaimReview(claim_review::Args),
    ClaimTask(claim_task::Args),
    ClearStaleReviewClaims(clear_stale_review_claims::Args),
    Completions(completions::Args),
    ConvertDiscovery(convert_discovery::Args),
    Demo(demo::Args),
    Deregister(deregister::Args),
    Discover(discover::Args),
    Edit(edit::Args),
    Doctor(doctor::Args),
    EditTask(edit_task::Args),
    Finalize(finalize::Args),
    Get(get::Args),
    Goal(goal::Args),
    Graph(graph::Args),
    Handoff(handoff::Args),
    Heartbeat(heartbeat::Args),
    Init(init::Args),
    Lock(lock::Args),
    Log(log::Args),
    Man(man::Args),
    MarkBlocked(mark_blocked::Args),
    Note(note::Args),
    Pause(pause::Args),
    PreCheck(pre_check::Args),
    Recover(recover::Args),
    Register(register::Args),
    Rehearsal(rehearsal::Args),
    ReleaseClaim(release_claim::Args),
    Resolve(resolve::Args),
    Resume(resume::Args),
    Retro(retro::Args),
    Run(run::Args),
    #[command(hide = true)]
    Session(session::Args),
    Setup(setup::Args),
    Show(show::Args),
    SpecChange(spec_change::Args),
    Sprint(sprint::Args),
    Status(status::Args),
    SubmitForReview(submit_for_review::Args),
    SubmitVerdict(submit_verdict::Args),
    SupersedeTask(supersede_task::Args),
    UnblockTask(unblock_task::Args),
    UpdateSprintMetrics(update_sprint_metrics::Args),
    Validate(validate::Args),
    Watch(watch::Args),
    WtCreate(wt_create::Args),
    WtDelete(wt_delete::Args),
    WtMerge(wt_merge::Args),
}

/// Parses, runs, prints; returns the exit code.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments = lock::options_first(old_names::translate(arguments.collect()));
    ExitCode::from(run(arguments).code())
}

fn run(arguments: Vec<OsString>) -> Exit {
    let json = arguments.iter().any(|argument| argument == "--json");
    let command = groups::grouped(Cli::command());
    let parsed = command.try_get_matches_from(arguments).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage(&error, json),
    };
    let screen = Screen { json: cli.global.json, quiet: cli.global.quiet, color: cli.global.color };
    let replied = Context::new(&cli.global).and_then(|context| Ok((dispatch(cli.verb, &context)?, context)));
    match replied {
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

fn dispatch(verb: Verb, context: &Context) -> Result<Reply, CommandError> {
    match verb {
        Verb::AbandonTask(args) => abandon_task::run(args, context),
        Verb::Abort(_) => abort::run(context),
        Verb::AddTask(args) => add_task::run(args, context),
        Verb::Agent(args) => agent::run(args, context),
        Verb::Align(args) => align::run(args, context),
        Verb::Analyze(args) => analyze::run(&args, context),
        Verb::Anomaly(args) => anomaly::run(args, context),
        Verb::Archive(args) => archive::run(&args, context),
        Verb::Checkpoint(args) => checkpoint::run(&args, context),
        Verb::ClaimReview(args) => claim_review::run(&args, context),
        Verb::ClaimTask(args) => claim_task::run(&args, context),
        Verb::ClearStaleReviewClaims(_) => clear_stale_review_claims::run(context),
        Verb::Completions(args) => completions::run(&args, Cli::command()),
        Verb::ConvertDiscovery(args) => convert_discovery::run(args, context),
        Verb::Demo(args) => demo::run(args, context),
        Verb::Deregister(args) => deregister::run(&args, context),
        Verb::Discover(args) => discover::run(args, context),
        Verb::Edit(args) => edit::run(&args, context),
        Verb::Doctor(args) => doctor::run(&args, context),
        Verb::EditTask(args) => edit_task::run(args, context),
        Verb::Finalize(args) => finalize::run(args, context),
        Verb::Get(args) => get::run(&args, context),
        Verb::Goal(args) => goal::run(args, context),
        Verb::Graph(args) => graph::run(&args, context),
        Verb::Handoff(args) => handoff::run(args, context),
        Verb::Heartbeat(args) => heartbeat::run(&args, context),
        Verb::Init(args) => init::run(args, context),
        Verb::Lock(args) => lock::run(args, context),
        Verb::Log(args) => log::run(&args, context),
        Verb::Man(args) => man::run(&args, Cli::command()),
        Verb::MarkBlocked(args) => mark_blocked::run(args, context),
        Verb::Note(args) => note::run(args, context),
        Verb::Pause(_) => pause::run(context),
        Verb::PreCheck(args) => pre_check::run(args, context),
        Verb::Recover(_) => recover::run(context),
        Verb::Register(args) => register::run(args, context),
        Verb::Rehearsal(args) => rehearsal::run(&args, context),
        Verb::ReleaseClaim(args) => release_claim::run(args, context),
        Verb::Resolve(args) => resolve::run(args, context),
        Verb::Resume(args) => resume::run(args, context),
        Verb::Retro(args) => retro::run(&args, context),
        Verb::Run(args) => run::run(args, context),
        Verb::Session(_) => session::run(),
        Verb::Setup(args) => setup::run(&args, context),
        Verb::Show(args) => show::run(&args, context),
        Verb::SpecChange(args) => spec_change::run(args, context),
        Verb::Sprint(args) => sprint::run(args, context),
        Verb::Status(args) => status::run(&args, context),
        Verb::SubmitForReview(args) => submit_for_review::run(&args, context),
        Verb::SubmitVerdict(args) => submit_verdict::run(args, context),
        Verb::SupersedeTask(args) => supersede_task::run(args, context),
        Verb::UnblockTask(args) => unblock_task::run(args, context),
        Verb::UpdateSprintMetrics(_) => update_sprint_metrics::run(context),
        Verb::Validate(args) => validate::run(&args, context),
        Verb::Watch(args) => watch::run(&args, context),
        Verb::WtCreate(args) => wt_create::run(&args, context),
        Verb::WtDelete(args) => wt_delete::run(args, context),
        Verb::WtMerge(args) => wt_merge::run(&args, context),
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

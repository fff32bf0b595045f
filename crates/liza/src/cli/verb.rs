//! The list of commands, and the parser that follows from it.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Args as _, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use strum::{EnumDiscriminants, EnumString, IntoStaticStr};

use super::commands;
use super::context::{Context, GlobalOptions};
use super::ui::error::CommandError;
use super::ui::help::{Listed, grouped};
use super::ui::output::Reply;

/// Peer-supervised multi-agent coding that you can trust with your repository.
#[derive(Debug, Parser)]
#[command(name = "liza", version, disable_help_subcommand = true)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: GlobalOptions,
    #[command(subcommand)]
    pub(super) verb: Verb,
}

/// Declares the list of commands; the parser and the dispatch follow from it.
macro_rules! verbs {
    ($($(#[$attribute:meta])* $name:ident = $module:ident,)+) => {
        /// Every command; its help is the doc comment in its own file.
        #[derive(Debug, Subcommand, EnumDiscriminants)]
        #[strum_discriminants(name(VerbName), vis(pub(super)), derive(EnumString, IntoStaticStr), strum(serialize_all = "kebab-case"))]
        pub(super) enum Verb {
            $($(#[$attribute])* $name(commands::$module::Args),)+
        }

        /// The parser of one command.
        fn verb_parser(name: VerbName) -> clap::Command {
            let parser = clap::Command::new(<&'static str>::from(name));
            match name {
                $(VerbName::$name => commands::$module::Args::augment_args(parser),)+
            }
        }

        /// Runs a command.
        pub(super) fn dispatch(verb: Verb, context: &Context) -> Result<Reply, CommandError> {
            match verb {
                $(Verb::$name(args) => commands::$module::run(args, context),)+
            }
        }
    };
}

verbs! {
    AbandonTask = abandon_task,
    Abort = abort,
    AcceptGate = accept_gate,
    AcceptIntegration = accept_integration,
    Add = add,
    AddTask = add_task,
    Agent = agent,
    Align = align,
    Analyze = analyze,
    Anomaly = anomaly,
    Answer = answer,
    Archive = archive,
    Attach = attach,
    Check = check,
    Checkpoint = checkpoint,
    ClaimReview = claim_review,
    ClaimTask = claim_task,
    ClearStaleReviewClaims = clear_stale_review_claims,
    Completions = completions,
    Config = config,
    #[command(hide = true)]
    Confine = confine,
    ConvertDiscovery = convert_discovery,
    Demo = demo,
    Deregister = deregister,
    Diff = diff,
    Discover = discover,
    Dismiss = dismiss,
    Doctor = doctor,
    Edit = edit,
    EditTask = edit_task,
    Export = export,
    Finalize = finalize,
    Finish = finish,
    Get = get,
    Goal = goal,
    Graph = graph,
    Handoff = handoff,
    Heartbeat = heartbeat,
    Import = import,
    Init = init,
    Join = join,
    Lock = lock,
    Log = log,
    Man = man,
    MarkBlocked = mark_blocked,
    Note = note,
    Pause = pause,
    Plan = plan,
    PreCheck = pre_check,
    Recover = recover,
    Register = register,
    Rehearsal = rehearsal,
    ReleaseClaim = release_claim,
    Remove = remove,
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
    Stop = stop,
    SubmitForReview = submit_for_review,
    SubmitVerdict = submit_verdict,
    SupersedeTask = supersede_task,
    Sync = sync,
    Tail = tail,
    Tui = tui,
    UnblockTask = unblock_task,
    UpdateSprintMetrics = update_sprint_metrics,
    Validate = validate,
    Watch = watch,
    Web = web,
    WtCreate = wt_create,
    WtDelete = wt_delete,
    WtMerge = wt_merge,
}

impl Verb {
    /// The command of `lock modify`.
    pub(super) fn lock_modify(&self) -> Option<&[String]> {
        if let Verb::Lock(args) = self { args.modify_command() } else { None }
    }
}

/// Parses with the one command that is named, in a quarter of the time that building all of them takes. Whatever
/// that parser does not accept goes to the whole one, which knows every name for its help and its messages.
pub(super) fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    if let Some(request) = help_request(arguments) {
        return Err(request);
    }
    let words = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
    let named = words.filter(|word| !word.starts_with('-')).find_map(|word| VerbName::try_from(word).ok());
    let matches = match small_parser(named).try_get_matches_from(arguments) {
        Err(error) if error.kind() != ErrorKind::DisplayVersion => {
            grouped(Cli::command(), Listed::ForPeople).try_get_matches_from(arguments)?
        }
        accepted => accepted?,
    };
    Cli::from_arg_matches(&matches)
}

/// `liza help`, `liza help --all` and `liza help COMMAND`, as what the options `--help` would answer.
fn help_request(arguments: &[OsString]) -> Option<clap::Error> {
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|argument| argument.to_str()).collect();
    let (&"help", rest) = words.split_first()? else { return None };
    let all = rest.contains(&"--all");
    let listed = if all { Listed::All } else { Listed::ForPeople };
    let verbs = rest.iter().filter(|word| !word.starts_with('-'));
    let line = std::iter::once("liza").chain(verbs.copied()).chain(["--help"]);
    grouped(Cli::command(), listed).try_get_matches_from(line).err()
}

/// A parser that accepts only what the whole one accepts, in the same way.
fn small_parser(verb: Option<VerbName>) -> clap::Command {
    let parser = clap::Command::new("liza").version(env!("CARGO_PKG_VERSION"));
    let parser = parser.subcommand_required(true).disable_help_subcommand(true);
    GlobalOptions::augment_args(parser).subcommands(verb.map(verb_parser))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> Vec<OsString> {
        std::iter::once("liza").chain(words.iter().copied()).map(OsString::from).collect()
    }

    fn whole(arguments: &[OsString]) -> Result<Cli, clap::Error> {
        let whole = grouped(Cli::command(), Listed::ForPeople);
        whole.try_get_matches_from(arguments).and_then(|m| Cli::from_arg_matches(&m))
    }

    #[test]
    fn the_parser_of_one_command_has_the_arguments_that_the_whole_parser_has() {
        let mut all = Cli::command();
        all.build();
        for verb in all.get_subcommands() {
            let name = VerbName::try_from(verb.get_name()).unwrap();
            let mut small = small_parser(Some(name));
            small.build();
            let small = small.find_subcommand(verb.get_name()).unwrap();
            let arguments = |verb: &clap::Command| format!("{:?}", verb.get_arguments().collect::<Vec<_>>());
            assert!(arguments(small) == arguments(verb), "{}", verb.get_name());
            let nested = |verb: &clap::Command| format!("{:?}", verb.get_subcommands().collect::<Vec<_>>());
            assert!(nested(small) == nested(verb), "{}", verb.get_name());
        }
    }

    #[test]
    fn every_command_line_means_what_it_means_to_the_whole_parser() {
        let lines: &[&[&str]] = &[
            &["heartbeat", "coder-1"],
            &["--json", "note", "status"],
            &["-C", "status", "get", ".goal.id", "-q"],
            &["--color", "never", "lock", "modify", "--", "liza", "status"],
            &["--version"],
            &["status", "--version"],
            &["get", "--help"],
            &["heartbaet", "coder-1"],
            &["heartbeat", "--nonsense"],
            &["note"],
            &["note", "help"],
            &["--if-revision", "x", "note", "y"],
            &[],
        ];
        for words in lines {
            let arguments = line(words);
            match (parse(&arguments), whole(&arguments)) {
                (Ok(small), Ok(whole)) => assert_eq!(format!("{small:?}"), format!("{whole:?}")),
                (Err(small), Err(whole)) => assert_eq!(small.to_string(), whole.to_string(), "{words:?}"),
                (small, whole) => panic!("{words:?}: {small:?}, {whole:?}"),
            }
        }
    }
}

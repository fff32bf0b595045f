//! The table of commands. The parser, the dispatch, the groups of the help and the rights of sessions follow from it.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Args as _, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use liza_core::model::Role;
use strum::{EnumDiscriminants, EnumString, IntoStaticStr};

use super::commands;
use super::context::{Context, GlobalOptions};
use super::ui::error::CommandError;
use super::ui::help::{Group, Listed, grouped};
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

/// The process that runs a command of a session in the session's own project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunsIn {
    /// The session, with its rights: the command needs no blackboard, or makes one of its own.
    Session,
    /// The supervisor, for these roles; it refuses the command to others before any rule is asked.
    Supervisor(&'static [Role]),
}

const HERE: RunsIn = RunsIn::Session;
const ALL: RunsIn = RunsIn::Supervisor(&[Role::Planner, Role::Coder, Role::CodeReviewer]);
const PLANNER: RunsIn = RunsIn::Supervisor(&[Role::Planner]);
const CODER: RunsIn = RunsIn::Supervisor(&[Role::Coder]);
const CODE_REVIEWER: RunsIn = RunsIn::Supervisor(&[Role::CodeReviewer]);
const HUMAN: RunsIn = RunsIn::Supervisor(&[]);

/// Declares the table of commands: `Name = file, who may use it in a session;`, in the groups and the order of the help.
macro_rules! verbs {
    ($($heading:literal { $($(#[$attribute:meta])* $name:ident = $module:ident, $sessions:ident;)+ })+) => {
        /// Every command; its help is the doc comment in its own file.
        #[derive(Debug, Subcommand, EnumDiscriminants)]
        #[strum_discriminants(
            name(VerbName), vis(pub(super)), derive(EnumString, IntoStaticStr),
            strum(serialize_all = "kebab-case", const_into_str)
        )]
        pub(super) enum Verb {
            $($($(#[$attribute])* $name(commands::$module::Args),)+)+
        }

        /// The headings of the help with their commands.
        const GROUPS: &[Group] = &[$(($heading, &[$(VerbName::$name.into_str()),+])),+];

        impl VerbName {
            /// The process that runs the command of a session.
            pub(super) fn runs_in(self) -> RunsIn {
                match self { $($(VerbName::$name => $sessions,)+)+ }
            }

            fn parser(self) -> clap::Command {
                let parser = clap::Command::new(self.into_str());
                match self {
                    $($(VerbName::$name => commands::$module::Args::augment_args(parser),)+)+
                }
            }
        }

        pub(super) fn dispatch(verb: Verb, context: &Context) -> Result<Reply, CommandError> {
            match verb {
                $($(Verb::$name(args) => commands::$module::run(args, context),)+)+
            }
        }
    };
}

verbs! {
    "Start" {
        Init = init, HERE;
        Setup = setup, HERE;
        Demo = demo, HERE;
        Run = run, HUMAN;
        Attach = attach, HUMAN;
        Stop = stop, HUMAN;
        Agent = agent, HUMAN;
        Join = join, HERE;
        Doctor = doctor, HUMAN;
        Config = config, HUMAN;
        Remove = remove, HUMAN;
    }
    "Inspect" {
        Tui = tui, HUMAN;
        Status = status, ALL;
        Web = web, HUMAN;
        Show = show, ALL;
        Diff = diff, ALL;
        Log = log, ALL;
        Tail = tail, ALL;
        Shell = shell, HUMAN;
        Graph = graph, ALL;
    }
    "Steer" {
        Add = add, HUMAN;
        Plan = plan, HUMAN;
        Answer = answer, HUMAN;
        Note = note, HUMAN;
        Dismiss = dismiss, HUMAN;
        Goal = goal, PLANNER;
        Sprint = sprint, HUMAN;
        Pause = pause, HUMAN;
        Resume = resume, HUMAN;
        Checkpoint = checkpoint, HUMAN;
        Abort = abort, HUMAN;
        Sync = sync, HUMAN;
        Finish = finish, HUMAN;
    }
    "Examine and correct" {
        Forward = forward, HUMAN;
        Get = get, ALL;
        Validate = validate, ALL;
        Edit = edit, HUMAN;
        Export = export, HUMAN;
        Import = import, HUMAN;
        Retro = retro, HUMAN;
        Drill = drill, HUMAN;
        Watch = watch, HUMAN;
        Analyze = analyze, HUMAN;
        Resolve = resolve, HUMAN;
        SpecChange = spec_change, HUMAN;
        AcceptIntegration = accept_integration, HUMAN;
        AcceptGate = accept_gate, HUMAN;
        RetryValidation = retry_validation, HUMAN;
        #[command(visible_alias = "audit")]
        Verify = verify, ALL;
    }
    "Plan" {
        AddTask = add_task, PLANNER;
        EditTask = edit_task, PLANNER;
        Finalize = finalize, PLANNER;
        UnblockTask = unblock_task, PLANNER;
        SupersedeTask = supersede_task, PLANNER;
        AbandonTask = abandon_task, PLANNER;
        ConvertDiscovery = convert_discovery, PLANNER;
        Align = align, PLANNER;
    }
    "Work and review" {
        PreCheck = pre_check, CODER;
        SubmitForReview = submit_for_review, CODER;
        Check = check, HERE;
        SubmitVerdict = submit_verdict, CODE_REVIEWER;
        MarkBlocked = mark_blocked, CODER;
        Handoff = handoff, ALL;
        Anomaly = anomaly, ALL;
        Discover = discover, ALL;
    }
    "Supervise and repair" {
        Register = register, HUMAN;
        Heartbeat = heartbeat, ALL;
        Deregister = deregister, HUMAN;
        ClaimTask = claim_task, HUMAN;
        ClaimReview = claim_review, HUMAN;
        ReleaseClaim = release_claim, HUMAN;
        ClearStaleReviewClaims = clear_stale_review_claims, HUMAN;
        WtCreate = wt_create, HUMAN;
        WtMerge = wt_merge, HUMAN;
        WtDelete = wt_delete, PLANNER;
        UpdateSprintMetrics = update_sprint_metrics, ALL;
        Lock = lock, ALL;
        Recover = recover, HUMAN;
        Archive = archive, HUMAN;
    }
    "More" {
        Completions = completions, HERE;
        #[command(hide = true)]
        Confine = confine, HERE;
        Man = man, HERE;
        Rehearsal = rehearsal, HERE;
        Trial = trial, HUMAN;
        #[command(hide = true)]
        Session = session, HERE;
    }
}

impl VerbName {
    /// A session records its result with the commands that only its role has, with a handoff and with a question.
    pub(super) fn is_result(self) -> bool {
        let is_of_one_role = matches!(self.runs_in(), RunsIn::Supervisor([_]));
        is_of_one_role || matches!(self, VerbName::Handoff | VerbName::Anomaly)
    }
}

impl Verb {
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
            grouped(Cli::command(), GROUPS, Listed::ForPeople).try_get_matches_from(arguments)?
        }
        accepted => accepted?,
    };
    Cli::from_arg_matches(&matches)
}

/// The answer to `liza help`, `liza help --all` and `liza help COMMAND`: that of the option `--help`.
fn help_request(arguments: &[OsString]) -> Option<clap::Error> {
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|argument| argument.to_str()).collect();
    let (&"help", rest) = words.split_first()? else { return None };
    let all = rest.contains(&"--all");
    let listed = if all { Listed::All } else { Listed::ForPeople };
    let verbs = rest.iter().filter(|word| !word.starts_with('-'));
    let line = std::iter::once("liza").chain(verbs.copied()).chain(["--help"]);
    grouped(Cli::command(), GROUPS, listed).try_get_matches_from(line).err()
}

/// A parser that accepts only what the whole one accepts, in the same way.
fn small_parser(verb: Option<VerbName>) -> clap::Command {
    let parser = clap::Command::new("liza").version(env!("CARGO_PKG_VERSION"));
    let parser = parser.subcommand_required(true).disable_help_subcommand(true);
    GlobalOptions::augment_args(parser).subcommands(verb.map(VerbName::parser))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> Vec<OsString> {
        std::iter::once("liza").chain(words.iter().copied()).map(OsString::from).collect()
    }

    fn whole(arguments: &[OsString]) -> Result<Cli, clap::Error> {
        let whole = grouped(Cli::command(), GROUPS, Listed::ForPeople);
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

//! `liza run`: the whole team and the watcher in one process and one terminal.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use liza_core::model::{Actor, GoalStatus, State};
use liza_core::rules::figures::GoalFigures;
use liza_host::durable;
use liza_status::view::Progress;
use liza_status::words::not_merged;
use liza_team::engine::{Engine, EngineError};
use liza_team::lifecycle::adopt_integration;
use liza_team::observe::last_run::{last_run, remember_run};
use liza_team::project::{Project, now};
use liza_team::run::front::{self, FRONT, FrontEnd};
use liza_team::run::{
    AlreadyRunning, CopyError, RunLock, TeamOptions, WatcherObserver, copy_for_rehearsal, detached,
    first_run_notice, is_demo, leave_planning_to_other, team_posts,
};
use liza_team::supervisor::{
    AgentEnd, MessageLevel, Observer, Post, SupervisorOptions, TeamMessage, planned_elsewhere,
    run as supervise,
};
use liza_team::watch::{WatchError, WatchOptions, Watcher};
use serde_json::json;

use crate::cli::agent_programs::default_client;
use crate::cli::context::Context;
use crate::cli::end_text::{figures_table, next_steps, what_waits, why_it_ended};
use crate::cli::interrupted_moves::settle_interrupted;
use crate::cli::live_screen::{self, TeamScreen};
use crate::cli::rehearsal_check::{check_own_test, check_rehearsal};
use crate::cli::team_notes::{is_named, team_notes, untested};
use crate::cli::team_observers::{OutputReader, ProgressLine};
use crate::cli::ui::error::CommandError;
use crate::cli::ui::event_printer::EventPrinter;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::{Color, Reply};
use crate::cli::ui::program_name::ProgramName;

use super::agent::{check_confinement, endings, missing_login_notes, not_started, require_any_program};
use super::config::use_team_file;

const REHEARSAL: &str = "rehearsal";

/// Run the whole team: a planner, coders, code reviewers and the watcher
///
/// In a terminal it shows the screen of liza tui; with --plain, or in a pipe, lines. Ends when the
/// goal is reached. On the screen, q lets it go on in the background. Ctrl-C stops the sessions cleanly, a second Ctrl-C kills them; claims are kept
/// and the next run resumes them. A closed pipe (liza run | head) stops them like Ctrl-C. If a planner is at work already, on another machine or in another
/// terminal, the team has none of its own. To keep the number of agents and their programs for all
/// runs:
///
///   liza config roles.coder.count 4
///   liza config roles.coder.provider codex
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:
  liza run
  liza run --coders 4 --reviewers 2
  liza run --cli codex --reviewer-cli claude
  liza run --detach           # liza attach shows it, liza stop ends it
  liza run --cli rehearsal    # needs no model and no key; plays in a copy"
)]
pub(crate) struct Args {
    /// How many coders; default config.roles.coder.count, else 2.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=200))]
    coders: Option<u32>,
    /// How many code reviewers; default config.roles.code_reviewer.count, else 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=200))]
    reviewers: Option<u32>,
    /// The agent program: claude, codex, gemini, vibe, opencode, goose, copilot, qwen, rehearsal, or one from config.providers.
    #[arg(long = "cli", value_name = "NAME", value_parser = ProgramName, hide_possible_values = true)]
    provider: Option<String>,
    /// Another agent program for the planner.
    #[arg(long = "planner-cli", value_name = "NAME", value_parser = ProgramName, hide_possible_values = true)]
    planner_provider: Option<String>,
    /// Another agent program for the coders.
    #[arg(long = "coder-cli", value_name = "NAME", value_parser = ProgramName, hide_possible_values = true)]
    coder_provider: Option<String>,
    /// Another agent program for the code reviewers.
    #[arg(long = "reviewer-cli", value_name = "NAME", value_parser = ProgramName, hide_possible_values = true)]
    reviewer_provider: Option<String>,
    /// Let the circuit breaker check every new anomaly.
    #[arg(long)]
    analyze: bool,
    /// Plain lines instead of the screen: no colour, no progress line.
    #[arg(long)]
    plain: bool,
    /// Rehearse in this repository; otherwise a rehearsal plays in a copy.
    #[arg(long)]
    in_place: bool,
    /// Run in the background; liza attach shows the team, liza stop ends it.
    #[arg(long)]
    detach: bool,
    /// Leave the terminal first: how --detach starts the team.
    #[arg(long, hide = true)]
    in_background: bool,
    /// Print every step of every supervisor, as lines.
    #[arg(long, short)]
    verbose: bool,
}

impl Args {
    fn team(&self) -> TeamOptions {
        TeamOptions {
            coders: self.coders,
            reviewers: self.reviewers,
            provider: self.provider.clone(),
            planner_provider: self.planner_provider.clone(),
            coder_provider: self.coder_provider.clone(),
            reviewer_provider: self.reviewer_provider.clone(),
            default_provider: None,
        }
    }

    /// The command line of the same team, for a person.
    fn again(&self) -> String {
        let words = self.in_words();
        std::iter::once("liza run").chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
    }

    /// The arguments of the same team.
    fn in_words(&self) -> Vec<String> {
        let Self { coders, reviewers, provider, planner_provider, coder_provider, reviewer_provider, .. } =
            self;
        let texts = [
            ("--coders", coders.map(|number| number.to_string())),
            ("--reviewers", reviewers.map(|number| number.to_string())),
            ("--cli", provider.clone()),
            ("--planner-cli", planner_provider.clone()),
            ("--coder-cli", coder_provider.clone()),
            ("--reviewer-cli", reviewer_provider.clone()),
        ];
        let texts = texts.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
        let switches =
            [("--analyze", self.analyze), ("--verbose", self.verbose), ("--in-place", self.in_place)];
        let switches = switches.into_iter().filter(|(_, set)| *set).map(|(name, _)| name.to_owned());
        texts.chain(switches).collect()
    }
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    if let Actor::Agent(agent, _) = context.actor()? {
        let message = format!("{agent}'s session cannot run a team");
        return Err(CommandError::refused("not_permitted", message));
    }
    let project = context.project()?.retrying_for_long();
    if has_screen(&args, context) && front::waiting(context.environment.text(FRONT)).is_none() {
        return wait_in_front(&args, context, &project);
    }
    // Before a goal that has ended ends the command: its result may be on the way to the main branch.
    if let Err(error) = settle_interrupted(context, &project) {
        context.screen.note(&format!("an interrupted move of a branch cannot be completed: {error}"));
    }
    if let Some(over) = ended_goal(&project.store().snapshot()?) {
        return Ok(over);
    }
    use_team_file(context, &project)?;
    let stage = stage(&args, &project)?;
    if args.detach {
        return detach(&args, context, &project);
    }
    if args.in_background {
        detached::leave_terminal().map_err(|error| CommandError::refused("io", error.to_string()))?;
    }
    let is_alone = !args.in_background && RunLock::holder(&project)?.is_none();
    if is_alone {
        // The output of an earlier team in the background is not this one's.
        let _ = durable::remove_if_present(&detached::output_file(&project));
    }
    let copy = matches!(stage, Stage::Copy);
    let real = last_run(&project).run;
    let project = match stage {
        Stage::Here => project,
        Stage::Copy => {
            let copy = copy_for_rehearsal(&project)?;
            let folder = copy.root().display();
            context.screen.note(&format!(
                "rehearsal in a copy, {folder}: nothing changes here; to rehearse here: --in-place\n\
                 commands about the copy name it: liza -C {folder} status"
            ));
            check_own_test(context, &copy)?;
            copy
        }
    };
    let copy = copy.then(|| project.root().to_owned());
    let state = project.store().snapshot()?;
    let mut screen = context.screen.clone();
    if args.plain {
        screen.color = Color::Never;
    }
    let least = if args.verbose { MessageLevel::Debug } else { MessageLevel::Info };
    let printer = EventPrinter::new(screen, least);
    let printer = match args.plain || args.verbose {
        false if has_screen(&args, context) => printer.with_live_screen(),
        false => printer.with_progress(),
        true => printer,
    };
    // Before anything is said about a team that does not start.
    if let Some(running) = RunLock::holder(&project)? {
        return Err(already_running(context, &running));
    }
    let options = TeamOptions { default_provider: Some(default_client(context).to_owned()), ..args.team() };
    let config = state.board.config()?;
    let mut posts = team_posts(config, &options)?;
    if let Some((planner, entry)) = leave_planning_to_other(&mut posts, &project, &state) {
        printer.print_note(&planned_elsewhere(planner, Some(entry)));
    }
    if !is_named(config, &options) && posts.iter().all(|post| post.provider.installed_program().is_err()) {
        require_any_program(context)?;
    }
    for note in team_notes(&project, &state, config, &options, &posts) {
        printer.print_note(&note);
    }
    remember_run(&project, options.named());
    let watching = WatchOptions { analyze: args.analyze, ..WatchOptions::default() };
    let ends = work(context, &project, posts, &Arc::new(printer), watching, None)?;
    let after = project.store().snapshot()?;
    let (mut words, progress) = summary(&after);
    for line in figures_table(&after, now(), context.screen.columns()) {
        words.push_str(&format!("\n{line}"));
    }
    words.push_str(&what_waits(&project, &after, &context.screen.local_time()));
    let (ended, exit) = match endings(ends, &args.again()) {
        Ok(ended) => ended,
        Err(error) => {
            context.screen.note(&words);
            return Err(error);
        }
    };
    if exit == Exit::Refused {
        words = format!("{}{words}", why_it_ended(&after));
    }
    words.push_str(&match copy {
        Some(folder) => in_the_copy(&folder, &real),
        None => {
            let untested = untested(&project, &after).map(|note| format!("\n{note}")).unwrap_or_default();
            format!("{untested}{}", next_steps(&after, &args.again()))
        }
    });
    let figures = GoalFigures::of(&after, now());
    let reply =
        Reply::new(words, json!({"ended": ended, "progress": progress, "figures": figures})).sentences();
    Ok(reply.at(after.board.revision.0).exit(exit))
}

/// True if the team is shown on the screen.
fn has_screen(args: &Args, context: &Context) -> bool {
    let in_lines = args.plain || args.verbose || args.detach || args.in_background;
    !in_lines && live_screen::is_possible(context)
}

/// Runs the team in a process of its own, so that it can leave this terminal.
fn wait_in_front(args: &Args, context: &Context, project: &Project) -> Result<Reply, CommandError> {
    let mut team = Command::new(&context.program);
    let color = match context.screen.color {
        Color::Auto => "auto",
        Color::Always => "always",
        Color::Never => "never",
    };
    team.arg("-C").arg(project.root()).args(["--color", color]);
    team.args(context.screen.utc.then_some("--utc")).arg("run").args(args.in_words());
    let ended = front::run(team);
    let ended =
        ended.map_err(|error| CommandError::refused("io", format!("the team cannot start: {error}")))?;
    Ok(Reply::already_written().exit(match ended {
        FrontEnd::Detached => Exit::Success,
        FrontEnd::Ended(status) => {
            // As a shell reports it.
            let code = status.code().or(status.signal().map(|signal| 128 + signal));
            Exit::Session(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
        }
    }))
}

/// The place where a team works.
enum Stage {
    Here,
    Copy,
}

/// A rehearsal leaves no trace in a project: it plays in a copy, unless the person wants it here.
fn stage(args: &Args, project: &Project) -> Result<Stage, CommandError> {
    let posts = team_posts(project.store().snapshot()?.board.config()?, &args.team())?;
    let rehearsing = posts.iter().filter(|post| post.provider.name() == REHEARSAL).count();
    if rehearsing == 0 || is_demo(project) {
        return Ok(Stage::Here);
    }
    if rehearsing == posts.len() {
        check_rehearsal(project)?;
    }
    if args.in_place {
        return Ok(Stage::Here);
    }
    if rehearsing < posts.len() {
        let message = "some roles are played by the rehearsal agent, others by real programs";
        return Err(CommandError::refused("mixed_rehearsal", message)
            .hint(format!("to let them change this repository: {} --in-place", args.again())));
    }
    if args.detach {
        let message = "a rehearsal in a copy cannot run in the background";
        return Err(CommandError::refused("rehearsal_copy", message)
            .hint(format!("to rehearse here, in the background: {} --detach --in-place", args.again())));
    }
    Ok(Stage::Copy)
}

/// Starts the same team in the background, and returns when it runs.
fn detach(args: &Args, context: &Context, project: &Project) -> Result<Reply, CommandError> {
    let failed = |error: io::Error| CommandError::refused("io", format!("the team cannot start: {error}"));
    if let Some(running) = RunLock::holder(project)? {
        return Err(already_running(context, &running));
    }
    let words = [args.in_words(), ["--plain", "--in-background"].map(str::to_owned).to_vec()].concat();
    let mut team = detached::start(project, &context.program, &words).map_err(failed)?;
    let output = detached::output_file(project);
    loop {
        let running = RunLock::holder(project)?.and_then(|running| running.process());
        if running == Some(team.id()) {
            let text = format!(
                "the team runs in the background as process {}\nwatch it: liza tui; end it: liza stop",
                team.id()
            );
            return Ok(Reply::new(text, json!({"process": team.id(), "output": output})));
        }
        if let Some(ended) = team.try_wait().map_err(failed)? {
            let said = durable::read_text(&output).unwrap_or_default();
            if ended.success() {
                return Ok(Reply::new(said.trim_end(), json!({"process": null, "output": output})));
            }
            return Err(not_started("the team", &said));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn already_running(context: &Context, running: &AlreadyRunning) -> CommandError {
    let message = context.screen.local_time().in_text(&running.to_string());
    CommandError::refused("already_running", message).hint("to watch it: liza tui; to stop it: liza stop")
}

/// A goal that has ended needs no team.
fn ended_goal(state: &State) -> Option<Reply> {
    let goal = state.board.goal.ready().filter(|goal| goal.status != GoalStatus::InProgress)?;
    let take = match goal.status == GoalStatus::Completed && goal.taken.is_none() {
        true => "take it: liza finish; ",
        false => "",
    };
    let text = format!("{} is {}; nothing to do\n{take}next: liza goal new \"GOAL\"", goal.id, goal.status);
    Some(Reply::new(text, json!({"ended": [], "goal": goal.status})).at(state.board.revision.0))
}

/// The next steps of a person after a rehearsal in a copy.
fn in_the_copy(folder: &Path, real: &str) -> String {
    let folder = folder.display();
    format!(
        "\nThis was a rehearsal in a copy; your project is unchanged.\n\
         look at it       liza -C {folder} diff\n\
         for real         {real}\n\
         delete the copy  rm -rf {folder}"
    )
}

/// Runs a team until all of its agents have ended.
pub(crate) fn work(
    context: &Context,
    project: &Project,
    posts: Vec<Post>,
    printer: &Arc<EventPrinter>,
    watching: WatchOptions,
    limit: Option<Duration>,
) -> Result<Vec<AgentEnd>, CommandError> {
    let state = project.store().snapshot()?;
    let config = state.board.config()?;
    for post in &posts {
        post.provider.installed_program()?;
        post.provider.check_budget(config)?;
    }
    missing_login_notes(context, project, config, &posts).iter().for_each(|note| printer.print_note(note));
    let roles = posts.iter().map(|post| post.role);
    let level = check_confinement(context, project, config, roles)?;
    // Coders and merges need it; found later, a missing identity would waste a session.
    project.repo()?.identity()?;
    let lock = RunLock::take(project)?.map_err(|running| already_running(context, &running))?;
    // `attach` shows the last lines too, which are printed when this function has returned.
    lock.hold_until_exit();
    if let Some(head) = adopt_integration(&Engine::new(project, Actor::Human))? {
        printer.print_text(&format!(
            "work starts from the current commit of the integration branch, {}; none was recorded before",
            head.short()
        ));
    }
    if let Some(notice) = first_run_notice(project, config, &posts, &level) {
        printer.print_text(&notice);
    }
    printer.print_text(&introduction(&posts));
    let output = OutputReader::new(&context.screen.console);
    let mut observers: Vec<Box<dyn Observer>> =
        vec![Box::new(ProgressLine::new(printer, project)), Box::new(output)];
    match Watcher::new(project, watching) {
        Ok(watcher) => observers.push(Box::new(WatcherObserver::new(watcher))),
        Err(WatchError::Running) => {
            printer.print_text("a watcher is already running in this project; it reports the alerts")
        }
        Err(WatchError::NoWebhooks) => return Err(CommandError::missing_feature("webhooks")),
        Err(WatchError::Lock(error)) => return Err(error.into()),
    }
    let (program, commands) = (context.program.clone(), (context.services.session_commands)());
    let options = SupervisorOptions { program, in_team: true, commands, observers, limit };
    let live = printer.has_live_screen().then(|| TeamScreen::start(context, project)).flatten();
    if let Some(live) = &live {
        for message in printer.take_covered() {
            // It has been printed; if the screen has ended already, it is visible.
            let _: bool = live.report(&message);
        }
    }
    let report = |message: &TeamMessage| match &live {
        Some(live) if live.report(message) => {}
        Some(_) | None => printer.print(message),
    };
    Ok(supervise(project, posts, options, &report)?)
}

fn introduction(posts: &[Post]) -> String {
    let mut groups: Vec<(String, usize)> = Vec::new();
    for post in posts {
        let name = format!("{} ({})", post.role.title(), post.provider.name());
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, number)) => *number += 1,
            None => groups.push((name, 1)),
        }
    }
    let words: Vec<String> = groups.iter().map(|(name, number)| format!("{number} × {name}")).collect();
    format!("team: {} · stop with Ctrl-C", words.join(", "))
}

/// The state of the work, for people and for programs.
pub(crate) fn summary(state: &State) -> (String, serde_json::Value) {
    let goal = state.board.goal.ready().map_or("?".to_owned(), |goal| goal.status.to_string());
    let lacks_goal = state.board.goal.ready().is_some_and(|goal| goal.description.trim().is_empty());
    let Some(sprint) = state.board.sprint.ready() else { return (format!("goal {goal}"), json!(null)) };
    let progress = Progress::of(state, sprint, now());
    let merged = (progress.merged > 0).then(|| format!("{} merged", progress.merged));
    let parts =
        merged.into_iter().chain(not_merged(&progress).map(|(_, text)| text)).collect::<Vec<_>>().join(", ");
    let text = match progress.total {
        0 if lacks_goal => "no goal yet; to state one: liza goal new \"GOAL\"".to_owned(),
        0 => format!("goal {goal} · no tasks"),
        1 => format!("goal {goal} · 1 task: {parts}"),
        total => format!("goal {goal} · {total} tasks: {parts}"),
    };
    (text, json!(progress))
}

impl From<CopyError> for CommandError {
    fn from(error: CopyError) -> Self {
        let message = format!("cannot rehearse in a copy of the project: {error}");
        match error {
            CopyError::Folder(error) => error.into(),
            CopyError::Git(error) => error.into(),
            CopyError::Store(error) => error.into(),
            CopyError::Setup(error) => EngineError::from(error).into(),
            CopyError::File { .. } => {
                Self::refused("io", message).hint("rehearse here: liza run --cli rehearsal --in-place")
            }
        }
    }
}

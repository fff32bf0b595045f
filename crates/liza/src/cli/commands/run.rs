//! `liza run`: the whole team and the watcher in one process and one terminal.

use std::fs;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use liza_core::model::{Actor, GoalStatus, Seconds, State};
use liza_core::watch::view::Progress;
use serde_json::json;

use crate::activity::session_activity;
use crate::contracts::VISION;
use crate::engine::Engine;
use crate::lifecycle::adopt_integration;
use crate::project::{Project, now};
use crate::run::{RunLock, TeamOptions, WatcherObserver, progress_line, team_posts};
use crate::supervisor::{
    AgentEnd, MessageLevel, Observed, Observer, Post, SupervisorOptions, run as supervise,
};
use crate::watch::{WatchError, WatchOptions, Watcher};

use super::agent::{check_confinement, endings};
use crate::cli::context::Context;
use crate::cli::spec_path;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::event_printer::EventPrinter;
use crate::cli::ui::output::{Color, Reply};

/// Run the whole team: a planner, coders, code reviewers and the watcher
///
/// Ends when the goal is reached. Ctrl-C stops the sessions cleanly, a second Ctrl-C kills them;
/// claims are kept and the next run resumes them. The number of agents and their programs can be
/// set in the config (liza edit):
///
///   config:
///     roles:
///       coder: {provider: codex, count: 4}
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:
  liza run
  liza run --coders 4 --reviewers 2
  liza run --cli codex --reviewer-cli claude
  liza run --cli rehearsal    # needs no model and no key"
)]
pub(crate) struct Args {
    /// How many coders; default config.roles.coder.count, else 2.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=200))]
    coders: Option<u32>,
    /// How many code reviewers; default config.roles.code_reviewer.count, else 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=200))]
    reviewers: Option<u32>,
    /// The agent program: claude, codex, gemini, vibe, opencode, goose, rehearsal, or one from config.providers.
    #[arg(long = "cli", value_name = "NAME")]
    provider: Option<String>,
    /// Another agent program for the planner.
    #[arg(long = "planner-cli", value_name = "NAME")]
    planner_provider: Option<String>,
    /// Another agent program for the coders.
    #[arg(long = "coder-cli", value_name = "NAME")]
    coder_provider: Option<String>,
    /// Another agent program for the code reviewers.
    #[arg(long = "reviewer-cli", value_name = "NAME")]
    reviewer_provider: Option<String>,
    /// Let the circuit breaker check every new anomaly.
    #[arg(long)]
    analyze: bool,
    /// Plain lines: no colour, no progress line.
    #[arg(long)]
    plain: bool,
    /// Print every step of every supervisor.
    #[arg(long, short)]
    verbose: bool,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    if let Actor::Agent(agent, _) = context.actor()? {
        let message = format!("{agent}'s session cannot run a team");
        return Err(CommandError::refused("not_permitted", message));
    }
    let project = context.project()?;
    let state = project.store().snapshot()?;
    if let Some(over) = ended_goal(&state) {
        return Ok(over);
    }
    let mut screen = context.screen.clone();
    if args.plain {
        screen.color = Color::Never;
    }
    let least = if args.verbose { MessageLevel::Debug } else { MessageLevel::Info };
    let printer = EventPrinter::new(screen, least);
    let printer = if args.plain { printer } else { printer.with_progress() };
    let options = TeamOptions {
        coders: args.coders,
        reviewers: args.reviewers,
        provider: args.provider,
        planner_provider: args.planner_provider,
        coder_provider: args.coder_provider,
        reviewer_provider: args.reviewer_provider,
    };
    let config = state.board.config()?;
    let posts = team_posts(config, &options)?;
    if let Some(warning) = vision_warning(&project, &state) {
        context.screen.note(&format!("liza: {warning}"));
    }
    let watching = WatchOptions { analyze: args.analyze, ..WatchOptions::default() };
    let ends = work(context, &project, posts, &Arc::new(printer), watching, None)?;
    let after = project.store().snapshot()?;
    let (ended, exit) = endings(ends)?;
    let (mut words, progress) = summary(&after);
    words.push_str(&next_steps(&after));
    Ok(Reply::new(words, json!({"ended": ended, "progress": progress})).at(after.board.revision.0).exit(exit))
}

/// A goal that has ended needs no team.
fn ended_goal(state: &State) -> Option<Reply> {
    let goal = state.board.goal.ready().filter(|goal| goal.status != GoalStatus::InProgress)?;
    let text = format!("{} is {}; nothing to do\nnext: liza goal new \"GOAL\"", goal.id, goal.status);
    Some(Reply::new(text, json!({"ended": [], "goal": goal.status})).at(state.board.revision.0))
}

/// A warning if the vision document, which the planner plans from, is not written yet.
fn vision_warning(project: &Project, state: &State) -> Option<String> {
    let spec = state.board.goal.ready()?.spec_ref.as_deref()?;
    let problem = match fs::read_to_string(project.root().join(spec_path::file_of(spec))) {
        Ok(text) if text == VISION => {
            "is still the empty template: fill it in, or the planner has only the goal"
        }
        Err(error) if error.kind() == ErrorKind::NotFound => "does not exist: the planner has only the goal",
        Ok(_) | Err(_) => return None,
    };
    Some(format!("{spec} {problem}"))
}

/// What a person does after a team has ended.
fn next_steps(state: &State) -> String {
    match state.board.goal.ready().map(|goal| goal.status) {
        Some(GoalStatus::InProgress) => {
            "\nTo see where it stopped: liza status. To continue: liza run".to_owned()
        }
        Some(GoalStatus::Aborted) => "\nNothing was deleted. Start over: liza goal new \"GOAL\"".to_owned(),
        Some(GoalStatus::Completed) => {
            let config = state.board.config.ready();
            let branch = config.map_or("integration", |config| config.integration_branch.as_str());
            format!(
                "\nReview: git diff HEAD...{branch}. Merge: git merge {branch}. Next goal: liza goal new \"GOAL\""
            )
        }
        None => String::new(),
    }
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
    for post in &posts {
        post.provider.installed_program()?;
    }
    let roles = posts.iter().map(|post| post.role);
    check_confinement(context, project, project.store().snapshot()?.board.config()?, roles)?;
    // Coders and merges need it; found later, a missing identity would waste a session.
    project.repo()?.identity()?;
    let _lock = RunLock::take(project)?.map_err(|running| {
        CommandError::refused("already_running", running.to_string())
            .hint("to see it: liza status; to stop it: Ctrl-C in its terminal")
    })?;
    if let Some(head) = adopt_integration(&Engine::new(project, Actor::Human))? {
        printer.print_text(&format!(
            "no head of the integration branch was recorded: work starts from {}, where it is now",
            head.short()
        ));
    }
    printer.print_text(&introduction(&posts));
    let progress = Box::new(ProgressLine {
        printer: Arc::clone(printer),
        project: project.clone(),
        began: Instant::now(),
    });
    let mut observers: Vec<Box<dyn Observer>> = vec![progress];
    match Watcher::new(project, watching) {
        Ok(watcher) => observers.push(Box::new(WatcherObserver::new(watcher))),
        Err(WatchError::Running) => {
            printer.print_text("a watcher is already running in this project; it reports the alarms")
        }
        Err(WatchError::Lock(error)) => return Err(error.into()),
    }
    let (program, commands) = (context.program.clone(), (context.services.session_commands)());
    let options = SupervisorOptions { program, in_team: true, commands, observers, limit };
    Ok(supervise(project, posts, options, &|message| printer.print(message))?)
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
    let Some(sprint) = state.board.sprint.ready() else { return (format!("goal {goal}"), json!(null)) };
    let progress = Progress::of(&state.board, sprint);
    let Progress { total, merged, dropped, in_progress, blocked, waiting } = progress;
    let parts = [
        (merged, "merged"),
        (dropped, "abandoned or replaced"),
        (in_progress, "in progress"),
        (blocked, "BLOCKED"),
        (waiting, "waiting"),
    ];
    let parts =
        parts.iter().filter(|(number, _)| *number > 0).map(|(number, word)| format!("{number} {word}"));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let text = match total {
        0 => format!("goal {goal} · no tasks"),
        1 => format!("goal {goal} · 1 task: {parts}"),
        _ => format!("goal {goal} · {total} tasks: {parts}"),
    };
    (text, json!(progress))
}

/// Keeps the progress line up to date.
struct ProgressLine {
    printer: Arc<EventPrinter>,
    project: Project,
    began: Instant,
}

impl Observer for ProgressLine {
    fn observe(&mut self, state: &State) -> Observed {
        if !self.printer.shows_progress() {
            return Observed::default();
        }
        let sessions = session_activity(&self.project, state);
        let worked = Seconds(self.began.elapsed().as_secs());
        self.printer.progress(&progress_line(state, &sessions, worked, now()));
        Observed { messages: Vec::new(), again_in: Some(Duration::from_secs(5)) }
    }
}

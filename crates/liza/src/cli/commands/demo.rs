//! `liza demo`: a whole team works on a sample project, without a model or an API key.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use liza_core::model::{Config, GoalStatus, State};
use liza_rehearsal::PLAYBOOK_VARIABLE;
use liza_sandbox::sys::find_program;
use liza_team::project::{Project, now};
use liza_team::run::demo::{DemoError, folder, keep_playbook, set_stage};
use liza_team::run::playbook;
use liza_team::run::{TeamOptions, team_posts};
use liza_team::supervisor::{MessageLevel, Post};
use liza_team::watch::WatchOptions;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::end_text::figures_table;
use crate::cli::missing_feature::rest_of_the_program;
use crate::cli::ui::console::Stream;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::event_printer::EventPrinter;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::layout::{BOLD, CYAN, paint, wrap};
use crate::cli::ui::output::{Color, Reply};
use crate::cli::ui::story::Story;

use super::init;
use super::run::{summary, work};
use super::verify;

/// The longest that a demo may run; a playbook that takes longer is stuck.
const LIMIT: Duration = Duration::from_secs(300);

/// Watch a whole team work on a sample project, without an API key.
///
/// Makes a small repository in a temporary folder and runs a planner, coders and code reviewers on it, all played by
/// the built-in rehearsal agent. The commits are real: a plan, code, a rejection, a blocked task that is replaced, a
/// conflict that is fixed, approvals and merges. In a terminal it takes about 20 seconds; the folder is kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza demo
  liza demo --fast
  liza demo --dir ~/liza-demo
  liza demo --playbook my-story.yaml")]
pub(crate) struct Args {
    /// The folder; must be empty or new.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Another playbook, with its own project.
    #[arg(long, value_name = "FILE")]
    playbook: Option<PathBuf>,
    /// How many coders.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
    coders: u32,
    /// How many code reviewers.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=50))]
    reviewers: u32,
    /// Plain lines: no colour, no progress line.
    #[arg(long)]
    plain: bool,
    /// Without the pauses that let a person read along in a terminal.
    #[arg(long)]
    fast: bool,
}

/// The exit code that a shell expects after Ctrl-C.
const INTERRUPTED: Exit = Exit::Session(130);

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("demo")?;
    let began = Instant::now();
    let (playbook, text) = match &args.playbook {
        Some(path) => playbook::load(&context.directory.join(path))?,
        None => playbook::demo()?,
    };
    let Some(sample) = playbook.project else {
        let message = "the playbook has no project section: the demo needs a goal and files";
        return Err(CommandError::refused("bad_playbook", message)
            .hint("the page \"Playbooks\" of the documentation describes the format"));
    };
    let folder = folder(args.dir.map(|dir| context.directory.join(dir)).as_deref())?;
    let repo = set_stage(&folder, &sample)?;
    // The settings of the sample are the program's own; otherwise its merges would wait for a person.
    repo.accept_programs(&repo.changed_programs()?)?;
    init::make(&repo, &sample.goal, &context.program)?;
    let playbook = keep_playbook(&folder, &text)?;
    let project = Project::open(&folder)?;
    let mut screen = context.screen.clone();
    if args.plain {
        screen.color = Color::Never;
    }
    let is_told = !args.fast && !args.plain && !screen.json && screen.console.is_terminal(Stream::Output);
    let beginning = EventPrinter::new(screen.clone(), MessageLevel::Info);
    beginning.print_text(&format!(
        "goal: {}\nSample project in {}. The built-in rehearsal agent plays every agent.",
        sample.goal,
        folder.display()
    ));
    let story = is_told.then(|| Story::begin(screen.clone(), project.store().log_reader()));
    let printer = EventPrinter::new(screen, MessageLevel::Info);
    let printer = Arc::new(match args.plain {
        _ if is_told => printer.silent(),
        true => printer,
        false => printer.with_progress(),
    });
    let watching = WatchOptions { desktop: false, ..WatchOptions::default() };
    let ended = work(
        context,
        &project,
        posts(args.coders, args.reviewers, &playbook)?,
        &printer,
        watching,
        Some(LIMIT),
    );
    if story.is_some_and(|story| !story.finish()) {
        let message = format!("the demo was interrupted; its sample project stays in {}", folder.display());
        return Err(CommandError::refused("interrupted", message).exit(INTERRUPTED));
    }
    ended?;
    let state = project.store().snapshot()?;
    let judged = verify::judge_project(&project)?;
    Ok(result(context, &state, &folder, (began.elapsed(), judged)))
}

fn posts(coders: u32, reviewers: u32, playbook: &Path) -> Result<Vec<Post>, CommandError> {
    let options = TeamOptions {
        coders: Some(coders),
        reviewers: Some(reviewers),
        provider: Some("rehearsal".to_owned()),
        ..TeamOptions::default()
    };
    let mut posts = team_posts(&Config::default(), &options)?;
    for post in &mut posts {
        let named = (PLAYBOOK_VARIABLE.to_owned(), playbook.display().to_string());
        post.provider.add_environment([named]);
    }
    Ok(posts)
}

/// The result, and suggestions for the next step.
fn result(
    context: &Context,
    state: &State,
    folder: &Path,
    (took, judged): (Duration, Option<Reply>),
) -> Reply {
    let reached = state.board.goal.ready().is_some_and(|goal| goal.status == GoalStatus::Completed);
    let (words, progress) = summary(state);
    let columns = context.screen.columns();
    let mut lines = vec![String::new()];
    let words = wrap(&format!("{words} · {:.1} s", took.as_secs_f64()), columns);
    lines.extend(words.iter().map(|line| paint(BOLD, line)));
    lines.extend(figures_table(state, now(), columns));
    if let Some(judged) = &judged {
        lines.push(String::new());
        lines.push(paint(BOLD, "How each merge was judged (liza verify)"));
        let fitted = |line: &str| match line.chars().count() <= columns {
            true => vec![line.to_owned()],
            false => wrap(line, columns),
        };
        lines.extend(judged.text.lines().flat_map(fitted));
    }
    let (liza, place) = (program_name(&context.program), folder.display());
    let first = state.bodies().next().map_or("TASK".to_owned(), |(id, _)| id.to_string());
    let next = [
        (format!("cd {place}"), "the project is kept"),
        (format!("{liza} status"), "tasks, agents and alerts"),
        (format!("{liza} show {first}"), "everything about one task"),
        (format!("{liza} log"), "everything that happened"),
        (format!("{liza} diff"), "what the team changed"),
        (format!("{liza} verify"), "the same in any clone"),
        ("git log --graph --oneline integration".to_owned(), "the approved work"),
        ("less .liza/state.yaml".to_owned(), "the blackboard"),
    ];
    lines.push(String::new());
    lines.push(paint(BOLD, "Try next"));
    let width = next.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    let longest = next.iter().map(|(_, why)| why.len()).max().unwrap_or(0);
    let between = if width + longest + 4 <= columns { "  " } else { "\n    " };
    for (command, why) in &next {
        lines.push(format!("  {}{between}{why}", paint(CYAN, &format!("{command:<width$}"))));
    }
    if liza != "liza" {
        lines.extend(wrap(&path_note(&liza, find_program("liza").is_some()), columns));
    }
    let own = format!("In your own repository: {liza} init \"GOAL\" --template, then {liza} run");
    lines.extend(wrap(&own, columns));
    lines.extend(rest_of_the_program().iter().flat_map(|rest| wrap(rest, columns)));
    let result = json!({"folder": folder, "reached": reached, "progress": progress, "seconds": took.as_secs(), "verified": judged.as_ref().map(|judged| &judged.result)});
    let reply = Reply::new(lines.join("\n"), result).at(state.board.revision.0);
    let is_judged = judged.is_none_or(|judged| judged.exit == Exit::Success);
    if reached && is_judged { reply } else { reply.exit(Exit::Refused) }
}

/// Advice for a person whose `liza` is another one, or none.
fn path_note(liza: &str, has_other: bool) -> String {
    let other = if has_other { "another liza is" } else { "liza is not" };
    format!("{other} on your PATH: where it names a command, type {liza} for liza")
}

/// The name of this program for a person: `liza` if it is on the PATH, else its path.
fn program_name(program: &Path) -> String {
    let own = program.canonicalize().ok();
    let named = find_program("liza").and_then(|path| path.canonicalize().ok());
    match own {
        Some(own) if named.as_ref() != Some(&own) => own.display().to_string(),
        Some(_) | None => "liza".to_owned(),
    }
}

impl From<DemoError> for CommandError {
    fn from(error: DemoError) -> Self {
        let message = error.to_string();
        match error {
            DemoError::Git(error) => error.into(),
            DemoError::NotEmpty(_) => {
                Self::refused("exists", message).hint("use an empty or new folder for --dir")
            }
            DemoError::Outside(_) => Self::refused("bad_playbook", message),
            DemoError::Io { .. } => Self::refused("io", message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: UI-03
    #[test]
    fn another_liza_on_the_path_is_not_none() {
        let then = "on your PATH: where it names a command, type /x/liza for liza";
        assert_eq!(path_note("/x/liza", true), format!("another liza is {then}"));
        assert_eq!(path_note("/x/liza", false), format!("liza is not {then}"));
    }
}

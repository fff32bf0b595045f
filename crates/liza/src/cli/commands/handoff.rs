//! `liza handoff`: a session whose context is full leaves notes for the next one.

use liza_core::model::{Role, TaskId};
use liza_core::protocol::{HandoffNotes, WriteHandoff};
use liza_team::engine::Engine;
use liza_team::lifecycle::{generation_of, take_and_send, worktree_facts};

use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Leave notes for the next session, then end your turn.
///
/// Commit first: a coder's worktree must be clean.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza handoff retry-orders --summary \"decorator done, tests red\" --next-action \"parse Retry-After\" \\
    --file src/orders.rs --next-step \"add the integration test\"")]
pub(crate) struct Args {
    /// Which task; a planner may leave it out.
    task: Option<TaskId>,
    /// The current state, in one phrase.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: Text,
    /// What to do first, in one phrase.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    next_action: Text,
    /// How you were doing it.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    approach: Option<Text>,
    /// What is in the way.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    blockers: Option<Text>,
    /// A file that you changed; repeatable.
    #[arg(long = "file", value_name = "PATH", allow_hyphen_values = true)]
    files: Vec<Text>,
    /// A step that is left to do; repeatable.
    #[arg(long = "next-step", value_name = "TEXT", allow_hyphen_values = true)]
    next_steps: Vec<Text>,
    /// How full your context is, if you know.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=100))]
    context: Option<u32>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let notes = HandoffNotes {
        summary: args.summary.read(context)?,
        next_action: args.next_action.read(context)?,
        approach: Text::read_some(args.approach, context)?,
        blockers: Text::read_some(args.blockers, context)?,
        files_modified: Text::read_all(args.files, context)?,
        next_steps: Text::read_all(args.next_steps, context)?,
        context_percent: args.context,
    };
    let task = args.task;
    let project = context.project()?;
    let coder = context.actor()?.agent().is_some_and(|agent| agent.role() == Role::Coder);
    let dirty = match &task {
        Some(task) if coder => uncommitted(&context.engine(&project)?, task)?,
        Some(_) | None => Vec::new(),
    };
    let name = task.as_ref().map_or_else(|| "the goal".to_owned(), ToString::to_string);
    context.run_in(&project, WriteHandoff { task, notes, dirty }, |_| {
        format!("the next session on {name} gets your notes; end your turn now (with exit code 42 if you can choose one)")
    })
}

/// The uncommitted files in the task's worktree, of which the commits are taken; a missing worktree is left to the rules.
fn uncommitted(engine: &Engine<'_>, task: &TaskId) -> Result<Vec<String>, CommandError> {
    let board = engine.read(&[task])?;
    take_and_send(engine.project(), task, generation_of(&board, task))?;
    Ok(worktree_facts(engine, task)?.map(|facts| facts.dirty).unwrap_or_default())
}

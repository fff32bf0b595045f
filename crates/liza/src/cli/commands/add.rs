//! `liza add`: the human adds a task in one line.

use liza_core::model::{Board, Status, TaskId};
use liza_core::protocol::{AddTask, NewTask};

use crate::cli::context::Context;
use crate::cli::input::{Tasks, Text};
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// The most characters of the text that become the ID.
const ID_LENGTH: usize = 32;

/// Add a task in one line; the planner completes it.
///
/// It is a DRAFT with the goal's specification until the planner has said when it is done and what belongs to it. With
/// --done and --scope it is ready for a coder at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza add \"Log every retry with its reason\"
  liza add \"Log every retry\" --done \"a test finds the line\" --scope \"the retry client\"")]
pub(crate) struct Args {
    /// What to build; - reads it from standard input.
    #[arg(allow_hyphen_values = true)]
    text: Text,
    /// How to tell that it is done.
    #[arg(long, value_name = "TEXT", requires = "scope", allow_hyphen_values = true)]
    done: Option<Text>,
    /// What is part of the task, and what is not.
    #[arg(long, value_name = "TEXT", requires = "done", allow_hyphen_values = true)]
    scope: Option<Text>,
    /// The specification, if it is not the goal's.
    #[arg(long, value_name = "REF")]
    spec: Option<String>,
    /// Priority, from 1 (highest) to 5 (lowest); default 3.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// Tasks that must be MERGED first.
    #[arg(long, value_name = "ID,…", default_value = "", hide_default_value = true)]
    depends: Tasks,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("add")?;
    let project = context.project()?;
    let board = project.store().snapshot()?.board;
    let description = args.text.read(context)?;
    if description.trim().is_empty() {
        return Err(CommandError::refused("missing", "the task has no text")
            .hint("liza add \"Log every retry with its reason\""));
    }
    let task = free_id(&board, &description)?;
    let draft = args.done.is_none();
    let spec_ref = args.spec.or_else(|| board.goal.ready().and_then(|goal| goal.spec_ref.clone()));
    let new = NewTask {
        description,
        spec_ref,
        done_when: Text::read_some(args.done, context)?,
        scope: Text::read_some(args.scope, context)?,
        priority: args.priority,
        depends_on: args.depends.0,
        draft,
        ..NewTask::default()
    };
    let later = if project.stop_files().strongest().is_some() { ", after liza resume" } else { "" };
    context.run_in(&project, AddTask { task, new }, |reply| match reply.status {
        Some(Status::Draft) => format!("{} added as a DRAFT; the planner completes it{later}", reply.task),
        _ => format!("{} added: UNCLAIMED, ready for a coder{later}", reply.task),
    })
}

/// An ID from the first words of a text, with a number if it is taken.
fn free_id(board: &Board, text: &str) -> Result<TaskId, CommandError> {
    let mut words = String::new();
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if !words.is_empty() && words.len() + 1 + word.len() > ID_LENGTH {
            break;
        }
        if !words.is_empty() {
            words.push('-');
        }
        words.extend(word.chars().take(ID_LENGTH).map(|c| c.to_ascii_lowercase()));
    }
    let base = match words.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => words,
        Some(_) => format!("task-{words}"),
        None => "task".to_owned(),
    };
    let names = std::iter::once(base.clone()).chain((2_u32..).map(|number| format!("{base}-{number}")));
    let mut free = names.filter_map(|name| name.parse::<TaskId>().ok()).filter(|id| !board.knows(id));
    free.next().ok_or_else(|| {
        CommandError::refused("bad_id", "no ID is left for this text").hint("liza add-task --id ID")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: UI-12
    #[test]
    fn the_id_is_made_of_the_first_words() {
        let id = |text: &str| free_id(&Board::default(), text).unwrap().to_string();
        assert_eq!(id("Log every retry, with its reason!"), "log-every-retry-with-its-reason");
        assert_eq!(id("3 retries"), "task-3-retries");
        assert_eq!(id("日本語"), "task");
        assert_eq!(id(&"x".repeat(500)), "x".repeat(ID_LENGTH));
    }
}

//! `liza edit-task`: the planner completes or corrects a task that is not claimed yet.

use liza_core::model::{Impact, Status, TaskId};
use liza_core::protocol::{EditTask, TaskEdit};

use crate::cli::context::Context;
use crate::cli::input::{Tasks, Text, impact};
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Complete or correct a DRAFT or UNCLAIMED task.
///
/// Only the given options change. A DRAFT that you complete (spec, done and scope) is finalized; the planner
/// finalizes its plan as a whole.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza edit-task retry-orders --done \"create_order retries 3 times on 5xx\"
  liza edit-task retry-orders --depends retry-core,auth --priority 1
  liza edit-task retry-orders --depends \"\"")]
pub(crate) struct Args {
    /// The task.
    task: TaskId,
    /// What to build.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    desc: Option<Text>,
    /// How to tell that it is done.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    done: Option<Text>,
    /// What is part of the task.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    scope: Option<Text>,
    /// The specification: a file in the project, with an optional #anchor.
    #[arg(long, value_name = "REF")]
    spec: Option<String>,
    /// Tasks that must be MERGED first; replaces the whole list, "" for none.
    #[arg(long, value_name = "ID,…")]
    depends: Option<Tasks>,
    /// A command that shows that it is done; can be given again and again. Replaces the whole list; once the task has left
    /// DRAFT, the planner only adds to it. The only option for a task that is claimed.
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    validate: Vec<String>,
    /// Priority, from 1 (highest) to 5 (lowest).
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// normal, or high: then two code reviewers have to approve the work. Agents can only raise it.
    #[arg(long, value_name = "IMPACT", value_parser = impact)]
    impact: Option<Impact>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let task = args.task;
    let edit = TaskEdit {
        description: Text::read_some(args.desc, context)?,
        spec_ref: args.spec,
        done_when: Text::read_some(args.done, context)?,
        scope: Text::read_some(args.scope, context)?,
        priority: args.priority,
        impact: args.impact,
        depends_on: args.depends.map(|tasks| tasks.0),
        validate: Some(args.validate).filter(|lines| !lines.is_empty()),
    };
    let name = task.clone();
    context.run(EditTask { task, edit }, |reply| match reply.status {
        Some(Status::Draft) => format!("{name} changed; to make it claimable: liza finalize {name}"),
        Some(status) => format!("{name} changed; it is {status}"),
        None => format!("{name} changed"),
    })
}

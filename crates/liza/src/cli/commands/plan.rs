//! `liza plan`: the tasks that the planner proposes, and the human's approval of them.

use liza_core::model::{Revision, State, TaskId, TaskRecord};
use liza_core::protocol::Finalize;
use liza_core::rules::triggers::proposed_tasks;
use liza_core::text::count;
use serde_json::json;

use crate::cli::confirm::{at_terminal, says_yes};
use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::{BOLD, clean, list, paint};
use crate::cli::ui::output::Reply;

/// Show the tasks that the planner proposes, or approve them.
///
/// With config.plan_approval the planner's tasks wait for you. Before you approve you can change them (liza edit-task),
/// drop some (liza abandon-task), or tell the planner what is wrong (liza note): it then plans again.
///
/// In a terminal, --approve shows the plan and asks. With --if-revision, and the revision that liza plan --json prints, it
/// approves exactly what you have read, and is refused if the plan has changed since.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza config plan_approval true
  liza plan
  liza plan --approve
  liza plan --approve retry-core")]
pub(crate) struct Args {
    /// Let coders begin with them.
    #[arg(long)]
    approve: bool,
    /// Only these tasks.
    #[arg(value_name = "TASK", requires = "approve")]
    tasks: Vec<TaskId>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let state = project.store().snapshot()?;
    let proposed: Vec<TaskId> = proposed_tasks(&state).map(|(id, _)| id.clone()).collect();
    if !args.approve {
        return Ok(shown(&state));
    }
    context.human_only("plan --approve")?;
    let tasks = if args.tasks.is_empty() { proposed } else { args.tasks };
    if tasks.is_empty() {
        return Err(CommandError::refused("nothing_to_do", "no plan waits for your approval")
            .hint("liza status shows what the planner does"));
    }
    let seen = match context.if_revision {
        Some(seen) => Some(seen),
        None if at_terminal(context) => Some(confirmed(context, &state, &tasks)?),
        None => None,
    };
    // Compared with the tasks themselves: the rest of the blackboard changes all the time.
    let context = context.without_revision();
    let approved = context.run_in(&project, Finalize { tasks, unchanged_since: seen }, |reply| {
        format!("approved, ready for coders: {}", list(&reply.tasks))
    });
    approved.map_err(|error| match error.code.as_str() {
        "stale_revision" => error.hint("the plan has changed since you read it; read it again: liza plan"),
        _ => error,
    })
}

/// Shows the plan and asks; returns the revision that was seen.
fn confirmed(context: &Context, state: &State, tasks: &[TaskId]) -> Result<Revision, CommandError> {
    let shown = tasks.iter().filter_map(|id| Some((id, state.board.body(id).ok()?.record())));
    let shown: Vec<String> = shown.map(|(id, record)| in_words(id, record)).collect();
    context.screen.out(&shown.join("\n\n"));
    match says_yes(context, &format!("Approve {}?", count(tasks.len(), "task"))) {
        true => Ok(state.board.revision),
        false => Err(CommandError::refused("not_confirmed", "nothing was approved")
            .hint("tell the planner what is wrong: liza note \"...\"")),
    }
}

fn shown(state: &State) -> Reply {
    let tasks: Vec<(&TaskId, &TaskRecord)> =
        proposed_tasks(state).map(|(id, body)| (id, body.record())).collect();
    let text = match tasks.len() {
        0 => "no plan waits for your approval".to_owned(),
        number => {
            let tasks: Vec<String> = tasks.iter().map(|(id, record)| in_words(id, record)).collect();
            let title = format!("{} for you to approve: liza plan --approve", count(number, "task"));
            format!("{title}\n\n{}", tasks.join("\n\n"))
        }
    };
    let tasks: Vec<_> = tasks
        .iter()
        .map(|(id, record)| {
            json!({
                "task": id,
                "description": record.description,
                "done_when": record.done_when,
                "scope": record.scope,
                "spec_ref": record.spec_ref,
                "depends_on": record.depends_on,
                "validation": record.validation,
            })
        })
        .collect();
    Reply::new(text, json!({"proposed": tasks})).at(state.board.revision.0)
}

fn in_words(id: &TaskId, record: &TaskRecord) -> String {
    let line = |name: &str, text: Option<&str>| {
        text.filter(|text| !text.is_empty()).map(|text| format!("\n  {name:<10}  {}", clean(text)))
    };
    let depends: Vec<String> = record.depends_on.iter().flatten().map(ToString::to_string).collect();
    let lines = [
        line("done when", record.done_when.as_deref()),
        line("scope", record.scope.as_deref()),
        line("validated", record.validation.as_ref().map(|commands| commands.join("; ")).as_deref()),
        line("after", Some(&depends.join(", "))),
    ];
    let lines: String = lines.into_iter().flatten().collect();
    let title = paint(BOLD, id.as_str());
    format!("{title}  {}{lines}", clean(record.description.as_deref().unwrap_or_default()))
}

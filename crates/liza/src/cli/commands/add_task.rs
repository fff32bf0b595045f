//! `liza add-task`: the planner adds a task.

use liza_core::model::{Impact, LEASE, Seconds, Status, TaskId};
use liza_core::protocol::{AddTask, NewTask};

use crate::cli::context::Context;
use crate::cli::input::{Tasks, Text, impact};
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Add a task.
///
/// It is claimable at once. With --draft it becomes claimable with `liza finalize`, together with the rest of the plan.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza add-task --id retry-orders --desc \"Retry order calls\" --spec specs/retry.md#orders \\
    --done \"create_order retries 3 times on 5xx\" --scope \"order client only\" --depends retry-core \\
    --validate \"cargo test -p orders retry\"")]
pub(crate) struct Args {
    /// ID of the task: kebab-case, such as retry-orders.
    #[arg(long, value_name = "ID")]
    id: TaskId,
    /// What to build, in one or two sentences.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    desc: Text,
    /// The specification: a file in the project, with an optional #anchor.
    #[arg(long, value_name = "REF")]
    spec: Option<String>,
    /// How to tell that it is done; must be testable.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    done: Option<Text>,
    /// What is part of the task, and what is not.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    scope: Option<Text>,
    /// A command that shows that it is done; Liza runs it before each review. Can be given again and again.
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    validate: Vec<String>,
    /// Priority, from 1 (highest) to 5 (lowest); default 3.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// normal, or high: then two code reviewers have to approve the work. Facts about it can raise it later.
    #[arg(long, value_name = "IMPACT", value_parser = impact)]
    impact: Option<Impact>,
    /// Tasks that must be MERGED first.
    #[arg(long, value_name = "ID,…", default_value = "", hide_default_value = true)]
    depends: Tasks,
    /// Keep it a DRAFT until `liza finalize`.
    #[arg(long)]
    draft: bool,
    /// Make it a stretch task: the sprint can complete without it.
    #[arg(long)]
    stretch: bool,
    /// How often one coder may claim it; overrides the config.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    max_iterations: Option<u32>,
    /// How many rejections one coder may have; overrides the config.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    max_review_cycles: Option<u32>,
    /// Length of a lease on it, in seconds (10 to 86400); overrides the config.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(LEASE.min..=LEASE.max))]
    lease: Option<u64>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let task = args.id;
    let new = NewTask {
        description: args.desc.read(context)?,
        spec_ref: args.spec,
        done_when: Text::read_some(args.done, context)?,
        scope: Text::read_some(args.scope, context)?,
        priority: args.priority,
        impact: args.impact,
        depends_on: args.depends.0,
        draft: args.draft,
        stretch: args.stretch,
        max_iterations: args.max_iterations,
        max_review_cycles: args.max_review_cycles,
        lease: args.lease.map(Seconds),
        validate: args.validate,
    };
    let (name, draft) = (task.clone(), new.draft);
    let waits = new.depends_on.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    let added = context.run(AddTask { task, new }, |reply| match reply.status {
        Some(Status::Draft) if !draft => format!("{name} proposed: the human approves the plan"),
        Some(Status::Draft) => format!("{name} added as a DRAFT; to make it claimable: liza finalize {name}"),
        _ if waits.is_empty() => format!("{name} added: UNCLAIMED, ready for a coder"),
        _ => format!("{name} added: UNCLAIMED; it waits for {waits}"),
    });
    added.map_err(|error| match error.code.as_str() {
        // The rule's own hint is edit-task, but this task does not exist yet.
        "gates_missing" => error.hint("add --spec, --done and --scope, or add --draft to complete it later"),
        _ => error,
    })
}

//! `liza goal`: shows, ends or states the goal.

use clap::Subcommand;
use liza_core::model::{Goal, GoalStatus, Section, StopFile};
use liza_core::protocol::{AbortGoal, CompleteGoal, NewGoal};
use liza_status::view::view;
use liza_team::observe::last_run::last_run;
use liza_team::observe::observe;
use liza_team::project::{Project, now};
use serde_json::json;

use crate::cli::confirm::{GOAL_ENDS, confirm_end};
use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::spec_path;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Show the goal, end it, or state a new one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza goal
  liza goal complete
  liza goal new \"Make the API idempotent\" --spec specs/idempotency.md")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<GoalVerb>,
}

#[derive(Debug, Subcommand)]
enum GoalVerb {
    /// Show the goal and its alignment history.
    Show,
    /// Complete the goal; no task may be open.
    Complete,
    /// Abort the goal and stop all agents permanently; asks first in a terminal.
    Abort {
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// State the next goal; the tasks and the sprint of the last one are archived.
    New(New),
}

#[derive(Debug, clap::Args)]
struct New {
    /// What you want.
    #[arg(allow_hyphen_values = true)]
    goal: Text,
    /// The vision document; default the one of the last goal.
    #[arg(long, value_name = "PATH")]
    spec: Option<String>,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    match args.verb.unwrap_or(GoalVerb::Show) {
        GoalVerb::Show => show(context),
        GoalVerb::Complete => complete(context),
        GoalVerb::Abort { yes } => {
            confirm_end(context, yes, GOAL_ENDS)?;
            context.run(AbortGoal, |_| {
                "the goal is ABORTED: all agents stop now. Start over: liza goal new \"GOAL\"".into()
            })
        }
        GoalVerb::New(new) => state_new(new, context),
    }
}

fn complete(context: &Context) -> Result<Reply, CommandError> {
    context.run(CompleteGoal, |_| {
        "the goal is COMPLETED. Review it: liza diff. Take it: liza finish. Next goal: liza goal new \"GOAL\"".into()
    })
}

fn state_new(new: New, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("goal new")?;
    let project = context.project()?;
    let spec_ref = new.spec.map(|spec| spec_path::within(project.root(), &spec)).transpose()?;
    if let Some(missing) = spec_ref.as_ref().filter(|spec| !spec_path::exists(project.root(), spec)) {
        return Err(spec_path::missing(missing));
    }
    let old_vision = if spec_ref.is_none() { vision_of_last_goal(&project)? } else { None };
    let not_taken = result_that_is_not_taken(&project)?;
    let command = NewGoal { description: new.goal.read(context)?, spec_ref };
    let done = context.execute(&project, command)?;
    let files = project.stop_files();
    let present = StopFile::ALL.into_iter().filter(|file| files.contains(*file)).map(StopFile::name);
    let present: Vec<&str> = present.collect();
    let next = match present.first() {
        // Otherwise the planner would not start, without any message.
        Some(file) => format!(".liza/{file} is still present; to let the planner start: liza resume"),
        None => format!("Start the team: {}", last_run(&project).run),
    };
    let mut text = format!("{} is set. {next}", done.reply.goal);
    if let Some(vision) = old_vision {
        text.push_str(&format!(
            "\n{vision} is still that of the last goal: change it before the planner reads it"
        ));
    }
    if let Some(goal) = not_taken {
        text.push_str(&format!("\nThe result of {goal} is not taken yet: liza finish --unfinished"));
    }
    let mut reply = context.reply(&done, text);
    reply.result["stop_files"] = json!(present);
    Ok(reply)
}

/// The goal that is reached and whose result is still only on the integration branch.
fn result_that_is_not_taken(project: &Project) -> Result<Option<String>, CommandError> {
    let state = project.state()?;
    let shown = view(&state, &observe(project, &state, now()), now());
    let taken = shown.result_is_taken();
    let reached = shown.goal.filter(|goal| goal.status == GoalStatus::Completed && !taken);
    Ok(reached.map(|goal| goal.id))
}

/// The vision document that was written for the goal before, which the next one keeps.
fn vision_of_last_goal(project: &Project) -> Result<Option<String>, CommandError> {
    let state = project.store().snapshot()?;
    let last = state.board.goal.ready().filter(|goal| !goal.description.trim().is_empty());
    let vision = last.and_then(|goal| goal.spec_ref.clone());
    Ok(vision.filter(|vision| spec_path::exists(project.root(), vision)))
}

fn show(context: &Context) -> Result<Reply, CommandError> {
    let state = context.project()?.store().snapshot()?;
    let goal = state.board.goal.get(Section::Goal)?;
    let history = &state.journal.alignment_history;
    let mut lines = vec![format!("{}  {}  {}", goal.id, goal.status, said(goal))];
    lines.extend(goal.spec_ref.iter().map(|spec| format!("spec  {spec}")));
    let times = context.screen.local_time();
    for entry in history {
        let text = entry.summary.trim().replace('\n', "\n  ");
        lines.push(format!("\n{}  {}\n  {text}", times.full(entry.timestamp), entry.event));
    }
    let result = json!({"goal": goal, "alignment_history": history});
    Ok(Reply::new(lines.join("\n"), result).at(state.board.revision.0))
}

fn said(goal: &Goal) -> &str {
    match goal.description.trim() {
        "" => "(not stated yet: liza goal new \"GOAL\")",
        text => text,
    }
}

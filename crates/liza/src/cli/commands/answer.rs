//! `liza answer`: the human answers what a task is waiting for.

use liza_core::model::{Status, TaskId};
use liza_core::protocol::{Answer, Answered};

use liza_team::observe::last_run::last_run;
use liza_team::run::is_team_running;

use crate::cli::context::Context;
use crate::cli::input::Text;
use crate::cli::task_name::meant_task;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Answer an agent's question about a task.
///
/// The agents of the task get the answer with their next prompt. A BLOCKED task goes back to its coder, unless two
/// coders failed at it: then the planner decides with your answer. Refills the task's session budget.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  liza answer retry-orders \"Three times, then give up with exit code 4\"")]
pub(crate) struct Args {
    /// The task: its ID, or the beginning of it.
    task: TaskId,
    /// The answer; - reads it from standard input.
    #[arg(allow_hyphen_values = true)]
    text: Text,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let state = project.store().snapshot()?;
    let task = meant_task(&state.board, args.task)?;
    let command = Answer { task, text: args.text.read(context)? };
    let (is_stopped, runs) = (project.stop_files().strongest().is_some(), is_team_running(&project, &state)?);
    context.run_in(&project, command, |answered| match (answered.unblocked, is_stopped, runs) {
        (true, true, _) => format!("{}, after liza resume", said(answered)),
        (true, false, false) if answered.status != Some(Status::Draft) => {
            let run = last_run(&project).run;
            format!("answered; no team is running. To continue {}: {run}", answered.task)
        }
        _ => said(answered),
    })
}

/// The fate of the answer, in words.
fn said(answered: &Answered) -> String {
    let Answered { task, status, unblocked, coder, coder_is_present, coder_works_on } = answered;
    match (unblocked, status, coder) {
        (true, Some(Status::Draft), _) => format!("answered; {task} waits for your approval: liza plan"),
        (true, _, Some(coder)) if *coder_is_present => match coder_works_on {
            Some(other) => format!("answered; the next free coder takes {task}: {coder} works on {other}"),
            None => format!("answered; {coder} continues {task}"),
        },
        (true, _, _) => format!("answered; the next free coder takes {task}"),
        (false, Some(Status::Blocked), _) => {
            format!("answered; two coders failed at {task}, so the planner decides with your answer")
        }
        (false, _, _) => format!("noted, for the agents of {task}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: UI-03
    #[test]
    fn a_coder_continues_only_if_it_can() {
        let said_of = |coder_is_present: bool, coder_works_on: Option<&str>| {
            said(&Answered {
                task: "t1".parse().unwrap(),
                status: Some(Status::Unclaimed),
                unblocked: true,
                coder: "coder-1".parse().ok(),
                coder_is_present,
                coder_works_on: coder_works_on.map(|task| task.parse().unwrap()),
            })
        };
        assert_eq!(said_of(true, None), "answered; coder-1 continues t1");
        assert_eq!(said_of(true, Some("t2")), "answered; the next free coder takes t1: coder-1 works on t2");
        assert_eq!(said_of(false, None), "answered; the next free coder takes t1");
    }
}

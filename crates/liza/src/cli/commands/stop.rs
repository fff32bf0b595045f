//! `liza stop`: ends the team that runs in this project, wherever it was started.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::cli::context::Context;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;
use crate::project::Project;
use crate::run::{AlreadyRunning, RunLock};
use crate::sys::process::interrupt;

/// How often to look whether the team has ended.
const POLL: Duration = Duration::from_millis(50);

/// How long a team has at most: each session gets its stop_grace, and git may be at work.
const LONGEST: Duration = Duration::from_secs(300);

/// Stop the team that runs in this project.
///
/// Does what Ctrl-C does in the team's terminal: sessions end cleanly, claims are kept, and the next liza run resumes them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza stop
  liza stop --now")]
pub(crate) struct Args {
    /// Kill the sessions at once; what they have committed is kept.
    #[arg(long)]
    now: bool,
}

/// Runs it.
pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    context.human_only("stop")?;
    let project = context.project()?;
    let Some(team) = RunLock::holder(&project)? else {
        let text = "no team is running here".to_owned();
        return Ok(Reply::new(text, json!({"stopped": false})));
    };
    let Some(process) = team.process() else {
        return Err(CommandError::refused("just_started", team.to_string()).hint("try again: liza stop"));
    };
    signal(process)?;
    if args.now {
        // The second signal is the second Ctrl-C. The team has to have seen the first one.
        thread::sleep(Duration::from_millis(500));
        if RunLock::holder(&project)?.as_ref() == Some(&team) {
            signal(process)?;
        }
    } else {
        context.screen.note("stopping: sessions may take a moment to end; at once: liza stop --now");
    }
    wait(&project, &team)?;
    Ok(Reply::new(
        "the team has stopped; to continue: liza run, with the same options",
        json!({"stopped": true, "process": process}),
    ))
}

fn signal(process: u32) -> Result<(), CommandError> {
    interrupt(process).map_err(|error| {
        let message = format!("process {process} cannot be stopped: {error}");
        CommandError::refused("not_stopped", message).hint("liza status shows whether it still runs")
    })
}

fn wait(project: &Project, team: &AlreadyRunning) -> Result<(), CommandError> {
    let deadline = Instant::now() + LONGEST;
    while RunLock::holder(project)?.as_ref() == Some(team) {
        if Instant::now() >= deadline {
            let message = format!("the team still runs after {} s: {}", LONGEST.as_secs(), team.holder);
            return Err(CommandError::refused("not_stopped", message).hint("liza stop --now"));
        }
        thread::sleep(POLL);
    }
    Ok(())
}

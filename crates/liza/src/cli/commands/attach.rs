//! `liza attach`: shows the team that runs in the background.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use liza_host::durable::{self, Open};
use liza_team::observe::last_run::last_run;
use liza_team::project::Project;
use liza_team::run::{AlreadyRunning, RunLock, detached};
use serde_json::{Value, json};
use signal_hook::consts::SIGINT;
use signal_hook::flag;

use crate::cli::context::Context;
use crate::cli::live_screen;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::clean;
use crate::cli::ui::output::Reply;
use crate::cli::ui::theme_name::ThemeName;

/// The interval at which the output is read again.
const POLL: Duration = Duration::from_millis(300);

/// Show the team that runs in the background.
///
/// In a terminal with the screen of liza tui, else as the lines that the team prints. Ctrl-C leaves the team running;
/// to end it: liza stop.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza run --detach
  liza attach")]
pub(crate) struct Args {
    /// Plain lines instead of the screen.
    #[arg(long)]
    plain: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let running = RunLock::holder(&project)?;
    let path = detached::output_file(&project);
    let Ok(mut file) = durable::open(Open::Read, &path) else {
        return Err(nothing(&project, running.as_ref()));
    };
    if running.is_some() && !args.plain && live_screen::is_possible(context) {
        live_screen::show_team(context, &project, ThemeName::Auto)?;
        return left(&project);
    }
    if context.screen.json {
        let running = running.map(|team| team.holder);
        return Ok(Reply::new("", json!({"running": running, "output": path})));
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    let watched = flag::register(SIGINT, Arc::clone(&interrupted));
    watched.map_err(|error| CommandError::refused("io", format!("cannot wait for Ctrl-C: {error}")))?;
    if running.is_none() {
        let run = in_background(&project);
        context.screen.note(&format!("no team is running; to start one: {run}. The last one printed:"));
    }
    loop {
        // Asked before the last reading, so that the last output is shown.
        let running = RunLock::holder(&project)?.is_some();
        let mut bytes = Vec::new();
        let read = file.read_to_end(&mut bytes);
        read.map_err(|error| {
            CommandError::refused("io", format!("cannot read {}: {error}", path.display()))
        })?;
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<String> = text.lines().map(clean).collect();
        if (!lines.is_empty() && !context.screen.stream(&lines.join("\n"))) || !running {
            return Ok(Reply::already_written());
        }
        if interrupted.load(Ordering::Relaxed) {
            return left(&project);
        }
        thread::sleep(POLL);
    }
}

/// The state of the team, for a person who has left the screen.
fn left(project: &Project) -> Result<Reply, CommandError> {
    let text = match RunLock::holder(project)? {
        Some(_) => "the team goes on; end it: liza stop",
        None => "the team has ended: liza status",
    };
    Ok(Reply::new(text, Value::Null))
}

/// The command that starts a team like the last one, without a terminal.
fn in_background(project: &Project) -> String {
    format!("{} --detach", last_run(project).run)
}

fn nothing(project: &Project, running: Option<&AlreadyRunning>) -> CommandError {
    match running {
        Some(team) => {
            CommandError::refused("not_detached", format!("the team has a terminal: {}", team.holder))
                .hint("what happens: liza status, liza log -f, liza tail AGENT")
        }
        None => CommandError::refused("no_team", "no team is running here").hint(in_background(project)),
    }
}

//! `liza tail`: the session of an agent or on a task, for a person; live, or the last one.

use std::io;
use std::path::Path;
use std::time::Duration;

use liza_agents::providers::stream::EventStream;
use liza_core::model::{AgentId, IdError};
use liza_core::rules::sessions::{is_in_session, is_in_session_on};
use liza_team::observe::activity::{OutputOf, format_of_output, newest_output};
use liza_team::project::Project;
use liza_team::project::machine::runs_here;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::task_name::meant_task;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::layout::{CYAN, DIM, RED, paint, printable};
use crate::cli::ui::output::Reply;
use crate::cli::ui::session_output::{RenderedKind, RenderedLine, SessionOutput};

/// Show what an agent's or a task's session does; follows it while it runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza tail coder-1
  liza tail retry-orders       # the last session on this task
  liza tail code-reviewer-1 --last 20
  liza tail planner-1 --no-follow")]
pub(crate) struct Args {
    /// The agent, such as coder-1, or a task (its ID, or the beginning of it).
    #[arg(value_name = "AGENT|TASK", value_parser = output_of)]
    of: OutputOf,
    /// Begin with the last N lines.
    #[arg(long, short = 'n', value_name = "N")]
    last: Option<usize>,
    /// Print what is there and end.
    #[arg(long)]
    no_follow: bool,
}

impl Args {
    /// True if it keeps printing.
    pub(crate) fn follows(&self) -> bool {
        !self.no_follow
    }
}

/// The interval at which the output is read again.
const POLL: Duration = Duration::from_millis(300);

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let args = Args { of: meant(&project, args.of)?, ..args };
    let newest = newest_output(&project, &args.of);
    let agent = match (&newest, &args.of) {
        (Some((agent, _)), _) => Some(*agent),
        (None, OutputOf::Agent(agent)) => Some(*agent),
        (None, OutputOf::Task(_)) => None,
    };
    let machine = agent.and_then(|agent| other_machine(&project, agent));
    let Some((agent, path)) = newest.filter(|_| machine.is_none()) else {
        return Err(nothing_to_show(&project, &args.of, machine));
    };
    let state = project.store().snapshot()?;
    let stream = EventStream::new(format_of_output(&state, agent, &path));
    let mut output = SessionOutput::open(&path, stream).map_err(no_output(&path))?;
    let read = |lines: Vec<RenderedLine>| lines.iter().map(painted).collect::<Vec<String>>();
    let mut lines = output.read_new().map(read).map_err(no_output(&path))?;
    let follows = args.follows() && !context.screen.json && is_running(&project, agent, &args.of);
    if !follows {
        lines.extend(read(output.finish()));
    }
    if let Some(last) = args.last {
        lines.drain(..lines.len().saturating_sub(last));
    }
    if !follows {
        let result = json!({"agent": agent.to_string(), "output": path, "lines": plain(&lines)});
        return Ok(Reply::new(lines.join("\n"), result));
    }
    while context.screen.stream(&lines.join("\n")) {
        // Asked before the last reading, so that the last output is shown.
        let running = is_running(&project, agent, &args.of)
            && newest_output(&project, &args.of).is_some_and(|(_, newest)| newest == path);
        lines = output.read_new().map(read).map_err(no_output(&path))?;
        if !running {
            lines.extend(read(output.finish()));
            let _ = context.screen.stream(&lines.join("\n"));
            break;
        }
        std::thread::sleep(POLL);
    }
    Ok(Reply::already_written())
}

/// The agent, or the task whose ID begins so.
fn meant(project: &Project, of: OutputOf) -> Result<OutputOf, CommandError> {
    match of {
        OutputOf::Agent(_) => Ok(of),
        OutputOf::Task(task) => Ok(OutputOf::Task(meant_task(&project.store().snapshot()?.board, task)?)),
    }
}

/// The machine on which the agent's supervisor runs, if it is another one: output of an earlier session here would mislead.
fn other_machine(project: &Project, agent: AgentId) -> Option<String> {
    let state = project.state().ok()?;
    let entry = state.board.agents.ready()?.get(&agent)?;
    entry.machine.clone().filter(|_| !runs_here(project.folder(), entry))
}

/// The reason why there is nothing to show: prompts and outputs stay on the machine of the session.
fn nothing_to_show(project: &Project, of: &OutputOf, machine: Option<String>) -> CommandError {
    let is_known = |agent: &AgentId| {
        project
            .state()
            .is_ok_and(|state| state.board.agents.ready().is_some_and(|all| all.contains_key(agent)))
    };
    let (name, whose) = match of {
        OutputOf::Agent(agent) => (agent.to_string(), format!("of {agent}")),
        OutputOf::Task(task) => (task.to_string(), format!("on {task}")),
    };
    match machine {
        Some(machine) => {
            let message = format!("the last session {whose} ran on {machine}; its output stays there");
            CommandError::refused("no_output", message).hint(format!("on {machine}: liza tail {name}"))
        }
        None => {
            let message = match of {
                OutputOf::Agent(agent) if !is_known(agent) => {
                    format!("there is no agent {agent}, and none of that name has printed anything")
                }
                OutputOf::Agent(_) | OutputOf::Task(_) => {
                    format!("no session {whose} has printed anything yet")
                }
            };
            CommandError::refused("no_output", message).hint("liza status lists the agents and the tasks")
        }
    }
}

fn output_of(text: &str) -> Result<OutputOf, IdError> {
    match text.parse() {
        Ok(agent) => Ok(OutputOf::Agent(agent)),
        Err(_) => text.parse().map(OutputOf::Task),
    }
}

/// True while the session runs: also one that has submitted, or has given its verdict.
fn is_running(project: &Project, agent: AgentId, of: &OutputOf) -> bool {
    let Ok(state) = project.state() else { return false };
    let board = &state.board;
    let Some(entry) = board.agents.ready().and_then(|agents| agents.get(&agent)) else { return false };
    let runs = match of {
        OutputOf::Agent(_) => is_in_session(board, agent, entry),
        OutputOf::Task(task) => is_in_session_on(board, agent, entry, task),
    };
    runs && entry.holds(liza_team::project::now())
}

fn plain(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| printable(line, false)).collect()
}

fn no_output(path: &Path) -> impl Fn(io::Error) -> CommandError {
    move |error| CommandError::refused("no_output", format!("cannot read {}: {error}", path.display()))
}

/// A line in the colours of the command line.
fn painted(line: &RenderedLine) -> String {
    let text = &line.text;
    match line.kind {
        RenderedKind::Text => text.clone(),
        RenderedKind::Tool => format!("{} {text}", paint(CYAN, "▸")),
        RenderedKind::Answer | RenderedKind::Note | RenderedKind::Hint => paint(DIM, text),
        RenderedKind::Refusal | RenderedKind::Fault => paint(RED, text),
    }
}

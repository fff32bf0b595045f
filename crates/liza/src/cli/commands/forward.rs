//! `liza forward`: a port of this machine that leads to a server in a session's room.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};

use liza_core::model::{AgentId, AgentRecord, Board, Refusal, Role, TaskId};
use liza_core::rules::sessions::is_in_session_on;
use liza_sandbox::confine::{Confined, Forwarding, Level, recorded_session};
use liza_team::project::machine::runs_here;
use liza_team::project::{Project, now};
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::task_name::meant_task;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::output::Reply;

/// Reach a server that a task's session has started.
///
/// In a room, `localhost` is the session's own: your browser does not reach a dev server that an agent has started there, or that
/// you have started in liza shell. While this command runs, a port of your machine leads to it, for programs on your machine
/// only. It ends with the session, or with Ctrl-C. The agent's server is code that nobody has reviewed: what you open runs in
/// your browser.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza forward retry-orders 3000
  liza forward retry-orders 3000 --at 8080    # port 3000 is taken here
  liza forward retry-orders 3000 --shell      # you have started it in liza shell")]
pub(crate) struct Args {
    /// The task: its ID, or the beginning of it.
    task: TaskId,
    /// The port at which the session's server listens.
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// The port on your machine; default: the same.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    at: Option<u16>,
    /// The server runs in your liza shell on the task.
    #[arg(long)]
    shell: bool,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let state = project.store().snapshot()?;
    let task = meant_task(&state.board, args.task)?;
    let agent = if args.shell { None } else { Some(worker(&project, &state.board, &task, args.port)?) };
    let of = agent.map_or(Confined::Shell(&task), Confined::Session);
    let name = agent.map_or_else(|| "your shell".to_owned(), |agent| format!("{agent}'s session"));
    let missing = || if args.shell { no_shell(&task) } else { no_session(&task) };
    let Some(session) = recorded_session(project.folder(), of) else {
        return Err(missing());
    };
    if session.level != Level::Isolated {
        let message = format!("{name} has no network of its own, so nothing is to be forwarded");
        let hint = format!("its server is reachable directly: http://127.0.0.1:{}", args.port);
        return Err(CommandError::refused("no_private_network", message).hint(hint));
    }
    let at = args.at.unwrap_or(args.port);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, at)).map_err(|error| {
        let is_taken = error.kind() == ErrorKind::AddrInUse;
        let why = if is_taken { "it is taken".to_owned() } else { error.to_string() };
        let hint = format!("choose another one: liza forward {task} {} --at PORT", args.port);
        CommandError::refused("port_taken", format!("port {at} of this machine cannot be used: {why}"))
            .hint(hint)
    })?;
    // The session may have ended meanwhile.
    let forwarding = Forwarding::start(&context.program, listener, &session, args.port).map_err(|error| {
        let ended = missing();
        CommandError { message: format!("{} ({error})", ended.message), ..ended }
    })?;
    let whose = format!("port {} of {name} on {task}", args.port);
    if !context.screen.json {
        context.screen.stream(&format!("http://127.0.0.1:{at} leads to {whose}; Ctrl-C ends it"));
    }
    let refused = || context.screen.note(&format!("liza: nothing listens at {whose}"));
    let ended = forwarding.wait(refused);
    ended.map_err(|error| CommandError::refused("io", format!("forwarding has failed: {error}")))?;
    let agent = agent.map(|agent| agent.to_string());
    let result = json!({"task": task, "agent": agent, "port": args.port, "at": at});
    Ok(Reply::new(format!("{name} on {task} has ended"), result))
}

/// The agent whose session is about the task, on this machine; a coder before a reviewer.
fn worker(project: &Project, board: &Board, task: &TaskId, port: u16) -> Result<AgentId, CommandError> {
    board.body(task)?;
    let works = |(agent, entry): &(&AgentId, &AgentRecord)| {
        is_in_session_on(board, **agent, entry, task) && entry.holds(now())
    };
    let working = board.agents.ready().into_iter().flatten().filter(works);
    let found = working.min_by_key(|(agent, _)| agent.role() != Role::Coder);
    let (agent, entry) = found.ok_or_else(|| no_session(task))?;
    match entry.machine.clone().filter(|_| !runs_here(project.folder(), entry)) {
        Some(machine) => {
            let hint = format!("on {machine}: liza forward {task} {port}");
            Err(CommandError::from(Refusal::OtherMachine { agent: *agent, machine }).hint(hint))
        }
        None => Ok(*agent),
    }
}

fn no_shell(task: &TaskId) -> CommandError {
    let hint = format!("open one in another terminal: liza shell {task}");
    CommandError::refused("no_session", format!("no shell of yours is open on {task}")).hint(hint)
}

fn no_session(task: &TaskId) -> CommandError {
    let hint = format!(
        "it has one while an agent works on it: liza status; to run its code yourself: liza shell {task}"
    );
    CommandError::refused("no_session", format!("{task} has no session on this machine now")).hint(hint)
}

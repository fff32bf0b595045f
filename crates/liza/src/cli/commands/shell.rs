//! `liza shell`: a person's shell in the worktree of a task, confined as its coder.

use std::path::PathBuf;

use liza_agents::providers::Provider;
use liza_core::model::{Board, Refusal, Role, State, TaskId};
use liza_core::rules::sessions::is_in_session_on;
use liza_sandbox::sys::process::is_in_foreground;
use liza_sandbox::sys::terminal::PersonsTerminal;
use liza_team::project::Project;
use liza_team::project::machine::runs_here;
use liza_team::session::shell::{Shell, ShellError};

use crate::cli::agent_programs::default_client;
use crate::cli::context::Context;
use crate::cli::task_name::meant_task;
use crate::cli::ui::error::CommandError;
use crate::cli::ui::exit_code::Exit;
use crate::cli::ui::output::Reply;

use super::agent::check_confinement;

/// Open a shell in the worktree of a task, confined as its coder.
///
/// Use it to look at an agent's files, build them and run them: the shell reads, writes and reaches what the coder's sessions
/// do, and nothing else of yours, so what an agent has written does not run with your rights. It has no key and no login, and
/// commands of Liza do not work in it. A session that works there goes on. The shell is $SHELL; what it has started ends
/// with it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  liza shell retry-orders
  liza shell retry             # the beginning of its ID")]
pub(crate) struct Args {
    /// The task: its ID, or the beginning of it.
    task: TaskId,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<Reply, CommandError> {
    let project = context.project()?;
    let state = project.store().snapshot()?;
    let task = meant_task(&state.board, args.task)?;
    check_worktree(&project, &state.board, &task)?;
    let config = state.board.config()?;
    let level = check_confinement(context, &project, config, [Role::Coder])?;
    let terminal = is_in_foreground().then(PersonsTerminal::open).flatten().ok_or_else(|| {
        CommandError::refused("no_terminal", "the shell needs a terminal")
            .hint("to see a task's change without one: liza diff TASK; to run a command of yours: liza check -- COMMAND")
    })?;
    let provider = Provider::choose_or(config, Role::Coder, None, default_client(context))?;
    context.screen.note(&format!("liza: a shell for {task}, confinement {level}; `exit` ends it"));
    if let Some(agent) = worker(&state, &task) {
        context.screen.note(&format!("liza: {agent} works in the same files now: liza tail {agent}"));
    }
    let (liza, program) = (&context.program, program(context));
    let shell = Shell { project: &project, config, task: &task, provider: &provider, liza, program };
    let code = shell.run(terminal)?;
    restore_settings(&project, &task);
    Ok(Reply::already_written().exit(Exit::Session(code)))
}

/// Refuses where there is no worktree on this machine.
fn check_worktree(project: &Project, board: &Board, task: &TaskId) -> Result<(), CommandError> {
    let coder = board.body(task)?.record().assigned_to;
    let entry = coder.and_then(|coder| Some((coder, board.agents.ready()?.get(&coder)?)));
    if let Some((agent, entry)) = entry.filter(|(_, entry)| !runs_here(project.folder(), entry))
        && let Some(machine) = entry.machine.clone()
    {
        let hint = format!("on {machine}: liza shell {task}; what it has sent so far: liza diff {task}");
        return Err(CommandError::from(Refusal::OtherMachine { agent, machine }).hint(hint));
    }
    if project.repo()?.worktree_path(task).is_dir() {
        return Ok(());
    }
    let hint = format!("it gets one when a coder takes it; liza show {task} says where it is");
    Err(CommandError::refused("no_worktree", format!("{task} has no worktree")).hint(hint))
}

/// The agent whose session works in the worktree now.
fn worker(state: &State, task: &TaskId) -> Option<String> {
    let board = &state.board;
    let agent = board.body(task).ok()?.record().assigned_to?;
    let entry = board.agents.ready()?.get(&agent)?;
    let works = is_in_session_on(board, agent, entry, task) && entry.holds(liza_team::project::now());
    works.then(|| agent.to_string())
}

/// The person's own shell, if its name can be a program's.
fn program(context: &Context) -> PathBuf {
    let named = context.environment.raw("SHELL").map(PathBuf::from);
    named.filter(|shell| shell.is_absolute() && shell.is_file()).unwrap_or_else(|| "/bin/sh".into())
}

/// Writes the settings of the worktree's git as they were made, as after a session; one that runs there does it at its end.
fn restore_settings(project: &Project, task: &TaskId) {
    let works = project.store().snapshot().is_ok_and(|state| worker(&state, task).is_some());
    if !works {
        let _ = project.repo().and_then(|repo| repo.restore_settings(task));
    }
}

impl From<ShellError> for CommandError {
    fn from(error: ShellError) -> Self {
        match error {
            ShellError::Git(error) => error.into(),
            ShellError::Provider(error) => error.into(),
            ShellError::Io(error) => {
                CommandError::refused("confinement", format!("cannot start the shell: {error}"))
                    .hint("for details: liza doctor")
            }
        }
    }
}

//! What every command is given: the global options, the project, the caller.

use std::io;
use std::path::{Path, PathBuf};

use liza_core::agent::Actor;
use liza_core::board::Section;
use liza_core::effect::Effect;
use liza_core::ids::{Revision, TaskId};
use liza_core::value::Fields;
use liza_core::{Command, Refusal};
use liza_store::Notice;

use crate::effects::{remove_worktree, run_halts, to_remove};
use crate::git::{Branch, Rescue};
use crate::project::{AGENT_GENERATION, AGENT_ID, Project, actor_from, now};
use crate::work::Work;

use super::error::CommandError;
use super::exit_code::Exit;
use super::output::{Reply, Screen, to_json};

/// The options that every command takes.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// Run as if started in DIR.
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(super) directory: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print nothing on success.
    #[arg(long, short, global = true)]
    pub(super) quiet: bool,
    /// When to use colour: auto, always or never.
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    pub(super) color: super::output::Color,
    /// Refuse to write when the target has changed since revision N.
    #[arg(long, value_name = "N", global = true)]
    pub(super) if_revision: Option<u64>,
}

/// What every command is given.
#[derive(Debug)]
pub(super) struct Context {
    /// Where the command runs.
    pub(super) directory: PathBuf,
    /// How to write.
    pub(super) screen: Screen,
    /// What the caller had read.
    pub(super) if_revision: Option<Revision>,
}

/// What a submitted command came to.
#[derive(Debug)]
pub(super) struct Submitted {
    /// The revision that now stands.
    pub(super) revision: u64,
    /// What the rules told.
    pub(super) reply: Fields,
}

impl Context {
    /// Resolves the options.
    pub(super) fn new(global: &Global) -> Result<Self, CommandError> {
        let screen = Screen { json: global.json, quiet: global.quiet, color: global.color };
        let here = std::env::current_dir().map_err(|error| no_directory(Path::new("."), &error))?;
        let directory = match &global.directory {
            Some(folder) => enter(&here, folder)?,
            None => here,
        };
        Ok(Self { directory, screen, if_revision: global.if_revision.map(Revision) })
    }

    /// The project that the command runs in.
    pub(super) fn project(&self) -> Result<Project, CommandError> {
        let root = Project::find(&self.directory).ok_or_else(|| CommandError::no_project(&self.directory))?;
        Ok(Project::open(&root)?)
    }

    /// Who calls.
    pub(super) fn actor(&self) -> Result<Actor, CommandError> {
        let variable = |name| std::env::var(name).ok();
        actor_from(variable(AGENT_ID).as_deref(), variable(AGENT_GENERATION).as_deref()).map_err(|message| {
            let hint = "unset both to act as a person, or start the agent with `liza agent`";
            CommandError::refused("bad_agent_id", message).hint(hint)
        })
    }

    /// Submits a command in the caller's name and does in the world what follows from it.
    pub(super) fn submit(&self, project: &Project, command: Command) -> Result<Submitted, CommandError> {
        let outcome = project.submit(self.actor()?, self.if_revision, command)?;
        self.tell_notices(&outcome.notices);
        let done = run_halts(project, &outcome.effects)
            .map_err(|error| CommandError::refused("effect", error.to_string()).exit(Exit::Inconsistent));
        self.remove_worktrees(project, &outcome.effects);
        if let Some(refusal) = outcome.refusal {
            return Err(refusal.into());
        }
        done?;
        Ok(Submitted { revision: outcome.revision.0, reply: outcome.reply })
    }

    /// Tells an agent that its context is nearly used up, whatever it has called: an answer is what every client reads.
    /// Nothing is told where it cannot be known.
    pub(super) fn remind(&self) {
        let Ok(Actor::Agent(agent, generation)) = self.actor() else { return };
        let Some(project) = Project::find(&self.directory).and_then(|root| Project::open(&root).ok()) else {
            return;
        };
        let Ok(board) = project.store().read_parts(&[Section::Agents], &[]) else { return };
        let entry = board.agents.ready().and_then(|agents| agents.get(&agent));
        let own = entry.filter(|entry| entry.generation == Some(generation));
        if let Some(percent) = own.and_then(|entry| entry.context_used_up(now())) {
            let task = own.and_then(|entry| entry.current_task.as_ref()).map_or("TASK", TaskId::as_str);
            self.screen
                .note(&format!("liza: {percent} % of your context is used; commit, hand over and stop:"));
            self.screen.note(&format!("  liza handoff {task} --summary \"…\" --next-action \"…\""));
        }
    }

    /// Tells what the store settled on the way.
    pub(super) fn tell_notices(&self, notices: &[Notice]) {
        for notice in notices {
            self.screen.note(&format!("liza: {}", in_words(notice)));
        }
    }

    /// Removes worktrees that nobody needs any more. A failure is told, not returned: the blackboard has been
    /// written, and `recover` does what was left.
    fn remove_worktrees(&self, project: &Project, effects: &[Effect]) {
        for task in to_remove(effects) {
            match remove_worktree(project, task) {
                Ok(rescue) => self.tell_rescue(task, rescue.as_ref()),
                Err(error) => {
                    self.screen.note(&format!("liza: the worktree of {task} is still there: {error}"));
                    self.screen.note("  hint: liza recover");
                }
            }
        }
    }

    /// Work in the caller's name, where blackboard and git take turns.
    pub(super) fn work<'p>(&self, project: &'p Project) -> Result<Work<'p>, CommandError> {
        Ok(Work::new(project, self.actor()?).if_revision(self.if_revision))
    }

    /// Tells where work was saved that had to make room.
    pub(super) fn tell_rescue(&self, task: &TaskId, rescue: Option<&Rescue>) {
        if let Some(Rescue { branch, nested, .. }) = rescue {
            let all: Vec<&str> = std::iter::once(branch).chain(nested).map(Branch::as_str).collect();
            self.screen.note(&format!("liza: unmerged work of {task} is kept on {}", all.join(", ")));
        }
    }

    /// Refuses an agent what only a person may do, where no blackboard is there to ask.
    pub(super) fn person_only(&self, verb: &'static str) -> Result<(), CommandError> {
        match self.actor()? {
            Actor::Human => Ok(()),
            actor @ (Actor::Agent(..) | Actor::Operator(_) | Actor::Supervisor(..)) => {
                let (actor, allowed) = (actor.to_string(), "the human".to_owned());
                Err(Refusal::NotPermitted { actor, verb, allowed }.into())
            }
        }
    }

    /// The same in another folder, if one is named.
    pub(super) fn at(&self, directory: Option<&Path>) -> Result<Self, CommandError> {
        let directory = match directory {
            Some(folder) => enter(&self.directory, folder)?,
            None => self.directory.clone(),
        };
        Ok(Self { directory, screen: self.screen, if_revision: self.if_revision })
    }

    /// Submits a command and tells what came of it, with `text` for people.
    pub(super) fn submit_and_tell(
        &self,
        command: Command,
        text: impl FnOnce(&Fields) -> String,
    ) -> Result<Reply, CommandError> {
        self.submit_and_tell_in(&self.project()?, command, text)
    }

    /// The same for a command that had to look at the project before.
    pub(super) fn submit_and_tell_in(
        &self,
        project: &Project,
        command: Command,
        text: impl FnOnce(&Fields) -> String,
    ) -> Result<Reply, CommandError> {
        let done = self.submit(project, command)?;
        Ok(Reply::new(text(&done.reply), to_json(&done.reply)).at(done.revision))
    }
}

fn enter(here: &Path, folder: &Path) -> Result<PathBuf, CommandError> {
    let entered = here.join(folder).canonicalize().and_then(|path| match path.is_dir() {
        true => Ok(path),
        false => Err(io::ErrorKind::NotADirectory.into()),
    });
    entered.map_err(|error| no_directory(folder, &error))
}

fn no_directory(folder: &Path, error: &io::Error) -> CommandError {
    CommandError::refused("no_directory", format!("cannot enter {}: {error}", folder.display()))
}

/// What the store settled on the way, for people.
fn in_words(notice: &Notice) -> String {
    match notice {
        Notice::StaleSave { kept, based_on, current } => {
            let based = based_on.map_or("an older revision".to_owned(), |based| format!("revision {based}"));
            format!(
                "somebody saved a state.yaml that was based on {based}; revision {current} stands, theirs is kept \
                 in {}: put what is missing back with liza edit",
                kept.display()
            )
        }
        Notice::StaleSaveNotUndone { lost, .. } => format!(
            "somebody saved an older state.yaml over revision {lost}, which could not be brought back: liza log \
             shows what it had changed"
        ),
        Notice::ModifyUndone => "a `lock modify` was killed; the state before it stands again".to_owned(),
        Notice::LogDelayed { reason } => {
            format!("written, but the log entry has to wait for the next write: {reason}")
        }
    }
}

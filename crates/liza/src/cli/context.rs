//! The input of every command: caller, folder, environment, console. A command never asks the process itself,
//! so that one supervisor can run commands for many sessions.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use liza_core::model::{
    Actor, AgentId, Generation, Refusal, RefusedResult, Revision, Section, SprintStatus, StopFile, TaskId,
};
use liza_core::protocol::{Operation, ReadNotes};
use liza_core::rules::misspelled::MisspelledKey;
use liza_core::rules::notes::unread;
use liza_core::text::one_line;
use liza_git::{Branch, Rescue};
use liza_host::secrets::Masker;
use liza_store::Notice;
use liza_team::channel::{LastRefusal, SessionCommands};
use liza_team::engine::{EffectResults, Engine, Executed};
use liza_team::project::identity::{SessionAround, actor_in};
use liza_team::project::{AGENT_GENERATION, AGENT_ID, Project, now};
use serde::Serialize;

use super::ui::console::Console;
use super::ui::error::CommandError;
use super::ui::exit_code::Exit;
use super::ui::output::{Reply, Screen, to_json};

/// The options that every command takes.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    /// Run as if started in DIR.
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print nothing on success.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// When to use colour: auto, always or never.
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    pub(crate) color: super::ui::output::Color,
    /// Show times in UTC instead of local time.
    #[arg(long, global = true)]
    pub(crate) utc: bool,
    /// Refuse to write if the target has changed since revision N.
    #[arg(long, value_name = "N", global = true)]
    pub(crate) if_revision: Option<u64>,
}

/// The variables that a caller has set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    pub(crate) fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// With these variables set or, without a value, removed.
    #[must_use]
    pub(crate) fn with<'v>(mut self, variables: impl Iterator<Item = (&'v str, Option<&'v str>)>) -> Self {
        for (name, value) in variables {
            match value {
                Some(value) => self.0.insert(name.into(), value.into()),
                None => self.0.remove(OsStr::new(name)),
            };
        }
        self
    }

    pub(crate) fn raw(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A variable that is text and not blank.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.raw(name)?.to_str().filter(|text| !text.trim().is_empty())
    }

    /// A masker that knows the secrets among the variables.
    pub(crate) fn masker(&self) -> Masker {
        let text = |(name, value): (&OsString, &OsString)| {
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        };
        Masker::new(self.0.iter().filter_map(text))
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.raw("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
    }
}

/// The caller of a command, and its surroundings.
#[derive(Clone)]
pub(crate) struct Caller {
    /// The agent sessions that it runs in.
    pub(crate) sessions: Vec<SessionAround>,
    pub(crate) directory: PathBuf,
    pub(crate) environment: Environment,
    pub(crate) console: Arc<dyn Console>,
    /// The liza program itself, which sessions call and which is their helper.
    pub(crate) program: PathBuf,
    pub(crate) on_behalf: Option<OnBehalf>,
}

/// The session whose command a supervisor executes. Its project and its agent are fixed; paths are only names.
#[derive(Clone)]
pub(crate) struct OnBehalf {
    pub(crate) project: Project,
    pub(crate) actor: Actor,
    /// The content of the files that the command names.
    pub(crate) files: Arc<BTreeMap<PathBuf, String>>,
    /// The last result, if it was refused, for the supervisor.
    pub(crate) last_refusal: LastRefusal,
}

/// The longest reason that is kept of a refusal, in characters.
const WHY_MAX: usize = 300;

impl OnBehalf {
    /// Keeps the reason of a refused result; one that is recorded after it counts more.
    pub(crate) fn note_result(&self, verb: &'static str, refused: Option<&CommandError>) {
        let why = refused.map(|error| one_line(&Masker::of_process().mask(&error.message), WHY_MAX));
        self.last_refusal.set(why.map(|why| RefusedResult { verb, why }));
    }
}

/// The input of every command.
#[derive(Clone)]
pub(crate) struct Context {
    sessions: Vec<SessionAround>,
    on_behalf: Option<OnBehalf>,
    pub(crate) directory: PathBuf,
    pub(crate) environment: Environment,
    pub(crate) program: PathBuf,
    pub(crate) screen: Screen,
    /// The revision that the caller read.
    pub(crate) if_revision: Option<Revision>,
    pub(crate) services: Services,
}

/// The services of the whole command line for a command.
#[derive(Clone, Copy)]
pub(crate) struct Services {
    /// Its parser, for manual and completions.
    pub(crate) command_line: fn() -> clap::Command,
    /// The executor of the commands of sessions, for a supervisor.
    pub(crate) session_commands: fn() -> Arc<dyn SessionCommands>,
    /// Parses and runs a command line, for a screen.
    pub(crate) run: fn(Vec<OsString>, Caller) -> Exit,
}

impl Context {
    /// Resolves the options.
    pub(crate) fn new(
        caller: Caller,
        global: &GlobalOptions,
        screen: Screen,
        services: Services,
    ) -> Result<Self, CommandError> {
        let Caller { sessions, directory, environment, program, on_behalf, .. } = caller;
        let directory = match &global.directory {
            Some(folder) if on_behalf.is_none() => enter(&directory, folder)?,
            Some(_) | None => directory,
        };
        let if_revision = global.if_revision.map(Revision);
        Ok(Self { sessions, on_behalf, directory, environment, program, screen, if_revision, services })
    }

    /// The same caller with another console, in the folder of that project.
    pub(crate) fn caller_in(&self, project: &Project, console: Arc<dyn Console>) -> Caller {
        Caller {
            sessions: self.sessions.clone(),
            directory: project.root().to_owned(),
            environment: self.environment.clone(),
            console,
            program: self.program.clone(),
            on_behalf: None,
        }
    }

    /// The same context in another folder, if one is given.
    pub(crate) fn at(&self, directory: Option<&Path>) -> Result<Self, CommandError> {
        let directory = match directory {
            Some(folder) => enter(&self.directory, folder)?,
            None => self.directory.clone(),
        };
        Ok(Self { directory, ..self.clone() })
    }

    pub(crate) fn project(&self) -> Result<Project, CommandError> {
        if let Some(session) = &self.on_behalf {
            return Ok(session.project.clone());
        }
        let root = Project::find(&self.directory).ok_or_else(|| CommandError::no_project(&self.directory))?;
        let project = Project::open(&root)?;
        // If no agent runs here, only commands can do it. The command itself waits for a database that cannot be used.
        let _ = project.try_share_stop_files();
        Ok(project)
    }

    /// True if the command comes from a session.
    pub(crate) fn is_of_session(&self) -> bool {
        self.on_behalf.is_some()
    }

    /// The same caller without `--if-revision`, for a command that compares by itself.
    pub(crate) fn without_revision(&self) -> Self {
        Self { if_revision: None, ..self.clone() }
    }

    /// The text of a file that the command names.
    pub(crate) fn read_text(&self, file: &Path) -> io::Result<String> {
        match &self.on_behalf {
            Some(session) => session.files.get(file).cloned().ok_or_else(|| io::ErrorKind::NotFound.into()),
            None => fs::read_to_string(self.directory.join(file)),
        }
    }

    pub(crate) fn actor(&self) -> Result<Actor, CommandError> {
        self.actor_at(Project::find(&self.directory).as_deref())
    }

    /// The caller, in the project at `root`.
    fn actor_at(&self, root: Option<&Path>) -> Result<Actor, CommandError> {
        if let Some(session) = &self.on_behalf {
            return Ok(session.actor);
        }
        let variables = (self.environment.text(AGENT_ID), self.environment.text(AGENT_GENERATION));
        actor_in(root, &self.sessions, variables).map_err(|message| {
            let hint = "to act as a person, unset both variables; to start an agent, use liza agent";
            CommandError::refused("bad_agent_id", message).hint(hint)
        })
    }

    pub(crate) fn engine<'p>(&self, project: &'p Project) -> Result<Engine<'p>, CommandError> {
        Ok(Engine::new(project, self.actor()?).if_revision(self.if_revision))
    }

    /// Sends a command as the caller and reports what happened on the way.
    pub(crate) fn execute<C: Operation>(
        &self,
        project: &Project,
        command: C,
    ) -> Result<Executed<C::Reply>, CommandError> {
        let engine = self.engine(project)?;
        let done = self.reported(&engine, engine.execute(command))?;
        self.report_effects(&done.effects);
        Ok(done)
    }

    /// The result of a sequence of commands, after reporting what the store repaired on the way.
    pub(crate) fn reported<T, E: Into<CommandError>>(
        &self,
        engine: &Engine<'_>,
        result: Result<T, E>,
    ) -> Result<T, CommandError> {
        self.report_notices(&engine.notices());
        result.map_err(Into::into)
    }

    /// Sends a command and returns its reply, with `text` for people.
    pub(crate) fn run<C: Operation>(
        &self,
        command: C,
        text: impl FnOnce(&C::Reply) -> String,
    ) -> Result<Reply, CommandError> {
        self.run_in(&self.project()?, command, text)
    }

    /// The same for a command that has opened the project already.
    pub(crate) fn run_in<C: Operation>(
        &self,
        project: &Project,
        command: C,
        text: impl FnOnce(&C::Reply) -> String,
    ) -> Result<Reply, CommandError> {
        let done = self.execute(project, command)?;
        Ok(self.reply(&done, text(&done.reply)))
    }

    /// The reply of a command, with `text` for people.
    pub(crate) fn reply<R: Serialize>(&self, done: &Executed<R>, text: String) -> Reply {
        let mut reply = Reply::new(text, to_json(&done.reply)).at(done.revision.0).sentences();
        if done.effects.sprint_completed.is_some() {
            reply.text.push_str(
                "\nThe sprint is COMPLETED. Review it: liza retro. The planner judges the goal, or you do: liza goal complete",
            );
            reply.result["sprint"] = to_json(&SprintStatus::Completed);
        }
        reply
    }

    /// Reminds an agent of a stop file, a note of the human or a nearly full context, after any command:
    /// every agent program reads the answer.
    pub(crate) fn remind(&self) {
        let Ok(Actor::Agent(agent, generation)) = self.actor() else { return };
        let Ok(project) = self.project() else { return };
        if let Some(file) = project.stop_files().strongest() {
            self.screen.note(&stop_reminder(file));
        }
        let Ok(board) = project.store().read_parts(&[Section::Agents], &[]) else { return };
        let entry = board.agents.ready().and_then(|agents| agents.get(&agent));
        let own = entry.filter(|entry| entry.generation == Some(generation));
        if let Some(percent) = own.and_then(|entry| entry.full_context(now())) {
            let note =
                format!("liza: {percent} % of your context is used. Commit, hand off and end your turn:");
            self.screen.note(&note);
            // A planner has no task, and needs none.
            let task = own.and_then(|entry| entry.current_task.as_ref()).map(|task| format!("{task} "));
            let task = task.unwrap_or_default();
            self.screen.note(&format!("  liza handoff {task}--summary \"…\" --next-action \"…\""));
        }
        if let Some(own) = own.filter(|own| own.status.is_in_session()) {
            self.pass_on_notes(&project, (agent, generation), own.current_task.as_ref());
        }
    }

    /// Passes on the notes that a running session has not read. If that cannot be recorded, it is told again.
    fn pass_on_notes(&self, project: &Project, session: (AgentId, Generation), task: Option<&TaskId>) {
        let Ok(state) = project.state() else { return };
        let (agent, generation) = session;
        let notes = unread(&state, agent, task);
        for note in &notes {
            self.screen.note(&format!("liza: note of the human: {}", note.message));
        }
        if !notes.is_empty() {
            let read = ReadNotes { agent, task: task.cloned(), number: state.journal.human_notes.len() };
            let _ = Engine::new(project, Actor::Supervisor(agent, generation)).execute(read);
        }
    }

    /// Reports the repairs of the store.
    pub(crate) fn report_notices(&self, notices: &[Notice]) {
        for notice in notices {
            self.screen.note(&format!("liza: {notice}"));
        }
    }

    /// Warns of keys that a manual edit has added and that are probably misspelled.
    pub(crate) fn warn_of_misspelled_keys(&self, keys: &[MisspelledKey]) {
        for key in keys {
            self.screen.note(&format!("liza: warning: {key}"));
        }
    }

    /// Reports saved work and worktrees that could not be removed. The blackboard is already written, and
    /// `recover` finishes the rest.
    pub(crate) fn report_effects(&self, effects: &EffectResults) {
        for (task, rescue) in &effects.rescued {
            self.report_rescue(task, Some(rescue));
        }
        for (task, error) in &effects.left {
            self.screen.note(&format!("liza: cannot remove the worktree of {task}: {error}"));
            self.screen.note("  hint: liza recover removes it");
        }
    }

    /// Reports the branches on which unmerged work was saved.
    pub(crate) fn report_rescue(&self, task: &TaskId, rescue: Option<&Rescue>) {
        if let Some(Rescue { branch, nested, .. }) = rescue {
            let all: Vec<&str> = std::iter::once(branch).chain(nested).map(Branch::as_str).collect();
            self.screen.note(&format!("liza: unmerged work of {task} is kept on {}", all.join(", ")));
        }
    }

    /// Refuses an agent a command of the human, for steps before anything is sent to the blackboard.
    pub(crate) fn human_only(&self, verb: &'static str) -> Result<(), CommandError> {
        Self::check_human(self.actor()?, verb)
    }

    /// The same in the project at `root`, which may have no blackboard yet.
    pub(crate) fn human_only_at(&self, root: &Path, verb: &'static str) -> Result<(), CommandError> {
        Self::check_human(self.actor_at(Some(root))?, verb)
    }

    fn check_human(actor: Actor, verb: &'static str) -> Result<(), CommandError> {
        match actor {
            Actor::Human => Ok(()),
            actor @ (Actor::Agent(..) | Actor::Operator(_) | Actor::Supervisor(..)) => {
                let (actor, allowed) = (actor.to_string(), "the human".to_owned());
                Err(Refusal::NotPermitted { actor, verb, allowed }.into())
            }
        }
    }
}

/// The advice for an agent about a stop file that has appeared during its work.
fn stop_reminder(file: StopFile) -> String {
    let name = file.name();
    match file {
        StopFile::Abort => format!("liza: .liza/{name} is present. Change nothing more; end your turn now."),
        StopFile::Checkpoint | StopFile::Pause => format!(
            "liza: .liza/{name} is present. Within two minutes: submit, give your verdict or block if that is nearly done, \
             else commit and hand off. Then end your turn."
        ),
    }
}

pub(super) fn enter(from: &Path, folder: &Path) -> Result<PathBuf, CommandError> {
    let entered = from.join(folder).canonicalize().and_then(|path| match path.is_dir() {
        true => Ok(path),
        false => Err(io::ErrorKind::NotADirectory.into()),
    });
    entered.map_err(|error| no_directory(folder, &error))
}

pub(super) fn no_directory(folder: &Path, error: &io::Error) -> CommandError {
    CommandError::refused("no_directory", format!("cannot enter {}: {error}", folder.display()))
}

//! Runs the `git` program with a controlled environment, a time limit and captured output. No shell, no
//! prompt, no pager, no editor; nothing inherited may point git at another repository.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use liza_sandbox::confine::{EnvironmentUse, KeptFilters, Variable, passed_environment};
use liza_sandbox::sys::confinement;
use liza_sandbox::sys::family::GIT_OWNER;
use liza_sandbox::sys::process;

use crate::program::accepted_programs::AcceptedPrograms;
use crate::program::environment::{FIXED, GitEnvironment, setting_variables};
use crate::program::error::GitError;
use crate::program::known_answers::{KnownAnswers, Question};
use crate::program::known_settings::KnownSettings;
use crate::program::limits::{Limits, is_among_agents_files, overrides};
use crate::program::output::GitOutput;
use crate::program::pipes::Pipes;
use crate::program::programs::{Overrides, Settings, may_run_programs, split_origins};
use crate::program::room::Room;
use crate::program::version::GitVersion;

/// The time limit of an ordinary git command.
const LIMIT: Duration = Duration::from_secs(120);

/// The time limit of a git command that writes or deletes a tree of files.
pub(crate) const TREE_LIMIT: Duration = Duration::from_secs(1800);

/// The memory limit of a git command.
const MEMORY: u64 = 4 << 30;

/// The folder for temporary files of filters, in the first folder that git can write to.
const FILTERS: &str = "liza-filters";

/// The number of attempts while another git is in the way: about 3 s in all.
const ATTEMPTS: u32 = 16;

#[derive(Debug, Clone)]
pub struct Git {
    environment: GitEnvironment,
    pub(crate) object_limits: ObjectLimits,
}

/// The most that an agent's repository may bring into the project at once.
#[derive(Debug, Clone, Copy)]
pub struct ObjectLimits {
    /// As they are stored, and again when unpacked.
    pub bytes: u64,
    pub count: usize,
}

impl Default for ObjectLimits {
    fn default() -> Self {
        Self { bytes: 2 << 30, count: 1_000_000 }
    }
}

impl Git {
    /// The git on `PATH`, with this process's environment without variables that could mislead it.
    pub fn new() -> Self {
        Self::with_environment(std::env::vars_os())
    }

    /// The git on the `PATH` of these variables, filtered like inherited ones.
    pub fn with_environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self { environment: GitEnvironment::new(variables), object_limits: ObjectLimits::default() }
    }

    /// Sets the `liza` that keeps filters; by default this program.
    pub fn with_keeper(mut self, liza: impl Into<PathBuf>) -> Self {
        self.environment.liza = liza.into();
        self
    }

    pub fn with_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.environment.program = program.into();
        self
    }

    pub fn with_object_limits(mut self, limits: ObjectLimits) -> Self {
        self.object_limits = limits;
        self
    }

    /// The variables for programs that run in a repository: none of them names a repository.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment.variables
    }

    pub fn home(&self) -> Option<&Path> {
        self.environment.home()
    }

    pub fn version(&self) -> Result<GitVersion, GitError> {
        let command = self.command("reading the version of git", Path::new("/")).arg("version");
        let output = command.read_text()?;
        GitVersion::parse(&output).ok_or_else(|| command.unexpected(output.as_bytes()))
    }

    pub fn require_version(&self) -> Result<GitVersion, GitError> {
        let found = self.version()?;
        if found < GitVersion::OLDEST { Err(GitError::TooOld { found }) } else { Ok(found) }
    }

    pub(crate) fn known_settings(&self, root: &Path, git_dir: &Path, common_dir: &Path) -> KnownSettings {
        KnownSettings::new(&self.environment, root, git_dir, common_dir)
    }

    /// A git command that runs in the folder `cwd`; errors name `action`.
    pub fn command(&self, action: impl Into<String>, cwd: &Path) -> GitCommand {
        GitCommand {
            git: self.clone(),
            action: action.into(),
            cwd: cwd.to_owned(),
            arguments: Vec::new(),
            variables: Vec::new(),
            stdin: Vec::new(),
            input: None,
            limit: LIMIT,
            output_max: None,
            runs_no_program: false,
            runs_no_filter: false,
            accepted: None,
            known_settings: None,
            place: Place::Yours,
        }
    }
}

impl Default for Git {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug, Clone)]
#[must_use = "a command does nothing until it is run"]
pub struct GitCommand {
    git: Git,
    action: String,
    cwd: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
    /// Used instead of `stdin`.
    input: Option<Arc<File>>,
    limit: Duration,
    /// The part of its output that is read; the rest is dropped.
    output_max: Option<usize>,
    /// The caller knows that it runs no program of the configuration.
    runs_no_program: bool,
    /// It must not run filters.
    runs_no_filter: bool,
    /// The programs of the project's own configuration that may run.
    accepted: Option<Arc<AcceptedPrograms>>,
    known_settings: Option<Arc<KnownSettings>>,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    /// In the files of the person.
    Yours,
    /// In a place that agents can write, without reading their files.
    Apart,
    /// In a place that agents can write.
    Room(Arc<Room>),
}

impl GitCommand {
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub fn args<I: IntoIterator<Item: AsRef<OsStr>>>(mut self, arguments: I) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Sets the standard input, which is empty otherwise.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Sets a file as the standard input, read from its position.
    pub(crate) fn stdin_file(mut self, file: File) -> Self {
        self.input = Some(Arc::new(file));
        self
    }

    /// Sets the time limit, after which git and its children are killed.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Reads at most this many bytes of its output and drops the rest; otherwise more than the largest is an error.
    pub fn at_most(mut self, bytes: usize) -> Self {
        self.output_max = Some(bytes);
        self
    }

    /// Runs the programs that the human has accepted for this project.
    pub(crate) fn accepting(mut self, accepted: Arc<AcceptedPrograms>) -> Self {
        self.accepted = Some(accepted);
        self
    }

    /// Does not list settings again that are known.
    pub(crate) fn knowing(mut self, settings: Arc<KnownSettings>) -> Self {
        self.known_settings = Some(settings);
        self
    }

    /// Confines git to a room, since it meets agents' files.
    pub(crate) fn in_room(mut self, room: Arc<Room>) -> Self {
        self = self.env("TMPDIR", room.writable.first().cloned().unwrap_or_default());
        self.place = Place::Room(room);
        self
    }

    /// Declares that this command runs no program of the configuration, which then need not be read first.
    pub(crate) fn runs_no_program(mut self) -> Self {
        self.runs_no_program = true;
        self
    }

    /// Runs no filter: files are written as they are stored.
    pub(crate) fn without_filters(mut self) -> Self {
        self.place = Place::Apart;
        self.runs_no_filter = true;
        self
    }

    /// Runs git, whatever its exit status is. Retries for about 3 s when another git is in the way.
    pub fn run(&self) -> Result<GitOutput, GitError> {
        self.run_with(&self.limits()?)
    }

    /// Runs git for its effect. If it may lack objects that it cannot fetch in its room, `fetch` comes first.
    pub(crate) fn check_after(&self, fetch: impl FnOnce() -> Result<(), GitError>) -> Result<(), GitError> {
        let limits = self.limits()?;
        if limits.partial {
            fetch()?;
        }
        let output = self.run_with(&limits)?;
        if output.status == Some(0) { Ok(()) } else { Err(self.failed(&output)) }
    }

    /// The rights of this command.
    fn limits(&self) -> Result<Limits, GitError> {
        let runs_programs = !self.runs_no_program && may_run_programs(&self.arguments);
        let room = match &self.place {
            Place::Room(room) if confinement::protects_files() && !room.rules.off => Some(room),
            Place::Room(_) | Place::Yours | Place::Apart => None,
        };
        if !runs_programs && room.is_none() {
            return Ok(Limits::default());
        }
        let Settings { list: settings, files } = self.settings()?;
        let mut replaced = Overrides::default();
        if runs_programs {
            replaced = overrides(&settings, self.accepted.as_deref(), &self.cwd);
        }
        if self.runs_no_filter {
            replaced.stop_filters(&settings);
        }
        let Some(room) = room.filter(|room| !room.is_left(&settings)) else {
            return Ok(Limits { overrides: replaced, ..Limits::default() });
        };
        let environment = &self.git.environment;
        let filters = if runs_programs {
            replaced.keep_filters(&settings, &environment.liza)
        } else {
            KeptFilters::default()
        };
        replaced.settings.extend(filters.settings.iter().cloned());
        let grants = Some(room.grants(environment, &settings, files));
        Ok(Limits { overrides: replaced, grants, filters, partial: room.is_partial(&settings) })
    }

    /// The configuration that this command would read.
    pub(crate) fn settings(&self) -> Result<Settings, GitError> {
        let git_dir =
            self.variables.iter().find(|(name, _)| name == "GIT_DIR").map(|(_, path)| Path::new(path));
        let Some(known) = &self.known_settings else { return self.list_settings() };
        let source = || known.source(&self.cwd, git_dir);
        let Some(before) = source() else { return self.list_settings() };
        if let Some(settings) = known.get(&before, git_dir) {
            return Ok(settings);
        }
        let settings = self.list_settings()?;
        if source().as_ref() == Some(&before) {
            known.keep(before, &settings, git_dir);
        }
        Ok(settings)
    }

    fn list_settings(&self) -> Result<Settings, GitError> {
        let list = ["config", "--list", "--show-scope", "--show-origin", "-z"].map(OsString::from).to_vec();
        // It reads no file of an agent.
        let place = Place::Apart;
        let list =
            Self { arguments: list, stdin: Vec::new(), input: None, limit: LIMIT, place, ..self.clone() };
        let output = list.run_with(&Limits::default())?;
        if output.status == Some(0) { Ok(split_origins(&output.stdout)) } else { Err(list.failed(&output)) }
    }

    fn run_with(&self, limits: &Limits) -> Result<GitOutput, GitError> {
        let mut pause = Duration::from_millis(5);
        for _ in 1..ATTEMPTS {
            let output = self.run_once(limits)?;
            if !output.was_disturbed() {
                return Ok(output);
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(300));
        }
        self.run_once(limits)
    }

    /// Runs git and returns its standard output; an exit status other than 0 is an error.
    pub fn read(&self) -> Result<Vec<u8>, GitError> {
        let output = self.run()?;
        if output.status == Some(0) { Ok(output.stdout) } else { Err(self.failed(&output)) }
    }

    pub(crate) fn read_with<T>(&self, parse: impl FnOnce(&[u8]) -> Option<T>) -> Result<T, GitError> {
        let output = self.read()?;
        parse(&output).ok_or_else(|| self.unexpected(&output))
    }

    /// The same for a question about objects, named by their whole hashes: its answer never changes.
    pub(crate) fn read_known(&self, known: &KnownAnswers) -> Result<Vec<u8>, GitError> {
        let question = Question { arguments: self.arguments.clone(), input: self.stdin.clone() };
        if let Some(answer) = known.get(&question) {
            return Ok(answer);
        }
        let answer = self.read()?;
        known.keep(question, &answer);
        Ok(answer)
    }

    /// Runs git for its effect; an exit status other than 0 is an error.
    pub fn check(&self) -> Result<(), GitError> {
        self.read().map(drop)
    }

    /// As [`GitCommand::read`], as text without the final line breaks.
    pub fn read_text(&self) -> Result<String, GitError> {
        let mut text = String::from_utf8(self.read()?).map_err(|error| self.unexpected(error.as_bytes()))?;
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text)
    }

    pub fn failed(&self, output: &GitOutput) -> GitError {
        // 129 is a usage error: an old git reports an unknown option this way.
        if output.status == Some(129)
            && let Some(too_old) = self.git_is_too_old()
        {
            return too_old;
        }
        let message = output.message();
        if let Some(branch) = crate::program::refs::blocking_branch(&message) {
            return GitError::BranchInTheWay { action: self.action.clone(), branch };
        }
        let advice = output.advice.as_ref().map(|advice| format!("; {advice}")).unwrap_or_default();
        GitError::Failed {
            action: self.action.clone(),
            command: self.command_line(),
            status: output.status,
            message: format!("{message}{advice}"),
        }
    }

    pub fn unexpected(&self, output: &[u8]) -> GitError {
        if let Some(too_old) = self.git_is_too_old() {
            return too_old;
        }
        let output = String::from_utf8_lossy(output).chars().take(200).collect();
        GitError::UnexpectedOutput { action: self.action.clone(), command: self.command_line(), output }
    }

    fn git_is_too_old(&self) -> Option<GitError> {
        let asks_version = self.arguments.first().is_some_and(|word| word == "version");
        if asks_version { None } else { self.git.require_version().err() }
    }

    /// The command for error messages; never given to a shell.
    fn command_line(&self) -> String {
        self.arguments
            .iter()
            .fold("git".to_owned(), |line, word| format!("{line} {}", word.to_string_lossy()))
    }

    fn run_once(&self, limits: &Limits) -> Result<GitOutput, GitError> {
        let mut child = self.spawn(limits)?;
        let deadline = Instant::now() + self.limit;
        let pipes = Pipes::new(&mut child, &self.stdin, self.output_max).transfer(&mut child, deadline);
        let ended = match pipes {
            Ok(pipes) => process::wait_until(&mut child, deadline).map(|status| status.map(|s| (s, pipes))),
            Err(error) => Err(error),
        };
        match ended {
            Ok(Some((status, pipes))) => {
                let (stdout, stderr) = pipes.into_bytes();
                let stderr = limits.filters.in_own_words(stderr);
                Ok(GitOutput { status: status.code(), stdout, stderr, advice: limits.overrides.advice() })
            }
            Ok(None) => {
                kill(&mut child);
                let command = self.command_line();
                Err(GitError::TimedOut { action: self.action.clone(), command, limit: self.limit })
            }
            Err(source) => {
                kill(&mut child);
                Err(GitError::io(&format!("{} (reading from git)", self.action), &self.cwd, source))
            }
        }
    }

    fn stdin_source(&self) -> Result<Stdio, GitError> {
        match &self.input {
            Some(file) => {
                let file = file.try_clone().map_err(|error| GitError::io(&self.action, &self.cwd, error))?;
                Ok(file.into())
            }
            None if self.stdin.is_empty() => Ok(Stdio::null()),
            None => Ok(Stdio::piped()),
        }
    }

    /// The variables that git inherits; in a room none that lead to a service or a password.
    fn inherited(&self, limits: &Limits) -> Vec<Variable> {
        let all = self.git.environment.variables.iter().cloned();
        match &self.place {
            Place::Room(room) if limits.grants.is_some() => {
                passed_environment(all, EnvironmentUse::Git, &room.rules.pass_env)
            }
            Place::Room(_) | Place::Yours | Place::Apart => all.collect(),
        }
    }

    /// Variables for the keepers of filters: a folder for temporary files, apart from git's.
    fn filter_variables(&self, limits: &Limits) -> Result<Vec<(OsString, OsString)>, GitError> {
        let Place::Room(room) = &self.place else { return Ok(Vec::new()) };
        let Some(folder) = room.writable.first().filter(|_| !limits.filters.is_empty()) else {
            return Ok(Vec::new());
        };
        let folder = folder.join(FILTERS);
        std::fs::create_dir_all(&folder).map_err(|error| GitError::io(&self.action, &folder, error))?;
        let writable = [folder].into_iter().chain(room.rules.writable.iter().cloned());
        Ok(limits.filters.variables(writable))
    }

    fn spawn(&self, limits: &Limits) -> Result<Child, GitError> {
        debug_assert!(
            !is_among_agents_files(self.accepted.as_deref(), &self.cwd)
                || !matches!(self.place, Place::Yours),
            "git among agents' files is kept in a room: {}",
            self.command_line()
        );
        let mut command = Command::new(&self.git.environment.program);
        command
            // A file system monitor would keep running in a worktree that is removed.
            .args(["-c", "core.fsmonitor=false"])
            .args(&self.arguments)
            .current_dir(&self.cwd)
            .env_clear()
            .envs(self.inherited(limits))
            .envs(FIXED)
            // It takes precedence over LC_ALL.
            .env_remove("LANGUAGE")
            .env(GIT_OWNER, std::process::id().to_string())
            // The format of a repository that Liza makes; a person's default may be another one.
            .env("GIT_DEFAULT_REF_FORMAT", "files")
            // Missing objects cannot be fetched from a room.
            .envs(limits.grants.iter().map(|_| ("GIT_NO_LAZY_FETCH", "1")))
            .envs(self.filter_variables(limits)?)
            .envs(setting_variables(&limits.overrides.settings))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(self.stdin_source()?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let started = match &limits.grants {
            Some(grants) => confinement::restricted(grants, || command.spawn()),
            None => command.spawn(),
        };
        let child = started.map_err(|source| {
            // The operating system reports a missing folder and a missing program with the same error.
            if source.kind() == io::ErrorKind::NotFound && self.cwd.is_dir() {
                GitError::Missing { source }
            } else {
                GitError::io(&self.action, &self.cwd, source)
            }
        })?;
        // A few objects of an agent can name more paths than fit into any memory.
        process::limit_memory(&child, MEMORY);
        Ok(child)
    }
}

fn kill(child: &mut Child) {
    process::kill_group(child);
    let _ = child.wait();
}

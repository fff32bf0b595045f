//! One run that judges a commit, in a throw-away checkout and confined: the integration test, or the commands
//! that validate work. Moves no branch, changes no task and blames nobody.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use liza_agents::providers::role_network;
use liza_core::model::{
    Config, Network, Role, Sandbox, Sha, TaskId, TestFailure, ValidationCommand, ValidationStart,
};
use liza_core::text::one_line;
use liza_git::{BuiltCheckout, GitError, IntegrationTestResult, Protected, TestStage};
use liza_host::durable;
use liza_sandbox::confine::RoomCopy;
use liza_sandbox::sys::confinement::TcpGrants;
use liza_sandbox::sys::find_program;
use liza_sandbox::sys::remove_tree::{fresh_folder, remove_tree};

use crate::engine::EngineError;
use crate::project::Project;
use crate::session::checkout_setup::{CheckoutUse, SetupError, prepare, set_up_in};
use crate::session::denied::misses_network;
use crate::session::plan::{SessionNeeds, minimum, session_plan};
use crate::session::refused_places;

use super::judged_copy::JudgedCopy;

pub const TEST_LOGS: &str = "integration-tests";

/// The number of last lines of the output that are kept, and their longest length.
const LAST_LINES: (usize, usize) = (8, 200);

/// The reason behind a failure that names a host.
const NO_NETWORK: &str = ": it needs the network, which what judges work does not have (roles.code-reviewer.network is model-only)";

/// The status by which a shell says that it finds no such command.
const NOT_FOUND: i32 = 127;

/// Tries the test of a commit once, prepared with these settings, as a merge would; returns its failure, if
/// there is one. Records nothing: neither on the blackboard nor for an alarm.
pub fn try_test(
    project: &Project,
    config: &Config,
    commit: &Sha,
) -> Result<Option<TestFailure>, EngineError> {
    let gate = project.repo()?.protected(commit, &config.gate_patterns())?;
    let run = TestRun { prepare, ..TestRun::of_merge(project, config, (None, commit))? };
    let ended = run.test(commit, &gate, "trial").map(|end| end.failure);
    // No task takes them along.
    let _ = remove_tree(&run.used_by.caches(project.folder()));
    match ended {
        Err(EngineError::Setup(error)) => {
            let output = error.output().unwrap_or_default().to_owned();
            let last_lines = last_lines(&project.root().join(&output));
            Ok(Some(TestFailure { what: error.to_string(), output, last_lines }))
        }
        ended => ended,
    }
}

/// Tries the integration test of a commit and then these commands, each with its one retry; returns the first failure.
pub fn try_commands(
    project: &Project,
    config: &Config,
    commands: &[ValidationCommand],
    commit: &Sha,
) -> Result<Option<TestFailure>, EngineError> {
    let test = try_test(project, config, commit)?;
    if test.is_some() || commands.is_empty() {
        return Ok(test);
    }
    let gate = project.repo()?.protected(commit, &config.gate_patterns())?;
    let run = TestRun { prepare, ..TestRun::of_merge(project, config, (None, commit))? };
    let ended = run.run_commands(commit, &gate, "trial", &commands.iter().collect::<Vec<_>>());
    let _ = remove_tree(&run.used_by.caches(project.folder()));
    Ok(ended?.failed.map(|failed| failed.failure))
}

type Prepare = fn(&Project, &Config, (&Path, Option<&RoomCopy>), CheckoutUse<'_>) -> Result<(), SetupError>;

/// What the first copy of a run begins with, and where its rooms show it. Every second try has a copy of its own place that
/// begins with nothing, so nothing but the work makes it fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    OwnPlace,
    /// With nothing, at the place at which builds are kept: if it passes, its build can be kept.
    BuildPlace,
    /// There, with the build of the integration branch's head, if there is one.
    HeadBuild,
}

#[derive(Clone, Copy)]
pub(super) struct TestRun<'p> {
    project: &'p Project,
    config: &'p Config,
    prepare: Prepare,
    used_by: CheckoutUse<'p>,
    /// Ends the run at once when it becomes true.
    cancelled: Option<&'p AtomicBool>,
    /// A folder that this run alone reads; it reaches nothing.
    reads: Option<&'p Path>,
    start: Start,
}

/// The end of the integration test.
#[derive(Debug, Default)]
pub(super) struct TestEnd {
    pub failure: Option<TestFailure>,
    pub built: Option<BuiltCheckout>,
}

/// The end of a run of commands.
#[derive(Debug, Default)]
pub(super) struct CommandsEnd {
    pub failed: Option<FailedCommand>,
    /// Commands that failed once and then passed.
    pub flaky: Vec<String>,
    /// Each command at its last try.
    pub runs: Vec<CommandEnd>,
    /// The head of the integration branch, if a command passed with its build.
    pub began_with: Option<Sha>,
    /// The checkout in which all of them passed, if its build can be kept.
    pub built: Option<BuiltCheckout>,
}

/// The end of one command, for its statement.
#[derive(Debug)]
pub(super) struct CommandEnd {
    pub command: ValidationCommand,
    /// `None` if it was killed, or does not count.
    pub exit: Option<i32>,
    pub seconds: u64,
    pub output: PathBuf,
}

#[derive(Debug)]
pub(super) struct FailedCommand {
    pub command: ValidationCommand,
    pub failure: TestFailure,
    /// True if its program is not installed here, or if it needs a network that it does not have: nobody's work is to blame.
    pub blames_machine: bool,
}

impl<'p> TestRun<'p> {
    pub(super) fn of_merge(
        project: &'p Project,
        config: &'p Config,
        (task, commit): (Option<&'p TaskId>, &'p Sha),
    ) -> Result<Self, EngineError> {
        Self::with_empty_caches(project, config, CheckoutUse::MergeTest(task, commit), None)
    }

    pub(super) fn of_review(
        project: &'p Project,
        config: &'p Config,
        (task, commit): (&'p TaskId, &'p Sha),
        cancelled: &'p AtomicBool,
    ) -> Result<Self, EngineError> {
        let used_by = CheckoutUse::Validation(task, commit);
        Self::with_empty_caches(project, config, used_by, Some(cancelled))
    }

    pub(super) fn starting(self, start: Start) -> Self {
        Self { start, ..self }
    }

    /// What judges a commit starts from nothing that an earlier run has left, be it of the same commit.
    fn with_empty_caches(
        project: &'p Project,
        config: &'p Config,
        used_by: CheckoutUse<'p>,
        cancelled: Option<&'p AtomicBool>,
    ) -> Result<Self, EngineError> {
        let caches = used_by.caches(project.folder());
        let action = "empty";
        fresh_folder(&caches).map_err(|source| SetupError::Io { action, path: caches, source })?;
        let start = Start::OwnPlace;
        Ok(Self { project, config, prepare: set_up_in, used_by, cancelled, reads: None, start })
    }

    pub(super) fn reading(self, folder: &'p Path) -> Self {
        Self { reads: Some(folder), ..self }
    }

    /// Runs a line of the shell in a new copy, as long as the integration test may run; returns whether it passed,
    /// and the file with its output.
    pub(super) fn line(
        &self,
        commit: &Sha,
        gate: &Protected,
        name: &str,
        line: &str,
    ) -> Result<(bool, PathBuf), EngineError> {
        let (repo, limit) = (self.project.repo()?, self.config.integration_test_limit.0);
        let copy = self.copy(commit, self.start)?;
        let output = self.new_log(name);
        let run = |stage: &TestStage<'_>| {
            repo.run_line(&copy.checkout, line, gate, &output, Duration::from_secs(limit), stage)
        };
        let passed = matches!(self.staged(&copy, run)?, IntegrationTestResult::Passed);
        Ok((passed, output))
    }

    /// Runs the integration test of a commit, if it has one.
    pub(super) fn test(&self, commit: &Sha, gate: &Protected, name: &str) -> Result<TestEnd, EngineError> {
        let (repo, limit) = (self.project.repo()?, self.config.integration_test_limit.0);
        if !repo.is_tested(commit)? {
            return Ok(TestEnd::default());
        }
        let copy = self.copy(commit, self.start)?;
        let output = self.new_log(name);
        let run = |stage: &TestStage<'_>| {
            repo.run_test((commit, &copy.checkout), gate, &output, Duration::from_secs(limit), stage)
        };
        let result = self.staged(&copy, run)?;
        let what = result.in_words(limit, "does not count, since what it tests changed its files");
        let failure = what.map(|what| self.failed(&copy, &format!("integration test {what}"), &output));
        let built = copy.built().filter(|_| failure.is_none());
        Ok(TestEnd { failure, built })
    }

    fn copy(&self, commit: &Sha, start: Start) -> Result<JudgedCopy, EngineError> {
        let (project, config, repo) = (self.project, self.config, self.project.repo()?);
        let start = if config.validation_start == ValidationStart::Head { start } else { Start::OwnPlace };
        let caches = self.used_by.caches(project.folder());
        let set_up = |copy: &JudgedCopy| {
            (self.prepare)(project, config, (copy.checkout.path(), copy.room.as_ref()), self.used_by)
        };
        if start == Start::HeadBuild
            && let Some(copy) = JudgedCopy::on_head_build(project, config, commit, &caches)?
            && set_up(&copy).is_ok()
        {
            return Ok(copy);
        }
        let mut copy = match start {
            Start::BuildPlace => JudgedCopy::at_build_place(project, config, commit, &caches)?,
            Start::OwnPlace | Start::HeadBuild => JudgedCopy::at_own_place(match self.reads {
                // What it writes is for no session.
                Some(_) => repo.hidden_checkout(commit)?,
                None => repo.scratch_checkout(commit)?,
            }),
        };
        set_up(&copy)?;
        copy.mark(repo, commit);
        Ok(copy)
    }

    /// Runs commands one after the other, until one fails twice. Each failed one is tried again in a new copy.
    pub(super) fn run_commands(
        &self,
        commit: &Sha,
        gate: &Protected,
        name: &str,
        commands: &[&ValidationCommand],
    ) -> Result<CommandsEnd, EngineError> {
        let mut end = CommandsEnd::default();
        let mut copy = None;
        for command in commands {
            let first = match copy.take() {
                Some(copy) => copy,
                None => self.copy(commit, self.start)?,
            };
            let (mut run, mut failed) = self.command(&first, gate, name, command)?;
            let head = first.head().cloned();
            copy = Some(first);
            if failed.as_ref().is_some_and(|failed| !failed.blames_machine) && !self.is_cancelled() {
                drop(copy.take());
                let second = self.copy(commit, Start::OwnPlace)?;
                (run, failed) = self.command(&second, gate, name, command)?;
                copy = Some(second);
                // If only the first try began with a build, they differ in more than luck.
                end.flaky.extend((failed.is_none() && head.is_none()).then(|| command.line.clone()));
            } else {
                end.began_with = end.began_with.or(head);
            }
            end.runs.push(run);
            if failed.is_some() {
                return Ok(CommandsEnd { failed, ..end });
            }
        }
        Ok(CommandsEnd { built: copy.and_then(JudgedCopy::built), ..end })
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.is_some_and(|cancelled| cancelled.load(std::sync::atomic::Ordering::Relaxed))
    }

    /// Runs one command in a copy; returns its end, and its failure.
    fn command(
        &self,
        copy: &JudgedCopy,
        gate: &Protected,
        name: &str,
        command: &ValidationCommand,
    ) -> Result<(CommandEnd, Option<FailedCommand>), EngineError> {
        let (repo, limit) = (self.project.repo()?, self.config.validation_limit.0);
        let output = self.new_log(&format!("{name}-validation"));
        let run = |stage: &TestStage<'_>| {
            repo.run_line(&copy.checkout, &command.line, gate, &output, Duration::from_secs(limit), stage)
        };
        let began = Instant::now();
        let result = self.staged(copy, run)?;
        let exit = match &result {
            IntegrationTestResult::Passed => Some(0),
            IntegrationTestResult::Failed { status, .. } => *status,
            IntegrationTestResult::NoScript
            | IntegrationTestResult::TimedOut
            | IntegrationTestResult::Changed { .. } => None,
        };
        let seconds = began.elapsed().as_secs();
        let end = CommandEnd { command: command.clone(), exit, seconds, output: output.clone() };
        let what = result.in_words(limit, "does not count, since it changed protected files");
        let missing = (exit == Some(NOT_FOUND)).then(|| missing_program(&command.line)).flatten();
        let what = match &missing {
            Some(program) => Some(format!("cannot run: {program} is not installed on this machine")),
            None => what,
        };
        let failed = what.map(|what| {
            let mut failure = self.failed(copy, &what, &output);
            let lacks_network =
                self.has_no_network() && failure.last_lines.iter().any(|line| misses_network(line));
            failure.what.push_str(if lacks_network { NO_NETWORK } else { "" });
            let blames_machine = missing.is_some() || lacks_network;
            FailedCommand { command: command.clone(), failure, blames_machine }
        });
        Ok((end, failed))
    }

    fn failed(&self, copy: &JudgedCopy, what: &str, output: &Path) -> TestFailure {
        let task = match self.used_by {
            CheckoutUse::MergeTest(task, _) => task,
            CheckoutUse::Validation(task, _) | CheckoutUse::Review(task, _) => Some(task),
            CheckoutUse::Coding | CheckoutUse::Planning => None,
        };
        refused_places::record(self.project, None, task, output);
        let shown = output.strip_prefix(self.project.root()).unwrap_or(output).to_string_lossy().into_owned();
        // The copy is gone when a person reads this: its files are named from its root.
        let place = format!("{}/", copy.checkout.shown().display());
        let last_lines = last_lines(output).iter().map(|line| line.replace(&place, "")).collect();
        TestFailure { what: what.to_owned(), output: shown, last_lines }
    }

    fn has_no_network(&self) -> bool {
        let is_closed = matches!(role_network(self.config, Role::CodeReviewer), Ok(Network::ModelOnly));
        self.reads.is_some() || is_closed && self.config.sandbox != Sandbox::Off
    }

    fn new_log(&self, name: &str) -> PathBuf {
        next_log(&self.project.folder().join(TEST_LOGS), name)
    }

    /// Runs something in the same confinement as a session, without its passwords.
    fn staged<R>(
        &self,
        copy: &JudgedCopy,
        run: impl FnOnce(&TestStage<'_>) -> Result<R, GitError>,
    ) -> Result<R, EngineError> {
        // What it reads must stay there: it gets nothing of the person's in which a session could find it.
        let alone = self.reads.map(|_| Config {
            network_ports: Vec::new(),
            sandbox_sockets: Vec::new(),
            sandbox_writable: Vec::new(),
            ..self.config.clone()
        });
        let (project, config) = (self.project, alone.as_ref().unwrap_or(self.config));
        let liza = std::env::current_exe().unwrap_or_else(|_| "liza".into());
        let room = copy.room.as_ref();
        let caches =
            room.map_or_else(|| self.used_by.caches(project.folder()), |room| room.shown_caches().to_owned());
        let (own, closed) = ([caches.clone()], TcpGrants::default());
        let is_closed = self.has_no_network();
        let files: Vec<PathBuf> = self.reads.iter().map(|folder| folder.to_path_buf()).collect();
        let plan = |checkout: &Path, scratch: &Path| {
            let needs = SessionNeeds {
                liza: &liza,
                checkout: Some(checkout),
                scratch,
                own: &own,
                files: &files,
                program: None,
                channel: None,
                network: is_closed.then_some(&closed),
            };
            let mut plan = session_plan(project, config, &needs)?;
            if let Some((plan, room)) = plan.as_mut().zip(room) {
                let shown = room.placed().map_err(|error| GitError::io("showing a copy", checkout, error));
                plan.placed.extend(shown?);
            }
            Ok(plan)
        };
        let (minimum, cancelled) = (minimum(config), self.cancelled);
        Ok(run(&TestStage { liza: &liza, caches: &caches, minimum, cancelled, plan: &plan })?)
    }
}

/// The program that a line begins with, if it is a plain name and nowhere on the PATH. A path in the work that
/// does not exist is the work's own fault.
fn missing_program(line: &str) -> Option<String> {
    let first = line.split_whitespace().next()?;
    let is_plain = first.chars().all(|char| char.is_ascii_alphanumeric() || "._+-".contains(char));
    (is_plain && find_program(first).is_none()).then(|| first.to_owned())
}

/// The first log file of that name that doesn't exist yet.
pub(super) fn next_log(folder: &Path, name: &str) -> PathBuf {
    let numbered = |number: u32| folder.join(format!("{name}-{number}.log"));
    (1..).map(numbered).find(|path| !path.exists()).unwrap_or_else(|| numbered(0))
}

/// The end of an output, on short lines; nothing if it cannot be read.
fn last_lines(file: &Path) -> Vec<String> {
    let (number, length) = LAST_LINES;
    let text = durable::read_file(file)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let lines = text.lines().rev().map(|line| one_line(line, length)).filter(|line| !line.is_empty());
    let mut last: Vec<String> = lines.take(number).collect();
    last.reverse();
    last
}

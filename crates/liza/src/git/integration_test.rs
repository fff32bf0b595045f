//! Runs the project's `scripts/integration-test.sh` on a commit, in a checkout of its own.
//!
//! Leaves no process and no checkout behind. The script's exit status and the time limit alone decide the result.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use liza_core::model::{SandboxMin, Sha};
use liza_store::private;

use super::error::GitError;
use super::leftovers::{leftovers, temporary_name};
use super::own_repo::NewCheckout;
use super::repo::Repo;
use super::view::Files;
use crate::confine::{Plan, StageInput, StageOrder, StageSocket, cache_variables, is_removed, stage_command};
use crate::secrets::{MaskStream, Masker};
use crate::sys::family::ScopedFamily;

/// The script, if a project has one.
const SCRIPT: &str = "scripts/integration-test.sh";

/// The prefix of our checkouts; no task ID starts with a dot.
const PREFIX: &str = ".integration-test-";

/// How long the end of the output may take once the script has ended.
const OUTPUT_LIMIT: Duration = Duration::from_secs(5);

/// The result of an integration test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the branch must not move after a failed test"]
pub enum IntegrationTestResult {
    /// The commit has no such script.
    NoScript,
    /// It exited with status 0.
    Passed,
    /// It exited with another status, or was killed by a signal.
    Failed {
        /// Its exit status; `None` when a signal killed it.
        status: Option<i32>,
        /// The signal that killed it.
        signal: Option<i32>,
    },
    /// It took too long and was killed with everything that it had started.
    TimedOut,
}

/// A checkout of one commit beside the worktrees of the tasks, removed on drop.
#[derive(Debug)]
pub(crate) struct ScratchCheckout {
    path: PathBuf,
}

impl ScratchCheckout {
    /// Its folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchCheckout {
    fn drop(&mut self) {
        // What cannot be removed now is removed by a later process; the result of the test does not depend on it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// How a test is confined.
pub(crate) struct TestStage<'a> {
    /// The liza program, which is also the stage that confines itself.
    pub(crate) liza: &'a Path,
    /// The folder with the caches of tests.
    pub(crate) caches: &'a Path,
    /// The lowest level at which the test runs.
    pub(crate) minimum: Option<SandboxMin>,
    /// What a test may use, from its checkout and its folder for temporary files.
    pub(crate) plan: &'a dyn Fn(&Path, &Path) -> Result<Plan, GitError>,
}

/// A command, and the order for the stage that it starts.
type StagedCommand = (Command, Option<(StageSocket, StageOrder)>);

impl TestStage<'_> {
    /// The command that starts the stage, and its order.
    fn command(
        &self,
        script: &Path,
        executable: bool,
        checkout: &Path,
        scratch: &Path,
    ) -> io::Result<StagedCommand> {
        private::create_folder(self.caches)?;
        let (command, socket) = stage_command(self.liza)?;
        let shell = (PathBuf::from("/bin/sh"), vec![script.to_string_lossy().into_owned()]);
        let (program, arguments) = if executable { (script.to_owned(), Vec::new()) } else { shell };
        let plan = (self.plan)(checkout, scratch).map_err(io::Error::other)?;
        let (minimum, input) = (self.minimum, StageInput::Nothing);
        let order = StageOrder { plan, minimum, program: Some(program), arguments, input };
        Ok((command, Some((socket, order))))
    }

    /// The variables that keep programs inside.
    fn environment(&self, scratch: &Path) -> Vec<(String, String)> {
        let scratch = |name: &str| (name.to_owned(), scratch.to_string_lossy().into_owned());
        let own = ["TMPDIR", "XDG_CONFIG_HOME"].map(scratch);
        own.into_iter().chain(cache_variables(self.caches)).collect()
    }
}

fn script_command(script: &Path, executable: bool) -> Command {
    let mut command = if executable { Command::new(script) } else { Command::new("sh") };
    if !executable {
        command.arg(script);
    }
    command.stdin(Stdio::null());
    command
}

impl Repo {
    /// Runs the test of `commit`, if it has one, and writes its output to the file `output`. It is not confined.
    ///
    /// # Errors
    ///
    /// When the worktree or the file cannot be created.
    pub fn run_integration_test(
        &self,
        commit: &Sha,
        output: &Path,
        limit: Duration,
    ) -> Result<IntegrationTestResult, GitError> {
        self.run_test(commit, output, limit, None)
    }

    /// The same, confined.
    ///
    /// # Errors
    ///
    /// As [`Repo::run_integration_test`].
    pub(crate) fn run_confined_test(
        &self,
        commit: &Sha,
        output: &Path,
        limit: Duration,
        stage: &TestStage<'_>,
    ) -> Result<IntegrationTestResult, GitError> {
        self.run_test(commit, output, limit, Some(stage))
    }

    fn run_test(
        &self,
        commit: &Sha,
        output: &Path,
        limit: Duration,
        stage: Option<&TestStage<'_>>,
    ) -> Result<IntegrationTestResult, GitError> {
        let Some(executable) = self.test_script(commit)? else { return Ok(IntegrationTestResult::NoScript) };
        let action = "running the integration test";
        let io = |error| GitError::io(action, output, error);
        let mut log = TestLog::create(output, self.masker()).map_err(io)?;
        let worktree = self.scratch_checkout(commit)?;
        let script = worktree.path.join(SCRIPT);
        let scratch = stage.map(|_| self.scratch_folder()).transpose()?;
        let (mut command, order) = match (stage, &scratch) {
            (Some(stage), Some(scratch)) => {
                stage.command(&script, executable, &worktree.path, &scratch.path).map_err(io)?
            }
            _ => (script_command(&script, executable), None),
        };
        let hidden = |name: &OsStr| stage.is_some() && is_removed(name);
        let environment = self.git().environment().iter().filter(|(name, _)| !hidden(name));
        let own = stage.zip(scratch.as_ref()).map(|(stage, scratch)| stage.environment(&scratch.path));
        command.current_dir(&worktree.path).env_clear().envs(environment.map(|(name, value)| (name, value)));
        command.envs(own.into_iter().flatten());
        let writers = log.writers().map_err(io)?;
        command.stdout(writers.0).stderr(writers.1);
        let deadline = Instant::now() + limit;
        let started = ScopedFamily::spawn(&mut command);
        // It holds write ends of the pipe; the output ends when all of them are closed.
        drop(command);
        let started = started.and_then(|family| {
            order.map_or(Ok(()), |(socket, order)| socket.start(&order, |_| true).map(drop))?;
            Ok(family)
        });
        let family = match started {
            Ok(family) => family,
            Err(error) => {
                // As a shell does: the reason goes to the output, and the status is 126.
                let _ = fs::write(output, format!("{SCRIPT} could not be started: {error}\n"));
                return Ok(IntegrationTestResult::Failed { status: Some(126), signal: None });
            }
        };
        let ended = family.finish(deadline).map_err(|error| GitError::io(action, &script, error))?;
        log.finish();
        Ok(ended.map_or(IntegrationTestResult::TimedOut, result_of))
    }

    /// A folder for the temporary files of a test, removed like a checkout.
    fn scratch_folder(&self) -> Result<ScratchCheckout, GitError> {
        let path = self.root().join(".worktrees").join(temporary_name(PREFIX));
        private::create_folder(&path).map_err(|error| GitError::io("creating a folder", &path, error))?;
        Ok(ScratchCheckout { path })
    }

    /// A masker that knows the secrets in the environment of the test.
    fn masker(&self) -> Masker {
        let text = |(name, value): &(OsString, OsString)| {
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        };
        Masker::of_process_and(self.git().environment().iter().filter_map(text))
    }

    /// Removes scratch checkouts of dead processes; returns them.
    pub(crate) fn remove_test_leftovers(&self) -> Vec<PathBuf> {
        let left = leftovers(&self.root().join(".worktrees"), PREFIX);
        for path in &left {
            let _ = fs::remove_dir_all(path);
            let _ = self.forget_linked(path);
        }
        left
    }

    /// Whether the script of the commit is executable; `None` if there is no script.
    fn test_script(&self, commit: &Sha) -> Result<Option<bool>, GitError> {
        let command = self.command("looking for the integration test");
        let output = command.args(["ls-tree", "-z", "--full-tree", commit.as_str(), "--", SCRIPT]).read()?;
        let is_file = output.starts_with(b"100") || output.starts_with(b"120000");
        Ok(is_file.then(|| !output.starts_with(b"100644")))
    }

    /// Checks out a commit in a folder of its own.
    ///
    /// # Errors
    ///
    /// When the folder cannot be created.
    pub(crate) fn scratch_checkout(&self, commit: &Sha) -> Result<ScratchCheckout, GitError> {
        self.remove_test_leftovers();
        let path = self.root().join(".worktrees").join(temporary_name(PREFIX));
        self.create_checkout(&NewCheckout {
            place: &path,
            commit,
            branch: None,
            integration: None,
            files: Files::All,
            keeps_index: false,
        })?;
        Ok(ScratchCheckout { path })
    }
}

/// The log of a test: what the script prints goes through a pipe and is masked before it is stored.
struct TestLog {
    copy: Option<JoinHandle<()>>,
    writer: Option<io::PipeWriter>,
}

impl TestLog {
    fn create(path: &Path, masker: Masker) -> io::Result<Self> {
        path.parent().map_or(Ok(()), private::create_folder)?;
        let mut file = private::file_options().write(true).create(true).truncate(true).open(path)?;
        let (mut reader, writer) = io::pipe()?;
        // A full disk must not stop the test: everything is read, and what can be is stored.
        let copy = thread::spawn(move || drop(copy_masked(&mut reader, &mut file, masker)));
        Ok(Self { copy: Some(copy), writer: Some(writer) })
    }

    /// The ends of the pipe for the script's output and errors.
    fn writers(&mut self) -> io::Result<(io::PipeWriter, io::PipeWriter)> {
        let writer = self.writer.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok((writer.try_clone()?, writer))
    }

    /// Waits for the end of the output, with a limit: a process that could not be killed may hold it open.
    fn finish(&mut self) {
        let Some(copy) = self.copy.take() else { return };
        let deadline = Instant::now() + OUTPUT_LIMIT;
        while !copy.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Copies everything, masked. After an error of the file the rest is read and dropped, so that no writer waits.
fn copy_masked(from: &mut impl Read, to: &mut impl Write, masker: Masker) -> io::Result<()> {
    let mut stream = MaskStream::new(masker);
    let mut chunk = vec![0; 64 << 10];
    let mut written = Ok(());
    loop {
        let length = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let ready = stream.push(chunk.get(..length).unwrap_or_default());
        written = written.and_then(|()| to.write_all(&ready));
    }
    written.and_then(|()| to.write_all(&stream.finish()))
}

fn result_of(status: ExitStatus) -> IntegrationTestResult {
    if status.success() {
        IntegrationTestResult::Passed
    } else {
        IntegrationTestResult::Failed { status: status.code(), signal: status.signal() }
    }
}

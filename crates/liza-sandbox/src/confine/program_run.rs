//! Runs one program to its end, confined or not, within a time limit: an integration test, or the set-up of a
//! checkout. Its output is masked and stored in a file. Leaves no process behind.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use liza_host::disk::SpaceWatch;
use liza_host::secrets::{MaskStream, Masker};
use liza_host::{durable, private};
use liza_ids::SandboxMin;

use crate::sys::family::ScopedFamily;

use super::caches::cache_variables;
use super::environment::{EnvironmentUse, Variable, is_of_database, passed_environment};
use super::plan::Plan;
use super::program_keeper::{KeeperSocket, keeper_command};
use super::stage::StageOrder;

/// The longest time for the end of the output once the program has ended.
const OUTPUT_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct ProgramRun<'a> {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub directory: &'a Path,
    /// Passed in part, or as a whole if the program is not confined.
    pub environment: &'a [(OsString, OsString)],
    pub output: &'a Path,
    pub limit: Duration,
    pub stage: Option<RunStage<'a>>,
    /// Ends it at once when it becomes true.
    pub cancelled: Option<&'a AtomicBool>,
}

#[derive(Debug)]
pub struct RunStage<'a> {
    /// The liza program, which is also the stage that confines itself.
    pub liza: &'a Path,
    pub caches: &'a Path,
    pub scratch: &'a Path,
    pub minimum: Option<SandboxMin>,
    pub plan: Plan,
}

#[derive(Debug)]
pub enum RunEnd {
    /// By itself, or by a signal.
    Exited(ExitStatus),
    /// It was killed with everything that it had started, at its limit or because it was cancelled.
    TimedOut,
    NotStarted(io::Error),
}

type StagedCommand = (Command, Option<(KeeperSocket, StageOrder)>);

impl ProgramRun<'_> {
    /// A failure on a full disk is an error, and no end: it says nothing about the program.
    pub fn run(self) -> io::Result<RunEnd> {
        let (mut log, space) = (OutputLog::create(self.output, self.masker())?, self.space());
        let (mut command, order) = self.command()?;
        // A stage goes there itself: a copy may be in its room only.
        let directory = if self.stage.is_some() { Path::new("/") } else { self.directory };
        command.current_dir(directory).env_clear().envs(self.inherited());
        command.envs(self.stage.iter().flat_map(RunStage::environment));
        let (stdout, stderr) = log.writers()?;
        command.stdout(stdout).stderr(stderr);
        let deadline = Instant::now() + self.limit;
        let start = if order.is_some() { ScopedFamily::of_keeper } else { ScopedFamily::spawn };
        let started = start(&mut command);
        // It holds write ends of the pipe; the output ends when all of them are closed.
        drop(command);
        let family = match started {
            Ok(family) => family,
            Err(error) => return Ok(RunEnd::NotStarted(error)),
        };
        let keeper = match order.map(|(mut keeper, order)| keeper.start(&order).map(|()| keeper)).transpose()
        {
            Ok(keeper) => keeper,
            Err(error) => return space.check().map(|()| RunEnd::NotStarted(error)),
        };
        // Without Liza's end of the connection, a keeper ends the program and everything that it has started.
        let is_cancelled = || {
            space.look();
            self.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
        };
        let ended = family.finish_unless(deadline, is_cancelled, || drop(keeper))?;
        log.finish();
        if ended.is_some_and(|status| !status.success()) {
            space.check()?;
        }
        Ok(ended.map_or(RunEnd::TimedOut, RunEnd::Exited))
    }

    /// The folders in which it works.
    fn space(&self) -> SpaceWatch {
        let folders = self.stage.iter().flat_map(|stage| [stage.caches, stage.scratch]);
        SpaceWatch::new(folders.chain([self.directory]).map(Path::to_owned))
    }

    /// The part of the environment that it gets.
    fn inherited(&self) -> Vec<Variable> {
        let all = self.environment.iter().cloned();
        match &self.stage {
            Some(stage) => passed_environment(all, EnvironmentUse::CodeUnderTest, &stage.plan.pass_env),
            None => all.filter(|(name, _)| !is_of_database(name)).collect(),
        }
    }

    fn command(&self) -> io::Result<StagedCommand> {
        let Some(stage) = &self.stage else {
            let mut command = Command::new(&self.program);
            command.args(&self.arguments).stdin(Stdio::null());
            return Ok((command, None));
        };
        private::create_folder(stage.caches)?;
        let (command, socket) = keeper_command(&[], stage.liza)?;
        let order = StageOrder {
            plan: stage.plan.clone(),
            minimum: stage.minimum,
            program: Some(self.program.clone()),
            arguments: self.arguments.clone(),
            directory: Some(self.directory.to_owned()),
            ..StageOrder::default()
        };
        Ok((command, Some((socket, order))))
    }

    fn masker(&self) -> Masker {
        let text = |(name, value): &(OsString, OsString)| {
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        };
        Masker::of_process_and(self.environment.iter().filter_map(text))
    }
}

impl RunStage<'_> {
    fn environment(&self) -> Vec<(String, String)> {
        let scratch = |name: &str| (name.to_owned(), self.scratch.to_string_lossy().into_owned());
        let own = ["TMPDIR", "XDG_CONFIG_HOME"].map(scratch);
        own.into_iter().chain(cache_variables(self.caches)).collect()
    }
}

/// The output of a program: it goes through a pipe and is masked before it is stored.
struct OutputLog {
    copy: Option<JoinHandle<()>>,
    writer: Option<io::PipeWriter>,
}

impl OutputLog {
    fn create(path: &Path, masker: Masker) -> io::Result<Self> {
        path.parent().map_or(Ok(()), private::create_folder)?;
        let mut file = durable::create(path)?;
        let (mut reader, writer) = io::pipe()?;
        // A full disk must not stop the program: everything is read, and stored as far as possible.
        let copy = thread::spawn(move || drop(copy_masked(&mut reader, &mut file, masker)));
        Ok(Self { copy: Some(copy), writer: Some(writer) })
    }

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

/// The most that is stored of an output: its beginning and its end.
const STORED_MAX: usize = 8 << 20;
const END_MAX: usize = 1 << 20;

/// An output of which the middle is left out if it is long.
struct BoundedOutput<W> {
    to: W,
    written: usize,
    /// The last bytes after the beginning.
    end: VecDeque<u8>,
    left_out: usize,
}

impl<W: Write> BoundedOutput<W> {
    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = (STORED_MAX - END_MAX).saturating_sub(self.written).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.to.write_all(first)?;
        self.written += room;
        self.end.extend(rest);
        let over = self.end.len().saturating_sub(END_MAX);
        self.left_out += over;
        self.end.drain(..over);
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        if self.left_out > 0 {
            writeln!(self.to, "\n[liza: {} bytes are left out here]", self.left_out)?;
        }
        let (first, second) = self.end.as_slices();
        self.to.write_all(first)?;
        self.to.write_all(second)
    }
}

/// Copies the output, masked. After a write error the rest is read and dropped, so that no writer waits.
fn copy_masked(from: &mut impl Read, to: &mut impl Write, masker: Masker) -> io::Result<()> {
    let mut stream = MaskStream::new(masker);
    let mut to = BoundedOutput { to, written: 0, end: VecDeque::new(), left_out: 0 };
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
        written = written.and_then(|()| to.push(&ready));
    }
    written.and_then(|()| to.push(&stream.finish())).and_then(|()| to.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: JU-03
    #[test]
    fn of_a_giant_output_the_beginning_and_the_end_are_stored() {
        let mut output = io::repeat(b'x').take(64 << 20).chain(&b"\nthe last line\n"[..]);
        let mut stored = Vec::new();
        copy_masked(&mut output, &mut stored, Masker::default()).unwrap();
        assert!(stored.len() < STORED_MAX + 100, "{}", stored.len());
        let end = String::from_utf8_lossy(&stored[stored.len() - END_MAX - 60..]);
        assert!(end.ends_with("x\nthe last line\n") && end.contains(" bytes are left out here]"));
    }
}

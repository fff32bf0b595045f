//! Runs the `git` program with an environment of our own, a time limit and captured output.
//!
//! No shell, no prompt, no pager, no editor; nothing inherited may point git at another repository. Knows no
//! meaning of any git command.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::{CommandLine, GitError};
use crate::sys::family::GIT_OWNER;
use crate::sys::{find_program_in, process};

/// How long a question to git may take.
const LIMIT: Duration = Duration::from_secs(120);

/// How long git may take to write or to delete a tree of files.
pub(crate) const TREE_LIMIT: Duration = Duration::from_secs(1800);

/// More output than this from a question is a mistake of ours, not an answer.
const STDOUT_CAP: usize = 256 << 20;

/// Of complaints, the beginning is enough.
const STDERR_CAP: usize = 64 << 10;

/// How often a call is tried while another git is in the way: about 3 s in all.
const TRIES: u32 = 16;

/// Variables of git that say who and how, never which repository; all others that begin with `GIT_` are dropped.
const KEPT: [&str; 11] = [
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
];

/// What every git of ours is told: ask nobody, speak plainly, write no index only to speed up the next question.
const SET: [(&str, &str); 9] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_ASKPASS", "true"),
    ("SSH_ASKPASS", "true"),
    ("LC_ALL", "C"),
];

/// The version of a git program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl Version {
    /// The first that can merge without a checkout.
    pub const OLDEST: Self = Self(2, 38);
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// The git program, with the environment in which it runs.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    environment: Arc<[(OsString, OsString)]>,
}

impl Git {
    /// The git on the path, in this process's environment without what could mislead it.
    pub fn new() -> Self {
        Self::with_environment(std::env::vars_os())
    }

    /// The git on the path of the given variables, which are filtered as inherited ones are.
    pub fn with_environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let environment: Arc<[(OsString, OsString)]> =
            variables.into_iter().filter(|(name, _)| is_harmless(name)).collect();
        let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_os_str());
        // By its path it can be spawned; by a name in another environment, this whole process would be forked.
        let program = find_program_in("git", path.unwrap_or_default()).unwrap_or_else(|| "git".into());
        Self { program, environment }
    }

    /// The same with another program in git's place.
    pub fn with_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = program.into();
        self
    }

    /// The variables that programs of ours get: harmless in every repository.
    pub(crate) fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// Which git this is.
    ///
    /// # Errors
    ///
    /// When there is none, or its answer makes no sense.
    pub fn version(&self) -> Result<Version, GitError> {
        let call = self.call("asking git for its version", Path::new("/")).arg("version");
        let answer = call.text()?;
        let mut numbers = answer.trim_start_matches("git version ").split('.').map(|part| part.parse().ok());
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(major), Some(minor)) => Ok(Version(major, minor)),
            _ => Err(call.unreadable(answer.as_bytes())),
        }
    }

    /// Refuses a git that lacks what we need.
    ///
    /// # Errors
    ///
    /// [`GitError::TooOld`], [`GitError::Missing`].
    pub fn require_version(&self) -> Result<Version, GitError> {
        let found = self.version()?;
        if found < Version::OLDEST { Err(GitError::TooOld { found }) } else { Ok(found) }
    }

    /// Begins a call of git in the folder `cwd`; `doing` is what a person reads when it fails.
    pub fn call(&self, doing: impl Into<String>, cwd: &Path) -> Call {
        Call {
            git: self.clone(),
            doing: doing.into(),
            cwd: cwd.to_owned(),
            arguments: Vec::new(),
            variables: Vec::new(),
            stdin: Vec::new(),
            limit: LIMIT,
        }
    }
}

impl Default for Git {
    fn default() -> Self {
        Self::new()
    }
}

fn is_harmless(name: &OsStr) -> bool {
    let text = name.to_string_lossy();
    !text.starts_with("GIT_") || KEPT.contains(&text.as_ref())
}

/// One call of git, while it is being put together.
#[derive(Debug, Clone)]
#[must_use = "a call does nothing until it is run"]
pub struct Call {
    git: Git,
    doing: String,
    cwd: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
    limit: Duration,
}

/// What git answered.
#[derive(Debug)]
pub struct Reply {
    /// Its exit status; `None` when a signal ended it.
    pub status: Option<i32>,
    /// What it answered.
    pub stdout: Vec<u8>,
    /// What it complained about.
    pub stderr: Vec<u8>,
}

impl Reply {
    /// Git's own words: its complaint, else its answer.
    pub fn message(&self) -> String {
        let words = if self.stderr.trim_ascii().is_empty() { &self.stdout } else { &self.stderr };
        String::from_utf8_lossy(words.trim_ascii()).into_owned()
    }

    /// Whether another git was in the way: it held a lock, or took away its worktree while this one listed them all.
    fn met_another(&self) -> bool {
        let words = String::from_utf8_lossy(&self.stderr);
        let locked = words.contains("Unable to create '") && words.contains(".lock': File exists");
        let vanished = words.contains("/worktrees/")
            && ["Invalid path '", "failed to read "].iter().any(|complaint| words.contains(complaint));
        self.status != Some(0) && (locked || vanished || words.contains("could not lock config file"))
    }
}

impl Call {
    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args<I: IntoIterator<Item: AsRef<OsStr>>>(mut self, arguments: I) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Sets a variable of git's environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Gives git something to read; otherwise it reads an empty input.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Sets the time after which git and its children are killed.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs git and gives its answer, whatever its exit status is.
    ///
    /// Tries again for a while when another git is in the way, as a person would.
    ///
    /// # Errors
    ///
    /// When git cannot be run, or does not end in time.
    pub fn run(&self) -> Result<Reply, GitError> {
        let mut pause = Duration::from_millis(5);
        for _ in 1..TRIES {
            let reply = self.run_once()?;
            if !reply.met_another() {
                return Ok(reply);
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(300));
        }
        self.run_once()
    }

    /// Runs git and gives its output; any exit status but 0 is an error.
    ///
    /// # Errors
    ///
    /// When git cannot be run, does not end in time, or says no.
    pub fn ok(&self) -> Result<Vec<u8>, GitError> {
        let reply = self.run()?;
        if reply.status == Some(0) { Ok(reply.stdout) } else { Err(self.failed(&reply)) }
    }

    /// As [`Call::ok`], as text without the line's end.
    ///
    /// # Errors
    ///
    /// As [`Call::ok`], and when the answer is not UTF-8.
    pub fn text(&self) -> Result<String, GitError> {
        let mut text = String::from_utf8(self.ok()?).map_err(|error| self.unreadable(error.as_bytes()))?;
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text)
    }

    /// The error for an exit status that means failure.
    pub(crate) fn failed(&self, reply: &Reply) -> GitError {
        // 129 is a usage error: an option that this git does not know is what an old one would say.
        if reply.status == Some(129)
            && let Err(too_old) = self.git.require_version()
        {
            return too_old;
        }
        GitError::Failed {
            doing: self.doing.clone(),
            command: self.command_line(),
            status: reply.status,
            message: reply.message(),
        }
    }

    /// The error for an answer that makes no sense.
    pub(crate) fn unreadable(&self, answer: &[u8]) -> GitError {
        if let Some(too_old) = self.git_is_too_old() {
            return too_old;
        }
        let answer = String::from_utf8_lossy(answer).chars().take(200).collect();
        GitError::Unreadable { doing: self.doing.clone(), command: self.command_line(), answer }
    }

    fn git_is_too_old(&self) -> Option<GitError> {
        let asks_version = self.arguments.first().is_some_and(|word| word == "version");
        if asks_version { None } else { self.git.require_version().err() }
    }

    fn command_line(&self) -> CommandLine {
        CommandLine(self.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect())
    }

    fn run_once(&self) -> Result<Reply, GitError> {
        let mut child = self.spawn()?;
        let deadline = Instant::now() + self.limit;
        let talk = Conversation::with(&mut child, &self.stdin).hold(&mut child, deadline);
        let ended = match talk {
            Ok(talk) => process::wait_until(&mut child, deadline).map(|status| status.map(|s| (s, talk))),
            Err(error) => Err(error),
        };
        match ended {
            Ok(Some((status, talk))) => Ok(talk.into_reply(status)),
            Ok(None) => {
                end(&mut child);
                let command = self.command_line();
                Err(GitError::TimedOut { doing: self.doing.clone(), command, limit: self.limit })
            }
            Err(source) => {
                end(&mut child);
                Err(GitError::io(&format!("{} (talking to git)", self.doing), &self.cwd, source))
            }
        }
    }

    fn spawn(&self) -> Result<Child, GitError> {
        let mut command = Command::new(&self.git.program);
        command
            // A daemon that watches files would outlive us in a worktree that is to be removed.
            .args(["-c", "core.fsmonitor=false"])
            .args(&self.arguments)
            .current_dir(&self.cwd)
            .env_clear()
            .envs(self.git.environment.iter().map(|(name, value)| (name, value)))
            .envs(SET)
            // It would win over LC_ALL.
            .env_remove("LANGUAGE")
            .env(GIT_OWNER, std::process::id().to_string())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(if self.stdin.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command.spawn().map_err(|source| {
            // A missing folder and a missing program are the same error to the operating system.
            if source.kind() == io::ErrorKind::NotFound && self.cwd.is_dir() {
                GitError::Missing { source }
            } else {
                GitError::io(&self.doing, &self.cwd, source)
            }
        })
    }
}

fn end(child: &mut Child) {
    process::kill_group(child);
    let _ = child.wait();
}

/// What goes to and comes from one running git.
struct Conversation<'a> {
    input: Option<ChildStdin>,
    unsent: &'a [u8],
    answer: Stream,
    complaint: Stream,
}

/// One of git's outputs, read up to a cap.
struct Stream {
    source: Option<Box<dyn Output>>,
    bytes: Vec<u8>,
    cap: usize,
    /// Whether what goes beyond the cap makes the whole worthless.
    whole: bool,
}

trait Output: Read + AsFd {}
impl<T: Read + AsFd> Output for T {}

impl<'a> Conversation<'a> {
    fn with(child: &mut Child, unsent: &'a [u8]) -> Self {
        let stream = |source, cap| Stream { source, bytes: Vec::new(), cap, whole: cap == STDOUT_CAP };
        Self {
            input: child.stdin.take(),
            unsent,
            answer: stream(child.stdout.take().map(|out| Box::new(out) as Box<dyn Output>), STDOUT_CAP),
            complaint: stream(child.stderr.take().map(|out| Box::new(out) as Box<dyn Output>), STDERR_CAP),
        }
    }

    /// Reads and writes until both outputs are closed, git has ended, or the deadline has come.
    fn hold(mut self, child: &mut Child, deadline: Instant) -> io::Result<Self> {
        while self.answer.source.is_some() || self.complaint.source.is_some() {
            let now = Instant::now();
            if now >= deadline {
                break;
            }
            let quiet = !self.step((deadline - now).min(Duration::from_millis(100)))?;
            // A process that a hook left in the background may hold the pipes open for ever.
            if quiet && child.try_wait()?.is_some() {
                break;
            }
        }
        Ok(self)
    }

    /// Moves what can be moved; false when nothing could be for `patience`.
    fn step(&mut self, patience: Duration) -> io::Result<bool> {
        let (mut read_answer, mut read_complaint, mut write) = (false, false, false);
        {
            let mut fds = Vec::with_capacity(3);
            let mut flags = Vec::with_capacity(3);
            if let Some(source) = &self.answer.source {
                fds.push(PollFd::from_borrowed_fd(source.as_fd(), PollFlags::IN));
                flags.push(&mut read_answer);
            }
            if let Some(source) = &self.complaint.source {
                fds.push(PollFd::from_borrowed_fd(source.as_fd(), PollFlags::IN));
                flags.push(&mut read_complaint);
            }
            if let Some(input) = &self.input {
                fds.push(PollFd::from_borrowed_fd(input.as_fd(), PollFlags::OUT));
                flags.push(&mut write);
            }
            let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) => return Ok(false),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            flags.into_iter().zip(&fds).for_each(|(flag, fd)| *flag = !fd.revents().is_empty());
        }
        if read_answer {
            self.answer.read()?;
        }
        if read_complaint {
            self.complaint.read()?;
        }
        if write {
            self.send();
        }
        Ok(true)
    }

    /// Sends a piece small enough that a ready pipe takes it without blocking.
    fn send(&mut self) {
        let (piece, rest) = self.unsent.split_at(self.unsent.len().min(512));
        let sent = self.input.as_mut().is_some_and(|input| input.write_all(piece).is_ok());
        self.unsent = rest;
        // A git that stopped reading will say why itself.
        if !sent || rest.is_empty() {
            self.input = None;
        }
    }

    fn into_reply(self, status: ExitStatus) -> Reply {
        Reply { status: status.code(), stdout: self.answer.bytes, stderr: self.complaint.bytes }
    }
}

impl Stream {
    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        let Some(source) = self.source.as_mut() else { return Ok(()) };
        match source.read(&mut buffer) {
            Ok(0) => self.source = None,
            Ok(count) => {
                let room = self.cap.saturating_sub(self.bytes.len());
                if self.whole && count > room {
                    return Err(io::Error::other(format!("git wrote more than {} bytes", self.cap)));
                }
                self.bytes.extend_from_slice(&buffer[..count.min(room)]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

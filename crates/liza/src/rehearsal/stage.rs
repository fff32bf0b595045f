//! What a player has at hand: its prompt, a voice, and the programs `liza` and `sh`.
//!
//! Decides nothing; a command that answers with 42 ends the scene, one that fails is an error.

use std::cell::Cell;
use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::prompt::{Assigned, Job, Planning, Prompt, Review};
use super::step::Figures;
use super::{Done, Halt, RehearsalError};

/// What a command says to an agent that has to stop.
const STOP: i32 = 42;
/// What a command says that could not have the lock.
const LOCKED: i32 = 2;
/// How often a command is called that could not have the lock.
const TRIES: u32 = 3;
/// How long a step that waits looks away.
const GLANCE: Duration = Duration::from_millis(10);

/// How a session tells what it does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Voice {
    /// In lines for people.
    #[default]
    Lines,
    /// In lines of JSON, one event each.
    Events,
}

/// How many bytes of text make a token, near enough.
const TOKEN: u64 = 4;
/// The context that a rehearsal has; as large as a model's.
const CONTEXT: u64 = 200_000;

/// What a command came to.
pub(super) struct Called {
    /// Its exit code; -1 for a signal.
    pub(super) code: i32,
    /// What it printed.
    pub(super) words: String,
}

/// The stage of one session.
pub(super) struct Stage {
    pub(super) prompt: Prompt,
    /// Whether the change under review was read.
    pub(super) has_read: Cell<bool>,
    voice: Voice,
    /// How many bytes it has read, and written.
    read: Cell<u64>,
    written: Cell<u64>,
    /// Whether the playbook has told what was used.
    told_usage: Cell<bool>,
}

impl Stage {
    /// The stage for a prompt of that many bytes.
    pub(super) fn new(prompt: Prompt, length: usize, voice: Voice) -> Self {
        let (has_read, written, told_usage) = Default::default();
        Self { prompt, has_read, voice, read: Cell::new(length as u64), written, told_usage }
    }

    /// Counts what the session has read.
    pub(super) fn reads(&self, bytes: usize) {
        self.read.set(self.read.get().saturating_add(bytes as u64));
    }

    /// Counts what the session has written.
    pub(super) fn writes(&self, bytes: usize) {
        self.written.set(self.written.get().saturating_add(bytes as u64));
    }

    /// Tells what was used, in the one line that supervisors read.
    pub(super) fn tell_usage(&self, used: &Figures) {
        self.told_usage.set(true);
        let mut line = json!({
            "type": "usage",
            "agent": self.prompt.agent.to_string(),
            "input": used.input,
            "output": used.output,
            "cached": used.cached,
            "cost_usd": used.cost_usd,
        });
        if let Some(percent) = used.context_percent {
            line["context_percent"] = json!(percent);
        }
        // Whoever closed the pipe does not want to hear more.
        let _ = writeln!(io::stdout(), "{line}");
    }

    /// Tells at the end what was really read and written, where the playbook has not made figures up. It costs nothing.
    pub(super) fn tell_real_usage(&self) {
        if self.told_usage.get() {
            return;
        }
        let tokens = |bytes: &Cell<u64>| bytes.get().div_ceil(TOKEN);
        let (input, output) = (tokens(&self.read), tokens(&self.written));
        let percent = ((input + output) * 100 / CONTEXT).min(100);
        let context_percent = u32::try_from(percent).ok().map(f64::from);
        self.tell_usage(&Figures { input, output, context_percent, ..Figures::default() });
    }

    /// Where the work is.
    pub(super) fn place(&self) -> &Path {
        match &self.prompt.job {
            Job::Code(job) => &job.worktree,
            Job::Review(job) => &job.worktree,
            Job::Plan(_) => &self.prompt.project,
        }
    }

    pub(super) fn assigned(&self) -> Result<&Assigned, RehearsalError> {
        match &self.prompt.job {
            Job::Code(job) => Ok(job),
            Job::Review(_) | Job::Plan(_) => {
                Err(RehearsalError::NoPart("only a coder has a task to work on"))
            }
        }
    }

    pub(super) fn review(&self) -> Result<&Review, RehearsalError> {
        match &self.prompt.job {
            Job::Review(job) => Ok(job),
            Job::Code(_) | Job::Plan(_) => {
                Err(RehearsalError::NoPart("only a code reviewer has a review to do"))
            }
        }
    }

    pub(super) fn planning(&self) -> Result<&Planning, RehearsalError> {
        match &self.prompt.job {
            Job::Plan(job) => Ok(job),
            Job::Code(_) | Job::Review(_) => Err(RehearsalError::NoPart("only the planner plans")),
        }
    }

    /// The task's name; empty for the planner.
    pub(super) fn task(&self) -> &str {
        self.prompt.task().map_or("", |task| task.as_str())
    }

    /// A text of the playbook with the names of this session in it.
    pub(super) fn fill(&self, text: &str) -> String {
        if !text.contains('{') {
            return text.to_owned();
        }
        let iteration = self.assigned().map(|job| job.iteration).unwrap_or(1);
        text.replace("{task}", self.task())
            .replace("{agent}", &self.prompt.agent.to_string())
            .replace("{iteration}", &iteration.to_string())
    }

    /// Tells something in the agent's own words.
    pub(super) fn say(&self, text: &str) {
        self.writes(text.len());
        self.tell(text, || json!({"event": "says", "text": text}));
    }

    /// Tells what a program was called with and how it ended.
    pub(super) fn told(&self, command: &str, called: &Called) {
        self.writes(command.len());
        self.reads(called.words.len());
        let said: String = called.words.lines().map(|line| format!("\n  {line}")).collect();
        let code = called.code;
        let ending = if code == 0 { String::new() } else { format!("\n  exit {code}") };
        self.tell(
            &format!("$ {command}{said}{ending}"),
            || json!({"event": "ran", "command": command, "exit": code, "output": called.words}),
        );
    }

    fn tell(&self, text: &str, event: impl FnOnce() -> serde_json::Value) {
        // Whoever closed the pipe does not want to hear more, and the work goes on.
        let _ = match self.voice {
            Voice::Lines => writeln!(io::stdout(), "{text}"),
            Voice::Events => {
                let mut event = event();
                event["agent"] = self.prompt.agent.to_string().into();
                writeln!(io::stdout(), "{event}")
            }
        };
    }

    /// The program that the prompt names, else the one that runs.
    pub(super) fn program(&self) -> PathBuf {
        let named = &self.prompt.program;
        match named.is_file() {
            true => named.clone(),
            false => env::current_exe().unwrap_or_else(|_| named.clone()),
        }
    }

    /// Calls liza; it has to succeed.
    pub(super) fn liza(&self, arguments: &[String]) -> Done {
        self.liza_with(arguments, "")
    }

    /// The same with something to read.
    pub(super) fn liza_with(&self, arguments: &[String], input: &str) -> Done {
        let called = self.try_liza(arguments, input)?;
        match called.code {
            0 => Ok(()),
            code => Err(Halt::from(RehearsalError::Failed {
                command: format!("liza {}", arguments.join(" ")),
                code,
                words: called.words.lines().next().unwrap_or_default().to_owned(),
            })),
        }
    }

    /// Asks liza something; gives the result for programs and tells nobody.
    pub(super) fn ask(&self, arguments: &[String]) -> Result<serde_json::Value, RehearsalError> {
        let program = self.program();
        let mut command = Command::new(&program);
        command.args(arguments).arg("--json").current_dir(self.place());
        let called = run(&mut command, "").map_err(|error| RehearsalError::io("run", &program, error))?;
        self.reads(called.words.len());
        // The one object is the first line; what was told on the side comes after it.
        let first = called.words.lines().next().unwrap_or_default();
        let answer: Option<serde_json::Value> = serde_json::from_str(first).ok();
        match answer.filter(|_| called.code == 0) {
            Some(answer) => Ok(answer["result"].clone()),
            None => Err(RehearsalError::Failed {
                command: line("liza", arguments),
                code: called.code,
                words: called.words,
            }),
        }
    }

    /// Calls liza; 42 ends the scene, any other answer is the caller's to judge.
    pub(super) fn try_liza(&self, arguments: &[String], input: &str) -> Result<Called, Halt> {
        let arguments: Vec<String> = arguments.iter().map(|word| self.fill(word)).collect();
        let mut called = self.call(&arguments, input, None)?;
        for _ in 1..TRIES {
            if called.code != LOCKED {
                break;
            }
            called = self.call(&arguments, input, None)?;
        }
        if called.code == STOP { Err(Halt::Stop) } else { Ok(called) }
    }

    /// Calls liza once, perhaps as another generation.
    pub(super) fn call(
        &self,
        arguments: &[String],
        input: &str,
        generation: Option<u64>,
    ) -> Result<Called, RehearsalError> {
        let program = self.program();
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(self.place());
        if let Some(generation) = generation {
            command.env(crate::project::AGENT_GENERATION, generation.to_string());
        }
        let called = run(&mut command, input).map_err(|error| RehearsalError::io("run", &program, error))?;
        self.told(&line("liza", arguments), &called);
        Ok(called)
    }

    /// Runs a shell command where the work is; it has to succeed.
    pub(super) fn check(&self, script: &str) -> Done {
        let script = self.fill(script);
        let mut command = Command::new("sh");
        command.arg("-c").arg(&script).current_dir(self.place());
        let called =
            run(&mut command, "").map_err(|error| RehearsalError::io("run", Path::new("sh"), error))?;
        self.told(&script, &called);
        match called.code {
            0 => Ok(()),
            code => Err(RehearsalError::Failed {
                command: script,
                code,
                words: called.words.lines().last().unwrap_or_default().to_owned(),
            }
            .into()),
        }
    }

    /// Looks until `there` says yes, at most that long; says whether it did.
    pub(super) fn await_it(&self, limit: Duration, there: impl Fn() -> bool) -> bool {
        let mut left = limit;
        while !there() {
            if left.is_zero() {
                return false;
            }
            thread::sleep(GLANCE.min(left));
            left = left.saturating_sub(GLANCE);
        }
        true
    }
}

/// Runs a program with captured output.
fn run(command: &mut Command, input: &str) -> io::Result<Called> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read its input closes it early, which is its right.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    let mut words = String::from_utf8_lossy(&output.stdout).into_owned();
    words.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok(Called { code: output.status.code().unwrap_or(-1), words: words.trim_end().to_owned() })
}

/// A command as people would type it.
pub(super) fn line(program: &str, arguments: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=#*".contains(c);
    let word = |text: &String| match !text.is_empty() && text.chars().all(plain) {
        true => text.clone(),
        false => format!("{text:?}"),
    };
    let words: Vec<String> = std::iter::once(program.to_owned()).chain(arguments.iter().map(word)).collect();
    words.join(" ")
}

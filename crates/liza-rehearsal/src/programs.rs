//! Runs `liza` and the shell for a session, in its work folder. A command that exits with 42 stops the scene;
//! any other failure is an error, unless the caller judges it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{RehearsalError, StepError, StepResult, require_success};
use crate::process::{Finished, command_line, run};
use crate::protocol::{EXIT_LOCKED, EXIT_STOP, GENERATION_VARIABLE};
use crate::session::Session;

/// The number of attempts for a command that doesn't get the lock.
const LOCK_ATTEMPTS: u32 = 3;

impl Session {
    /// Returns the `liza` that the prompt names, or this program where that file is missing.
    pub(crate) fn liza_path(&self) -> PathBuf {
        let named = &self.prompt.liza;
        match named.is_file() {
            true => named.clone(),
            false => env::current_exe().unwrap_or_else(|_| named.clone()),
        }
    }

    /// Runs a `liza` command that has to succeed.
    pub(crate) fn liza(&self, arguments: impl AsRef<[String]>) -> StepResult {
        self.liza_with_input(arguments, "")
    }

    /// Runs a `liza` command that has to succeed, with `input` on its standard input.
    pub(crate) fn liza_with_input(&self, arguments: impl AsRef<[String]>, input: &str) -> StepResult {
        let arguments = arguments.as_ref();
        let finished = self.try_liza(arguments, input)?;
        Self::succeeded(arguments, &finished)
    }

    /// Turns a failed `liza` command into an error.
    pub(crate) fn succeeded(arguments: &[String], finished: &Finished) -> StepResult {
        let output = finished.output();
        let first_line = output.lines().next().unwrap_or_default();
        Ok(require_success(format!("liza {}", arguments.join(" ")), finished.code, first_line)?)
    }

    /// Runs a `liza` command, again if it doesn't get the lock. Exit code 42 stops the scene.
    pub(crate) fn try_liza(&self, arguments: impl AsRef<[String]>, input: &str) -> StepResult<Finished> {
        let arguments: Vec<String> = arguments.as_ref().iter().map(|word| self.expand(word)).collect();
        let mut finished = self.liza_once(&arguments, input, None)?;
        for _ in 1..LOCK_ATTEMPTS {
            if finished.code != EXIT_LOCKED {
                break;
            }
            finished = self.liza_once(&arguments, input, None)?;
        }
        if finished.code == i32::from(EXIT_STOP) { Err(StepError::Stopped) } else { Ok(finished) }
    }

    /// Runs a `liza` command once, under another generation where one is given.
    pub(crate) fn liza_once(
        &self,
        arguments: &[String],
        input: &str,
        generation: Option<u64>,
    ) -> Result<Finished, RehearsalError> {
        let program = self.liza_path();
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(self.work_dir());
        if let Some(generation) = generation {
            command.env(GENERATION_VARIABLE, generation.to_string());
        }
        let finished = run(&mut command, input).map_err(RehearsalError::io("run", &program))?;
        self.transcript.ran(&command_line("liza", arguments), finished.code, &finished.output());
        Ok(finished)
    }

    /// Runs a `liza` query and returns its `result` as JSON; the transcript does not show it.
    pub(crate) fn query_liza(
        &self,
        arguments: impl AsRef<[String]>,
    ) -> Result<serde_json::Value, RehearsalError> {
        let (arguments, program) = (arguments.as_ref(), self.liza_path());
        let mut command = Command::new(&program);
        command.args(arguments).arg("--json").current_dir(self.work_dir());
        let finished = run(&mut command, "").map_err(RehearsalError::io("run", &program))?;
        let output = finished.output();
        // The answer is the first line; notices on standard error follow it.
        let answer = serde_json::from_str(output.lines().next().unwrap_or_default());
        match answer {
            Ok(serde_json::Value::Object(mut answer)) if finished.code == 0 => {
                Ok(answer.remove("result").unwrap_or_default())
            }
            Ok(_) | Err(_) => Err(RehearsalError::CommandFailed {
                command: command_line("liza", arguments),
                code: finished.code,
                message: output,
            }),
        }
    }

    pub(crate) fn shell(&self, script: &str) -> StepResult {
        let script = self.expand(script);
        let mut command = Command::new("sh");
        command.arg("-c").arg(&script).current_dir(self.work_dir());
        let finished = run(&mut command, "").map_err(RehearsalError::io("run", Path::new("sh")))?;
        let output = finished.output();
        self.transcript.ran(&script, finished.code, &output);
        require_success(script.clone(), finished.code, output.lines().last().unwrap_or_default())?;
        self.checks.borrow_mut().push(script);
        Ok(())
    }
}

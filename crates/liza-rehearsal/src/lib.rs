//! The rehearsal agent: a scripted stand-in for an agent program that plays planner, coder and code reviewer.
//!
//! It reads its prompt on standard input and runs `liza`, git and the shell as child processes. It must not
//! depend on another crate of Liza: whatever works here works for every agent program.

#![forbid(unsafe_code)]

mod arguments;
mod coder;
mod common;
mod error;
mod files;
mod git;
mod misbehaviour;
mod planner;
mod playbook;
mod process;
mod programs;
mod prompt;
mod protocol;
mod reviewer;
mod scene;
mod session;
mod startup;
mod transcript;

use std::io::Read;

use error::StepError;
use session::Session;
use transcript::Transcript;

pub use error::RehearsalError;
pub use misbehaviour::hang;
pub use playbook::{FileContent, Playbook, SampleProject};
pub use prompt::{CodingJob, Job, PendingTask, PlanningJob, Prompt, PromptError, ReviewJob, Trigger};
pub use protocol::{PLAYBOOK_VARIABLE, Role, TriggerKind};
pub use transcript::OutputFormat;

/// The playbook of `liza demo`, as YAML.
pub const DEMO_PLAYBOOK: &str = include_str!("demo.yaml");

/// The largest prompt that is read. Prompts are a few pages; a larger one is a mistake.
const PROMPT_MAX_BYTES: u64 = 16 << 20;

#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// The scenes to play; if none fits, the session does the default.
    pub playbook: Playbook,
    /// The agent that the environment names.
    pub agent_id: Option<String>,
    /// The generation that the environment names.
    pub generation: Option<u64>,
    pub format: OutputFormat,
}

/// Plays one session and returns its exit code.
pub fn run_session(input: impl Read, options: &SessionOptions) -> Result<u8, RehearsalError> {
    let mut text = String::new();
    input.take(PROMPT_MAX_BYTES).read_to_string(&mut text).map_err(RehearsalError::UnreadablePrompt)?;
    let prompt = Prompt::read(&text)?;
    if let Some(environment) = options.agent_id.clone().filter(|id| *id != prompt.agent) {
        return Err(RehearsalError::WrongAgent { prompt: prompt.agent, environment });
    }
    let transcript = Transcript::new(prompt.agent.clone(), options.format);
    let session = Session::new(prompt, transcript, options.generation);
    let played = startup::check(&session).and_then(|()| scene::play(&session, &options.playbook));
    match played {
        Ok(code) => Ok(code),
        Err(StepError::Stopped) => {
            session.say("asked to stop");
            Ok(protocol::EXIT_STOP)
        }
        Err(StepError::Failed(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    /// Covers: AG-15
    #[test]
    fn the_crate_depends_on_no_other_crate_of_liza() {
        let manifest = include_str!("../Cargo.toml");
        assert_eq!(manifest.matches("liza-").count(), 1, "only the package's own name: {manifest}");
    }
}

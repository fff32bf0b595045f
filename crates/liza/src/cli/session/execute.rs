//! The supervisor's side: executes a command line as the session's agent, in its project.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use liza_core::model::Actor;
use liza_team::channel::{Answer, ServedSession, SessionCall, SessionCommands, WrittenTo};

use crate::cli::context::{Caller, Environment, OnBehalf};
use crate::cli::ui::buffer_console::BufferConsole;
use crate::cli::ui::exit_code::Exit;

/// Executes the commands of sessions with the code of the command line, which is this function.
pub(crate) struct CommandRunner(pub(crate) fn(Vec<OsString>, Caller) -> Exit);

impl SessionCommands for CommandRunner {
    fn execute(&self, session: &ServedSession, call: SessionCall) -> Answer {
        let SessionCall { arguments, input, files, terminal, .. } = call;
        let console = Arc::new(BufferConsole::new(input.unwrap_or_default(), terminal));
        let columns = terminal.fixed_columns.map(|columns| columns.to_string());
        let own = session.environment.iter().map(|(name, value)| (name.as_str(), Some(value.as_str())));
        let environment = Environment::of_process().with(own.chain([("COLUMNS", columns.as_deref())]));
        let files: BTreeMap<PathBuf, String> =
            files.into_iter().map(|(name, text)| (name.into(), text)).collect();
        let caller = Caller {
            sessions: Vec::new(),
            directory: session.project.root().to_owned(),
            environment,
            console: console.clone(),
            program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("liza")),
            on_behalf: Some(OnBehalf {
                project: session.project.clone(),
                actor: Actor::Agent(session.agent, session.generation),
                files: Arc::new(files),
                last_refusal: session.last_refusal.clone(),
            }),
        };
        let exit = self.0(arguments.into_iter().map(OsString::from).collect(), caller);
        let mut written = console.take();
        written.extend(session.untold.take().into_iter().map(|note| (WrittenTo::Error, format!("{note}\n"))));
        Answer { written, exit: exit.code() }
    }
}

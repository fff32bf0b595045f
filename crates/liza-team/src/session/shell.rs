//! A person's shell in the worktree of a task, confined as the sessions of its coder. It is no session: it has no login, no
//! channel and no claim, and takes no lock of one, so a session that runs meanwhile goes on.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use liza_agents::providers::{Provider, ProviderError};
use liza_core::model::{Config, Role, TaskId};
use liza_git::GitError;
use liza_host::model_proxy::{ModelProxy, proxy_variables};
use liza_host::private;
use liza_sandbox::confine::start::NO_SPEAKER;
use liza_sandbox::confine::{
    Confined, EnvironmentUse, Plan, RecordedSession, StageInput, StageOrder, cache_variables, forget_session,
    is_of_database, passed_environment, record_session, wrapped_stage_command, wrapper_words,
};
use liza_sandbox::sys::confinement::TcpGrants;
use liza_sandbox::sys::family::{ProcessFamily, ProgramExit};
use liza_sandbox::sys::remove_tree::{fresh_folder, remove_tree};
use liza_sandbox::sys::terminal::{OwnTerminal, PersonsTerminal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::project::Project;
use crate::session::git_settings::{ceiling_variable, identity_variables};
use crate::session::network::allowed_hosts;
use crate::session::plan::{SessionNeeds, minimum, session_plan};

/// The variable that names the task of a shell.
pub const SHELL_VARIABLE: &str = "LIZA_SHELL";

#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Provider(#[from] ProviderError),
    #[error("cannot start the shell: {0}")]
    Io(#[from] io::Error),
}

#[derive(Debug)]
pub struct Shell<'a> {
    pub project: &'a Project,
    pub config: &'a Config,
    pub task: &'a TaskId,
    /// The agent program of the task's coder, whose model a closed network still reaches.
    pub provider: &'a Provider,
    pub liza: &'a Path,
    pub program: PathBuf,
}

impl Shell<'_> {
    /// Runs it in this terminal; returns its exit code when nothing that it started is left.
    pub fn run(&self, terminal: PersonsTerminal) -> Result<u8, ShellError> {
        let scratch = OwnFolder::create(self.project)?;
        let caches = self.project.folder().join("caches").join(Role::Coder.to_string());
        private::create_folder(&caches)?;
        let variable = |name: &str| std::env::var(name).ok();
        let proxy = match allowed_hosts(self.config, Role::Coder, self.provider, &variable)? {
            Some(hosts) => Some(ModelProxy::start(hosts, |_| {})?),
            None => None,
        };
        let ports = &self.config.network_ports;
        let network = proxy.as_ref().map(|proxy| TcpGrants { proxy: proxy.port(), ports: ports.clone() });
        let worktree = self.project.repo()?.worktree_path(self.task);
        let needs = SessionNeeds {
            liza: self.liza,
            checkout: Some(&worktree),
            scratch: &scratch.0,
            own: std::slice::from_ref(&caches),
            files: &[],
            program: Some(&self.program),
            channel: None,
            network: network.as_ref(),
        };
        let mut variables = self.variables(&worktree, &scratch.0)?;
        variables.extend(proxy.iter().flat_map(|proxy| proxy_variables(proxy.port())));
        let (mut started, terminal) = (None, OwnTerminal::new(terminal)?);
        let family = match session_plan(self.project, self.config, &needs)? {
            Some(plan) => {
                variables.extend(cache_variables(&caches));
                // Git fails at settings there that exist and cannot be read.
                variables.push(("XDG_CONFIG_HOME".to_owned(), scratch.0.to_string_lossy().into_owned()));
                let (family, session) = self.start_confined(plan, &worktree, variables, &terminal)?;
                record_session(self.project.folder(), Confined::Shell(self.task), &session);
                started = Some(session);
                family
            }
            None => {
                let mut command = Command::new(&self.program);
                for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_database(name)) {
                    command.env_remove(name);
                }
                terminal.lead(&mut command)?;
                ProcessFamily::spawn(command.current_dir(&worktree).envs(variables), false)?
            }
        };
        end_when_asked(&family)?;
        let copied = terminal.copy()?;
        let ended = family.wait_for_all();
        if let Some(session) = &started {
            forget_session(self.project.folder(), Confined::Shell(self.task), session);
        }
        drop(copied);
        Ok(match ended {
            ProgramExit::Code(code) => u8::try_from(code).unwrap_or(1),
            ProgramExit::Signal(signal) => u8::try_from(128 + signal).unwrap_or(1),
        })
    }

    /// The variables that Liza sets, whatever the person's shell has.
    fn variables(&self, worktree: &Path, scratch: &Path) -> Result<Vec<(String, String)>, ShellError> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut variables: Vec<(String, String)> = vec![
            (SHELL_VARIABLE.to_owned(), self.task.to_string()),
            ("PWD".to_owned(), text(worktree)),
            ("TMPDIR".to_owned(), text(scratch)),
            ceiling_variable(self.project.root()),
        ];
        variables.extend(identity_variables(self.project.repo()?, None));
        Ok(variables)
    }

    fn start_confined(
        &self,
        plan: Plan,
        worktree: &Path,
        variables: Vec<(String, String)>,
        terminal: &OwnTerminal,
    ) -> Result<(ProcessFamily, RecordedSession), ShellError> {
        let wrapper = wrapper_words(&self.config.exec_wrapper, &plan, &worktree.to_string_lossy());
        let (mut command, socket) = wrapped_stage_command(&wrapper, self.liza)?;
        let all: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        // No agent program runs in it, so it has no key.
        let passed = passed_environment(all, EnvironmentUse::CodeUnderTest, &self.config.pass_env);
        command.current_dir(worktree).env_clear().envs(passed).envs(variables);
        terminal.connect(&mut command)?;
        let family = ProcessFamily::spawn(&mut command, false)?;
        drop(command);
        let network = plan.network();
        let order = StageOrder {
            plan,
            minimum: minimum(self.config),
            program: Some(self.program.clone()),
            arguments: Vec::new(),
            directory: None,
            environment: None,
            input: StageInput::Terminal,
        };
        let started = socket.start(&order, NO_SPEAKER)?;
        let process = started.client.unwrap_or_else(|| family.id());
        Ok((family, RecordedSession::new(started.level, network, process)))
    }
}

/// Ends the shell when this process is asked to end, which still puts the terminal back.
fn end_when_asked(family: &ProcessFamily) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
    let family = family.clone();
    thread::spawn(move || signals.forever().for_each(|_| family.kill()));
    Ok(())
}

/// A folder for the temporary files of one shell.
struct OwnFolder(PathBuf);

impl OwnFolder {
    fn create(project: &Project) -> io::Result<Self> {
        let folder = project.folder().join("tmp").join(format!("shell-{}", std::process::id()));
        fresh_folder(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        let _ = remove_tree(&self.0);
    }
}

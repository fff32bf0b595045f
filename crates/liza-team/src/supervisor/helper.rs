//! The small process between a supervisor and one agent session: starts it, keeps its output, kills its
//! remaining processes. Must not outlive its supervisor: when the pipe from it closes, every process of the
//! session is killed. Knows no blackboard and no git.

use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use liza_agents::providers::side_log::SideLog;
use liza_agents::providers::stream::EventStream;
use liza_core::model::{FaultKind, Network, Role};
use liza_host::durable::{self, Open};
use liza_host::private;
use liza_host::secrets::Masker;
use liza_host::worktrees::worktrees_folder;
use liza_sandbox::confine::{
    EnvironmentUse, Level, StageInput, StageOrder, StageSocket, is_of_database, is_withheld,
    passed_environment, search_path_outside, wrapped_stage_command,
};
use liza_sandbox::sys::family::{ProcessFamily, ProgramExit, Reaped};
use liza_sandbox::sys::remove_tree::{fresh_folder, remove_tree};
use liza_sandbox::sys::terminal::{CopiedTerminal, OwnTerminal, PersonsTerminal};

use crate::engine::{EngineError, FileLock};
use crate::project::identity::{Speakers, own_session};
use crate::session::check::PLAN_VARIABLE;
use crate::session::login_copies::LoginCopies;

use super::helper_protocol::{HelperCommand, HelperReport, SessionConfinement, SessionOrder, send_report};
use super::output_reader::{OutputRead, OutputReader};

/// The reduced priority of a session that is not interactive.
const NICENESS: i32 = 5;

/// The longest wait for processes that cannot be killed because they hang in the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest wait for the kill of an earlier session of the same agent, whose supervisor is gone.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);

/// The pause between two looks for a refreshed login: the others of the team wait for it.
const LOGIN_INTERVAL: Duration = Duration::from_secs(1);

/// The time that another session may take until the login that it refreshes is the person's.
const REFRESH_TIME: Duration = Duration::from_secs(3);

/// Variables that would point a session's git at another repository.
const REPOSITORY_VARIABLES: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
];

enum HelperEvent {
    Command(HelperCommand),
    Orphaned,
    Ended(ProgramExit),
    NoneLeft,
}

/// Runs the order that arrives first on standard input; returns the exit code.
pub fn serve() -> u8 {
    let mut line = String::new();
    let order = match io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => return 1,
        Ok(_) => serde_json::from_str::<SessionOrder>(&line),
    };
    let logins = SharedLogins::default();
    let run = order.map_err(io::Error::other).and_then(|order| {
        let run = run(&order, &logins);
        let _ = remove_tree(&order.scratch);
        finish_logins(&logins, &run);
        let masker = Masker::of_process_and(order.environment.clone());
        order.confinement.iter().for_each(|confinement| confinement.client.remove(&masker));
        run
    });
    let login_changed = lock(&logins).is_outdated();
    let (report, code) = match run {
        Ok((exit, output)) => {
            let (code, signal) = (exit_code(exit), exit_signal(exit));
            let encoded = code.unwrap_or_else(|| 128 + signal.unwrap_or_default());
            let dropped = output.as_ref().map_or(0, |output| output.dropped);
            let outcome = output.map(|output| output.outcome(code)).unwrap_or_default();
            let report = HelperReport::Ended { code, signal, dropped, outcome, login_changed };
            (report, u8::try_from(encoded).unwrap_or(1))
        }
        Err(error) => (HelperReport::Failed { message: error.to_string() }, 1),
    };
    send_report(&report);
    code
}

fn exit_code(exit: ProgramExit) -> Option<i32> {
    match exit {
        ProgramExit::Code(code) => Some(code),
        ProgramExit::Signal(_) => None,
    }
}

fn exit_signal(exit: ProgramExit) -> Option<i32> {
    match exit {
        ProgramExit::Code(_) => None,
        ProgramExit::Signal(signal) => Some(signal),
    }
}

/// Checked while the session runs.
type SharedLogins = Arc<Mutex<LoginCopies>>;

fn lock(logins: &SharedLogins) -> MutexGuard<'_, LoginCopies> {
    logins.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the logins up to date until the session has ended.
fn watch_logins(logins: &SharedLogins) {
    let logins = Arc::clone(logins);
    thread::spawn(move || {
        loop {
            thread::sleep(LOGIN_INTERVAL);
            let mut logins = lock(&logins);
            if logins.is_finished() {
                return;
            }
            logins.update();
        }
    });
}

/// Writes refreshed logins back, and reports refused parts. Another session may be refreshing a refused login.
fn finish_logins(logins: &SharedLogins, run: &io::Result<(ProgramExit, Option<OutputRead>)>) {
    let outcome =
        run.as_ref().ok().and_then(|(exit, output)| Some(output.as_ref()?.outcome(exit_code(*exit))));
    let fault = outcome.and_then(|outcome| outcome.fault);
    let is_refused = fault.is_some_and(|fault| fault.kind == FaultKind::Auth);
    let refused = lock(logins).finish(if is_refused { REFRESH_TIME } else { Duration::ZERO });
    refused.into_iter().for_each(|login| send_report(&HelperReport::RefusedLogin(login)));
}

fn run(order: &SessionOrder, logins: &SharedLogins) -> io::Result<(ProgramExit, Option<OutputRead>)> {
    let _lock = wait_for_earlier_session(order)?;
    if order.output.is_some() {
        // Sixty sessions that compile must not starve their supervisor.
        let _ = rustix::process::nice(NICENESS);
    }
    if order.output.is_none() {
        // Ctrl-C in the terminal is meant for the program. If it cannot be ignored here, it ends the session.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::default());
    }
    let Started { family, client, output, terminal, level } = start(order, logins)?;
    watch_logins(logins);
    let network = network(order);
    send_report(&HelperReport::Started { pid: client, level, network });
    let (sender, events) = channel();
    let commands = sender.clone();
    thread::spawn(move || read_commands(&commands));
    let reaper = family.clone();
    thread::spawn(move || reap(&reaper, &sender));
    let mut exit = None;
    let mut ending: Option<Instant> = None;
    loop {
        let pause = if ending.is_some() { Duration::from_millis(10) } else { KILL_TIMEOUT };
        match events.recv_timeout(pause) {
            Ok(HelperEvent::Command(HelperCommand::Terminate)) => family.terminate(),
            Ok(HelperEvent::Command(HelperCommand::Kill) | HelperEvent::Orphaned) => {
                ending = ending.or(Some(Instant::now()))
            }
            Ok(HelperEvent::Ended(how)) => {
                exit = Some(how);
                ending = ending.or(Some(Instant::now()));
            }
            Ok(HelperEvent::NoneLeft) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if ending.is_some_and(|since| since.elapsed() > KILL_TIMEOUT) {
            break;
        }
        if ending.is_some() {
            family.kill();
        }
    }
    // Without a subreaper, remaining processes can only be found by their process group.
    family.kill();
    drop(terminal);
    Ok((exit.unwrap_or(ProgramExit::Signal(9)), finish_output(output)))
}

/// Waits until an earlier session of this agent, which another helper is killing, has ended. Does not wait if
/// the file system has no locks.
fn wait_for_earlier_session(order: &SessionOrder) -> io::Result<Option<FileLock>> {
    match FileLock::at(&order.lock, LOCK_TIMEOUT) {
        Ok(lock) => Ok(Some(lock)),
        Err(EngineError::Locked { .. }) => {
            Err(io::Error::other("an earlier session of this agent could not be killed"))
        }
        Err(_) => Ok(None),
    }
}

struct Started {
    family: ProcessFamily,
    client: u32,
    output: Option<JoinHandle<OutputRead>>,
    terminal: Option<CopiedTerminal>,
    level: Level,
}

fn start(order: &SessionOrder, logins: &SharedLogins) -> io::Result<Started> {
    let (mut command, stage) = command(order)?;
    set_environment(&mut command, order);
    let mut output = open_output(&mut command, order)?;
    let terminal = if order.output.is_none() { own_terminal(&mut command, stage.is_some())? } else { None };
    // The stage waits for its order, so it starts while the folders are made; a runner in front of it needs them.
    let is_early = order.confinement.as_ref().is_some_and(|confinement| confinement.wrapper.is_empty());
    if !is_early {
        create_folders(order, logins)?;
    }
    let program = if stage.is_some() { Path::new("liza confine") } else { &order.program };
    let family = ProcessFamily::spawn(&mut command, order.output.is_some())
        .map_err(|error| failed("start", program, &error))?;
    // It holds a write end of the pipe; the output ends when all of them are closed.
    drop(command);
    if is_early {
        create_folders(order, logins)?;
    }
    let (level, client) = match stage {
        None => (Level::Off, None),
        Some((socket, stage_order)) => {
            let started = socket.start(&stage_order, Speakers::of(order.agent.role()).rule())?;
            (started.level, started.client)
        }
    };
    let client = client.unwrap_or_else(|| family.id());
    if let Some((_, file)) = &mut output {
        let confined = order.confinement.as_ref().map(|confinement| confinement.first_line(&level));
        let _ = writeln!(file, "{}", confined.unwrap_or_else(|| format!("[liza: confinement {level}]")));
    }
    let secrets = Masker::of_process_and(order.environment.iter().cloned());
    let variable = |name: &str| {
        let own = order.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.into());
        own.or_else(|| std::env::var_os(name))
    };
    let side_log = SideLog::new(order.dialect.format, order.confinement.is_some(), &variable);
    let stream = EventStream::guarded(order.dialect.clone(), order.allowance.clone());
    let output_reader = OutputReader::new(stream, secrets, order.result_file.clone(), side_log);
    let copy = |(reader, file)| thread::spawn(move || output_reader.copy(reader, file));
    let terminal = terminal.map(OwnTerminal::copy).transpose()?;
    Ok(Started { family, client, output: output.map(copy), terminal, level })
}

fn create_folders(order: &SessionOrder, logins: &SharedLogins) -> io::Result<()> {
    // An earlier session may have left anything in its place.
    fresh_folder(&order.scratch).map_err(|error| failed("create", &order.scratch, &error))?;
    let Some(confinement) = &order.confinement else { return Ok(()) };
    let client = &confinement.client;
    *lock(logins) = client.create().map_err(|error| failed("create", &client.path, &error))?;
    let plan = serde_json::to_vec(&confinement.plan).map_err(io::Error::other)?;
    private::create_new(&confinement.plan_file()).and_then(|mut file| file.write_all(&plan))?;
    // The place of these caches in 0.1.
    let mut old = confinement.caches.clone().into_os_string();
    old.push("-check");
    let _ = remove_tree(Path::new(&old));
    for caches in [Some(&confinement.caches), confinement.plan.check_caches.as_ref()].into_iter().flatten() {
        private::create_folder(caches).map_err(|error| failed("create", caches, &error))?;
        // An earlier session may have locked it. No session can put a link in its place.
        fs::set_permissions(caches, Permissions::from_mode(0o700))
            .map_err(|error| failed("open", caches, &error))?;
    }
    Ok(())
}

fn network(order: &SessionOrder) -> Network {
    order.confinement.as_ref().map_or(Network::Open, SessionConfinement::network)
}

fn failed(what: &str, path: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("cannot {what} {}: {error}", path.display()))
}

/// The command to spawn: the agent itself, or the stage that confines itself first and then becomes the agent.
fn command(order: &SessionOrder) -> io::Result<(Command, Option<(StageSocket, StageOrder)>)> {
    let Some(confinement) = &order.confinement else {
        let mut command = Command::new(&order.program);
        command.args(&order.arguments);
        match &order.input {
            StageInput::File(input) => command
                .stdin(durable::open(Open::Read, input).map_err(|error| failed("read", input, &error))?),
            StageInput::Nothing | StageInput::Terminal => command.stdin(Stdio::null()),
        };
        return Ok((command, None));
    };
    let (mut command, socket) = wrapped_stage_command(&confinement.wrapper, &confinement.liza)?;
    command.args(own_session());
    let used_for = EnvironmentUse::AgentProgram(&confinement.login_variables);
    command.env_clear();
    command.envs(passed_environment(std::env::vars_os(), used_for, &confinement.plan.pass_env));
    command.env(PLAN_VARIABLE, confinement.plan_file());
    let stage_order = StageOrder {
        plan: confinement.plan.clone(),
        minimum: confinement.minimum,
        program: Some(order.program.clone()),
        arguments: order.arguments.clone(),
        directory: None,
        environment: None,
        input: order.input.clone(),
    };
    Ok((command, Some((socket, stage_order))))
}

fn set_environment(command: &mut Command, order: &SessionOrder) {
    command.current_dir(&order.directory);
    for name in REPOSITORY_VARIABLES {
        command.env_remove(name);
    }
    // A session speaks to its supervisor, never to the database.
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_database(name)) {
        command.env_remove(name);
    }
    if order.agent.role() == Role::CodeReviewer {
        withhold(command, order);
    }
    // Some programs trust this variable more than the system, and would work in the supervisor's folder.
    command.env("PWD", &order.directory).env_remove("OLDPWD");
    command.env("TMPDIR", &order.scratch).envs(order.environment.iter().map(|(name, value)| (name, value)));
}

/// Takes away what would let code under review run as a reviewer.
fn withhold(command: &mut Command, order: &SessionOrder) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_withheld(Role::CodeReviewer, name)) {
        command.env_remove(name);
    }
    if let Some(path) = std::env::var_os("PATH") {
        let folders = [worktrees_folder(&order.project), order.project.join(".liza")];
        command.env("PATH", search_path_outside(&path, &folders.each_ref().map(PathBuf::as_path)));
    }
}

/// A terminal for the program of a conversation, if this process has one.
fn own_terminal(command: &mut Command, has_stage: bool) -> io::Result<Option<OwnTerminal>> {
    let Some(terminal) = PersonsTerminal::open().map(OwnTerminal::new).transpose()? else { return Ok(None) };
    if has_stage {
        terminal.connect(command)?
    } else {
        terminal.lead(command)?
    }
    Ok(Some(terminal))
}

/// Connects the output to a pipe that is copied to the file.
fn open_output(command: &mut Command, order: &SessionOrder) -> io::Result<Option<(io::PipeReader, File)>> {
    let Some(path) = &order.output else {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        return Ok(None);
    };
    let file = durable::open(Open::Append, path);
    let file = file.map_err(|error| failed("write", path, &error))?;
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    Ok(Some((reader, file)))
}

fn read_commands(events: &Sender<HelperEvent>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if let Ok(command) = serde_json::from_str(&line) {
            let _ = events.send(HelperEvent::Command(command));
        }
    }
    let _ = events.send(HelperEvent::Orphaned);
}

fn reap(family: &ProcessFamily, events: &Sender<HelperEvent>) {
    loop {
        let event = match family.reap() {
            Reaped::Leader(exit) => HelperEvent::Ended(exit),
            Reaped::Descendant => continue,
            Reaped::NoneLeft => HelperEvent::NoneLeft,
        };
        let last = matches!(event, HelperEvent::NoneLeft);
        if events.send(event).is_err() || last {
            return;
        }
    }
}

/// Waits for the end of the output, with a limit: a process that could not be killed may hold it open.
fn finish_output(output: Option<JoinHandle<OutputRead>>) -> Option<OutputRead> {
    let output = output?;
    let deadline = Instant::now() + Duration::from_secs(5);
    while !output.is_finished() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    if output.is_finished() { output.join().ok() } else { None }
}

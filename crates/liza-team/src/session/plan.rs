//! The confinement of a project's sessions: collects the facts for a plan, and finds out the level.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use liza_agents::providers::role_network;
use liza_core::model::{Config, Network, Role, Sandbox, SandboxMin};
use liza_git::{GitError, Repo};
use liza_host::private;
use liza_sandbox::confine::{
    COPIES, DiskLook, EnvironmentUse, Level, Plan, ProgramRun, RoomSettings, RunEnd, RunStage, Surroundings,
    ThrowAwayCopy, Variable, expand, local_ports, make_plan, named_tools, passed_environment, probe, too_low,
    your_caches,
};
use liza_sandbox::sys::confinement::TcpGrants;
use liza_sandbox::sys::remove_tree::remove_tree;

use crate::project::{Project, room_settings};

/// The needs of a session besides the project.
#[derive(Debug, Clone, Copy)]
pub struct SessionNeeds<'a> {
    pub liza: &'a Path,
    pub checkout: Option<&'a Path>,
    pub scratch: &'a Path,
    /// Further folders of the session.
    pub own: &'a [PathBuf],
    /// Needed wherever they are.
    pub files: &'a [PathBuf],
    pub program: Option<&'a Path>,
    /// The socket for its commands.
    pub channel: Option<&'a Path>,
    /// `None` if all of it is open.
    pub network: Option<&'a TcpGrants>,
}

/// `None` if the settings switch the confinement off.
pub(crate) fn session_plan(
    project: &Project,
    config: &Config,
    needs: &SessionNeeds<'_>,
) -> Result<Option<Plan>, GitError> {
    if config.sandbox == Sandbox::Off {
        return Ok(None);
    }
    Ok(Some(plan_in(project.repo()?, project.folder(), config, needs)))
}

fn plan_in(repo: &Repo, folder: &Path, config: &Config, needs: &SessionNeeds<'_>) -> Plan {
    let home = home();
    let caches = your_caches(home.as_deref());
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let search_path: Vec<PathBuf> = std::env::split_paths(&search_path).collect();
    let mut needed = needs.files.to_vec();
    needed.push(needs.liza.to_owned());
    let git_settings: Vec<PathBuf> = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"]
        .into_iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from)
        .collect();
    let services = services(config, needs.network.is_none());
    let around = Surroundings {
        root: repo.root(),
        folder,
        worktrees: &repo.worktrees_folder(),
        git: repo.common_dir(),
        checkout: needs.checkout,
        scratch: needs.scratch,
        own: needs.own,
        caches: &caches,
        needed: &needed,
        program: needs.program,
        search_path: &search_path,
        tools: &named_tools(std::env::vars_os()),
        git_settings: &git_settings,
        home: home.as_deref(),
        passwords: &hidden(config),
        user: rustix::process::getuid().as_raw(),
        settings: &room_settings(config),
        channel: needs.channel,
        network: needs.network,
        services: &services,
    };
    make_plan(&around, &DiskLook)
}

/// The services of this machine that the settings name, and with an open network, the variables of code under test.
fn services(config: &Config, is_open: bool) -> Vec<u16> {
    let passed = passed_environment(std::env::vars_os(), EnvironmentUse::CodeUnderTest, &config.pass_env);
    let named =
        passed.iter().filter(|_| is_open).flat_map(|(_, value)| local_ports(&value.to_string_lossy()));
    config.network_ports.iter().copied().chain(named).collect()
}

/// Files and folders that no session reads, wherever they are.
fn hidden(config: &Config) -> Vec<PathBuf> {
    database_passwords().into_iter().chain(holdout_folder(config)).collect()
}

/// The files with the password of the team's database, besides the usual one in the home folder.
fn database_passwords() -> Vec<PathBuf> {
    let named = ["PGPASSFILE", "PGSERVICEFILE"].into_iter().filter_map(std::env::var_os);
    named.filter_map(|file| std::path::absolute(file).ok()).collect()
}

/// The folder of the acceptance tests that no session reads, if the settings name one.
pub fn holdout_folder(config: &Config) -> Option<PathBuf> {
    config.holdout.as_deref().map(|folder| expand(folder, home().as_deref()))
}

pub fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

pub fn minimum(config: &Config) -> Option<SandboxMin> {
    match config.sandbox {
        Sandbox::Require => Some(config.sandbox_min),
        Sandbox::Auto | Sandbox::Off => None,
    }
}

/// The level that sessions of this project would have now, from a probe.
pub fn level_here(project: &Project, config: &Config, liza: &Path, network: Network) -> io::Result<Level> {
    let scratch = probe_folder(project);
    private::create_folder(&scratch)?;
    let network = match network {
        Network::Open => None,
        // Nothing is reached while trying, so any port is as good as that of a proxy.
        Network::ModelOnly => Some(TcpGrants { proxy: 1, ports: config.network_ports.clone() }),
    };
    let needs = SessionNeeds { network: network.as_ref(), ..no_needs(liza, &scratch) };
    let level = match session_plan(project, config, &needs).map_err(io::Error::other)? {
        None => Ok(Level::Off),
        Some(plan) => probe(liza, plan),
    };
    let _ = remove_tree(&scratch);
    level
}

/// True if sessions of a project that is being made would be in rooms, from a probe.
pub fn would_have_rooms(repo: &Repo, folder: &Path, liza: &Path) -> bool {
    let scratch = folder.join("tmp").join("probe");
    let tried = private::create_folder(&scratch)
        .and_then(|()| probe(liza, plan_in(repo, folder, &Config::default(), &no_needs(liza, &scratch))));
    let _ = remove_tree(&scratch);
    matches!(tried, Ok(Level::Isolated))
}

/// The level of code under test, as this process has found it.
pub(crate) fn known_level(project: &Project, config: &Config, liza: &Path) -> io::Result<Level> {
    found_once(project, config, Tried::Level, || level_here(project, config, liza, Network::Open))
}

/// What was tried on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tried {
    Level,
    Copies,
}

/// Finds a level only once in a process for the same settings: it costs as much as a session's start. A failure is no level.
fn found_once(
    project: &Project,
    config: &Config,
    tried: Tried,
    find: impl FnOnce() -> io::Result<Level>,
) -> io::Result<Level> {
    static FOUND: Mutex<Vec<(PathBuf, RoomSettings, Tried, Level)>> = Mutex::new(Vec::new());
    // Locked while it tries: agents that start together need one try.
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let (folder, settings) = (project.folder(), room_settings(config));
    let is_same = |(other, under, what, level): &&(PathBuf, RoomSettings, Tried, Level)| {
        // What makes copies in a room has a room.
        let says_it = *what == tried || (tried == Tried::Level && *level == Level::Isolated);
        other == folder && *under == settings && says_it
    };
    if let Some((.., level)) = found.iter().find(is_same) {
        return Ok(level.clone());
    }
    let level = find()?;
    found.push((folder.to_owned(), settings, tried, level.clone()));
    Ok(level)
}

/// True if rooms of this project can make copies of folders, as this process has found.
pub(crate) fn can_copy_in_room(project: &Project, config: &Config, liza: &Path) -> bool {
    let try_it = || {
        let mut copy = ThrowAwayCopy::new(&project.folder().join(COPIES))?;
        let (scratch, folder) = (copy.new_folder()?, copy.new_folder()?);
        let plan = session_plan(project, config, &no_needs(liza, &scratch)).map_err(io::Error::other)?;
        let mut plan = plan.ok_or(io::ErrorKind::Unsupported)?;
        plan.placed.push(copy.of(&folder)?);
        probe(liza, plan)
    };
    matches!(found_once(project, config, Tried::Copies, try_it), Ok(Level::Isolated))
}

/// The longest time of a command in a stage, which only tries something.
const TRY_LIMIT: Duration = Duration::from_secs(30);

/// True if a command of Liza succeeds where code under test of this project runs; `None` if the settings switch the
/// confinement off.
pub fn succeeds_in_stage(
    project: &Project,
    config: &Config,
    liza: &Path,
    arguments: Vec<String>,
) -> io::Result<Option<bool>> {
    let scratch = probe_folder(project);
    private::create_folder(&scratch)?;
    let tried = try_in_stage(project, config, (liza, &scratch), arguments);
    let _ = remove_tree(&scratch);
    tried
}

fn try_in_stage(
    project: &Project,
    config: &Config,
    (liza, scratch): (&Path, &Path),
    arguments: Vec<String>,
) -> io::Result<Option<bool>> {
    // The most that a session of any role reaches.
    let is_open = |role| role_network(config, role).unwrap_or_default() == Network::Open;
    let closed = TcpGrants { proxy: 1, ports: config.network_ports.clone() };
    let network = (!Role::ALL.into_iter().any(is_open)).then_some(&closed);
    let needs = SessionNeeds { network, ..no_needs(liza, scratch) };
    let plan = session_plan(project, config, &needs).map_err(io::Error::other)?;
    let Some(plan) = plan else { return Ok(None) };
    let environment: Vec<Variable> = std::env::vars_os().collect();
    let run = ProgramRun {
        program: liza.to_owned(),
        arguments,
        directory: scratch,
        environment: &environment,
        output: &scratch.join("output"),
        limit: TRY_LIMIT,
        stage: Some(RunStage { liza, caches: &scratch.join("caches"), scratch, minimum: None, plan }),
        cancelled: None,
    };
    match run.run()? {
        RunEnd::Exited(status) => Ok(Some(status.success())),
        RunEnd::TimedOut => Ok(Some(false)),
        RunEnd::NotStarted(error) => Err(error),
    }
}

/// The plan of every session of this project; `None` if the settings switch the confinement off.
pub fn plan_here(project: &Project, config: &Config, liza: &Path) -> Result<Option<Plan>, GitError> {
    session_plan(project, config, &no_needs(liza, &probe_folder(project)))
}

fn probe_folder(project: &Project) -> PathBuf {
    project.folder().join("tmp").join(format!("probe-{}", std::process::id()))
}

fn no_needs<'a>(liza: &'a Path, scratch: &'a Path) -> SessionNeeds<'a> {
    SessionNeeds {
        liza,
        checkout: None,
        scratch,
        own: &[],
        files: &[],
        program: None,
        channel: None,
        network: None,
    }
}

/// The reason why no session can start: the level would be too low.
pub fn refusal(config: &Config, level: &Level) -> Option<String> {
    minimum(config).filter(|minimum| !level.reaches(*minimum)).map(|_| too_low(level))
}

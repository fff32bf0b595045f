//! The doctor's checks of confinement: its level, the network, and the means of a session to push. Tries
//! nothing that could change something.

use std::io;
use std::path::{Path, PathBuf};

use liza_agents::providers::role_network;
use liza_core::model::{Config, Network, Role, Sandbox, SandboxMin, State, WorktreePlace};
use liza_git::Repo;
use liza_host::worktrees::WORKTREES;
use liza_sandbox::confine::{EnvironmentUse, Level, passed_environment};
use liza_sandbox::sys::confinement::protects_files;
use liza_team::lifecycle::place_of_worktrees;
use liza_team::observe::push_access::{HTTPS_LOGINS, SessionReach, TOKEN_VARIABLES, way_to_push};
use liza_team::project::Project;
use liza_team::session::network::strictest_network;
use liza_team::session::plan::{home, level_here, plan_here, refusal};
use liza_team::session::shared::{WITHOUT_ROOM, shared};

use crate::recognition::collectors;

use super::environment::{active_environment, environment, login_variables, services_of_programs};
use super::result::{Check, Health, broken, good, warning};

/// The confinement of sessions here; nothing if the settings cannot be read, which another check reports.
pub(super) fn confinement(project: &Project, state: &State, liza: &Path) -> Vec<Check> {
    let Ok(config) = state.board.config() else { return Vec::new() };
    let network = match strictest_network(config, Role::ALL) {
        Ok(network) => network,
        Err(error) => {
            return vec![broken("network", error.to_string(), "liza config roles.ROLE.network open")];
        }
    };
    let level = level_here(project, config, liza, network);
    let shared = shared_checks(config, matches!(level, Ok(Level::Isolated)), place_of_worktrees(project));
    let level = level_check(config, level);
    let network = (network == Network::ModelOnly).then(|| network_check(config, &level));
    let push = push_check(project, config, liza);
    let environment = environment(project, config).into_iter().chain(active_environment(project, config));
    let old = config.sandbox_read.is_some().then(old_setting);
    [level]
        .into_iter()
        .chain(shared)
        .chain(place_check(project, config))
        .chain(git_check(project))
        .chain(environment)
        .chain(network)
        .chain(push)
        .chain(old)
        .collect()
}

/// Shared at every level, and what keeps it apart.
const LOGIN: (&str, &str) =
    ("the login of its agent program, whose refreshed tokens become yours", "a key in a variable instead");

/// Shared if worktrees are below the root.
const CHECKOUTS: (&str, &str) =
    ("checkouts of agents below .worktrees, which your tools may read", "liza config worktrees outside");

/// Everything that sessions share with the person, a line for each thing, with what ends it.
fn shared_checks(config: &Config, has_room: bool, place: WorktreePlace) -> Vec<Check> {
    if config.sandbox == Sandbox::Off {
        return Vec::new();
    }
    let is_open = |role: Role| role_network(config, role).unwrap_or_default() == Network::Open;
    let network = if Role::ALL.into_iter().any(is_open) { Network::Open } else { Network::ModelOnly };
    let services = if network == Network::Open { services_of_programs(config) } else { Vec::new() };
    let by_setting = shared(config, network, &services).into_iter().map(|part| (part.what, part.ended_by));
    let without_room = (!has_room).then(|| (WITHOUT_ROOM.to_owned(), way_to_room(config).to_owned()));
    let checkouts = (place == WorktreePlace::Inside).then_some(CHECKOUTS);
    let always = [LOGIN].into_iter().chain(checkouts).map(|(what, end)| (what.to_owned(), end.to_owned()));
    let all = by_setting.chain(without_room).chain(always);
    all.map(|(what, end)| good("shared", format!("{what}; ends with: {end}"))).collect()
}

/// Warns of a tool that meets agents' files, and of a setting that does not apply yet.
fn place_check(project: &Project, config: &Config) -> Option<Check> {
    const NAME: &str = "place of worktrees";
    let (here, fix) = match config.worktrees {
        WorktreePlace::Outside => ("below the project", "liza config worktrees outside"),
        WorktreePlace::Inside => ("outside the project", "liza config worktrees inside"),
    };
    if place_of_worktrees(project) != config.worktrees {
        let found = format!("still {here}; the setting applies once no task has a worktree");
        return Some(warning(NAME, found, format!("after that: {fix}")));
    }
    let tool = collectors::find(project.root()).filter(|_| config.worktrees == WorktreePlace::Inside)?;
    let found =
        format!("{tool} collects files below {WORKTREES} too: it reads and runs what agents have written");
    Some(warning(NAME, found, "liza config worktrees outside"))
}

fn way_to_room(config: &Config) -> &'static str {
    match config.sandbox_max_abi {
        Some(_) => "liza config sandbox_max_abi --unset",
        None => "namespaces: docs/safety.md, \"Without namespaces\"",
    }
}

fn old_setting() -> Check {
    let found = "without effect: sessions read the tools in your home folder and nothing else there";
    warning("sandbox_read", found, "liza config sandbox_read --unset")
}

/// A failure of git to work on agents' files where it is confined; nothing if it works.
fn git_check(project: &Project) -> Option<Check> {
    let error = project.repo().and_then(Repo::try_room).err()?;
    let fix = "if git must read a file that it names: liza config sandbox_readable '[PATH]'; to go without confinement: \
               liza config sandbox off";
    Some(broken("git, confined", error.to_string(), fix))
}

/// The means by which a session could push to a remote.
fn push_check(project: &Project, config: &Config, liza: &Path) -> Option<Check> {
    let remotes = project.repo().and_then(Repo::remotes).ok().filter(|remotes| !remotes.is_empty())?;
    let plan = plan_here(project, config, liza).ok()?.filter(|_| protects_files());
    let reads = |path: &PathBuf| {
        let grants = plan.as_ref().map(|plan| &plan.grants);
        grants.is_none_or(|grants| {
            grants.read.iter().chain(&grants.write).any(|folder| path.starts_with(folder))
        })
    };
    let home = home();
    let below = |names: &[&str]| -> Vec<PathBuf> {
        let paths = names.iter().filter_map(|name| Some(home.as_ref()?.join(name)));
        paths.filter(|path| path.is_file()).filter(|path| reads(path)).collect()
    };
    let agent = std::env::var_os("SSH_AUTH_SOCK").map(PathBuf::from);
    let sockets = plan.as_ref().map(|plan| plan.grants.sockets.clone());
    let reaches = |agent: &PathBuf| {
        sockets.as_ref().is_none_or(|sockets| sockets.iter().any(|allowed| agent.starts_with(allowed)))
    };
    let config_file = project.repo().ok()?.common_dir().join("config");
    let reach = SessionReach {
        agent: agent.filter(reaches),
        keys: private_keys(home.as_deref()).into_iter().filter(|key| reads(key)).collect(),
        logins: below(&HTTPS_LOGINS),
        tokens: tokens(config, plan.is_some()),
        reads_addresses: reads(&config_file),
        writable: plan.as_ref().map(|plan| plan.grants.write.as_slice()),
    };
    Some(match way_to_push(&remotes, &reach) {
        None => good("push", "no session has credentials to push with"),
        Some(way) => warning("push", way, push_fix(plan.is_some())),
    })
}

/// The variables with tokens that sessions get.
fn tokens(config: &Config, is_confined: bool) -> Vec<String> {
    let tokens = std::env::vars_os().filter(|(name, _)| TOKEN_VARIABLES.iter().any(|token| name == *token));
    let login = login_variables(config);
    let passed = match is_confined {
        true => passed_environment(tokens, EnvironmentUse::AgentProgram(&login), &config.pass_env),
        false => tokens.collect(),
    };
    passed.into_iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect()
}

/// The way to keep from sessions the means to push.
fn push_fix(is_confined: bool) -> &'static str {
    match (is_confined, protects_files()) {
        (true, _) => {
            "take it out of sandbox_readable, sandbox_writable, sandbox_sockets or pass_env (to see them: liza config)"
        }
        (false, true) => "liza config sandbox auto",
        (false, false) => "start the team as a user without such a login",
    }
}

/// The files in `~/.ssh` that look like private keys.
fn private_keys(home: Option<&Path>) -> Vec<PathBuf> {
    let entries =
        home.and_then(|home| std::fs::read_dir(home.join(".ssh")).ok()).into_iter().flatten().flatten();
    let is_key = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("id_") && !name.ends_with(".pub")
    };
    entries.map(|entry| entry.path()).filter(is_key).collect()
}

/// The network that the roles can reach.
fn network_check(config: &Config, level: &Check) -> Check {
    let reach = |role: Role| {
        format!("{} {}", role.id_prefix(), <&str>::from(role_network(config, role).unwrap_or_default()))
    };
    let found = Role::ALL.map(reach).join(", ");
    match level.health {
        Health::Good => good("network", found),
        Health::Warning | Health::Broken => {
            warning("network", format!("{found}, as far as the confinement allows"), "see the line above")
        }
    }
}

fn level_check(config: &Config, level: io::Result<Level>) -> Check {
    let why = "a session could change what it must not: use a newer kernel (6.12 has everything)";
    let rooms = "see docs/safety.md, \"Without namespaces\"; everything else is refused as it should be";
    let less =
        "liza config sandbox_min restricted; why there is no room: docs/safety.md, \"Without namespaces\"";
    match level {
        Ok(Level::Isolated) => good("confinement", isolated(config)),
        Ok(level @ Level::Restricted(_)) if refusal(config, &level).is_some() => {
            broken("confinement", format!("{level}; config.sandbox is require"), less)
        }
        Ok(level @ Level::Restricted(_)) if config.sandbox_min == SandboxMin::Isolated => {
            let found = format!("{level}; when this project was made, its sessions had rooms");
            warning("confinement", found, rooms)
        }
        Ok(level @ Level::Restricted(_)) => good("confinement", level.to_string()),
        Ok(Level::Off) => warning("confinement", "off", "liza config sandbox auto"),
        Ok(level @ Level::Unenforced(_)) if refusal(config, &level).is_some() => {
            broken("confinement", format!("{level}; config.sandbox is require"), why)
        }
        Ok(level @ Level::Unenforced(_)) => warning("confinement", level.to_string(), why),
        Err(error) => broken("confinement", format!("cannot be tried: {error}"), "reinstall liza"),
    }
}

/// The level with a room, and what a person may miss in it.
fn isolated(config: &Config) -> String {
    let later = "isolated; what you mount while a session runs does not appear in it";
    if config.sandbox == Sandbox::Require && config.sandbox_min != SandboxMin::Isolated {
        return format!(
            "{later}. Sessions would also start without a room; to require one: liza config sandbox_min isolated"
        );
    }
    later.to_owned()
}

//! The doctor's check of the shell's variables: the number that sessions get, and those others that the
//! project's files name.

use std::ffi::OsString;
use std::path::PathBuf;

use liza_agents::providers::Provider;
use liza_agents::providers::{LoginPlaces, default_provider};
use liza_core::model::{Config, Role, Sandbox};
use liza_git::Repo;
use liza_sandbox::confine::{EnvironmentUse, Variable, local_ports, passed_environment};
use liza_team::project::Project;
use liza_team::session::network::named_services;
use liza_team::session::plan::home;

use crate::recognition::active_environment;

use super::result::{Check, good, warning};

/// The most variables that are named.
const NAMED_MAX: usize = 8;

/// Beginnings of names of the shell, the desktop or Liza: a project that names them does not need their
/// values for its tests.
const OF_THE_DESKTOP: [&str; 16] = [
    "_", "PWD", "OLDPWD", "SHLVL", "EDITOR", "VISUAL", "PAGER", "LESS", "LS_", "XDG_", "DBUS_", "DISPLAY",
    "WAYLAND_", "TMP", "LIZA_", "GIT_",
];

/// The check; none if sessions get all variables.
pub(super) fn environment(project: &Project, config: &Config) -> Option<Check> {
    if config.sandbox == Sandbox::Off {
        return None;
    }
    let all: Vec<Variable> = std::env::vars_os().collect();
    let login = login_variables(config);
    let used_for = EnvironmentUse::AgentProgram(&login);
    let passed = passed_environment(all.iter().cloned(), used_for, &config.pass_env);
    let withheld = all.iter().filter(|variable| !passed.contains(variable)).map(|(name, _)| name);
    let wanted = project.repo().ok().map(|repo| named_in_files(repo, withheld)).unwrap_or_default();
    let count = format!("sessions get {} of your {} variables", passed.len(), all.len());
    if wanted.is_empty() {
        return Some(good("environment", count));
    }
    let (shown, more) = (&wanted[..wanted.len().min(NAMED_MAX)], wanted.len() > NAMED_MAX);
    let shown = shown.join(", ");
    let names = format!("{shown}{}", if more { ", …" } else { "" });
    Some(good(
        "environment",
        format!(
            "{count}; not {names}, which files of the project name. To pass them on, also to code under test: liza config \
             pass_env '[{shown}]'"
        ),
    ))
}

/// A warning about tests that would judge the person's code, by an environment that is active in this shell.
pub(super) fn active_environment(project: &Project, config: &Config) -> Option<Check> {
    let found = active_environment::find(project.root(), config, |name| std::env::var_os(name))?;
    Some(warning("active environment", found.problem, found.fix))
}

/// The variables that the agent programs of the roles need.
pub(super) fn login_variables(config: &Config) -> Vec<String> {
    let (home, variable) = (home(), |name: &str| std::env::var_os(name));
    let places = LoginPlaces { home: home.as_deref(), variable: &variable };
    let providers = providers_of_roles(config, &places).into_iter();
    providers.flat_map(|provider| provider.login_variables(&places)).collect()
}

/// The services of this machine that the person has named in the settings and variables of the roles' agent programs.
pub(super) fn services_of_programs(config: &Config) -> Vec<u16> {
    let (home, variable) = (home(), |name: &str| std::env::var_os(name));
    let places = LoginPlaces { home: home.as_deref(), variable: &variable };
    let used_for = EnvironmentUse::AgentProgram(&login_variables(config));
    let passed = passed_environment(std::env::vars_os(), used_for, &config.pass_env).into_iter();
    let entries = serde_json::to_string(&config.providers).ok();
    let texts = passed.map(|(_, value)| value.to_string_lossy().into_owned()).chain(entries);
    let path = |name: &str| variable(name).map(PathBuf::from);
    let of = |provider: Provider| named_services(config, &provider, None, &path);
    let of_programs = providers_of_roles(config, &places).into_iter().flat_map(of);
    texts.flat_map(|text| local_ports(&text)).chain(of_programs).collect()
}

fn providers_of_roles(config: &Config, places: &LoginPlaces<'_>) -> Vec<Provider> {
    let default = default_provider(places).unwrap_or_default();
    let of_role = |role: &Role| Provider::choose_or(config, *role, None, default).ok();
    Role::ALL.iter().filter_map(of_role).collect()
}

/// Those of the variables that a tracked file of the project names.
fn named_in_files<'n>(repo: &Repo, names: impl Iterator<Item = &'n OsString>) -> Vec<String> {
    let is_candidate =
        |name: &&str| name.len() > 3 && !OF_THE_DESKTOP.iter().any(|start| name.starts_with(start));
    let names: Vec<&str> = names.filter_map(|name| name.to_str()).filter(is_candidate).collect();
    // Without an answer of git, none is named.
    let mut found = repo.words_in_files(&names).unwrap_or_default();
    found.sort();
    found.dedup();
    found
}

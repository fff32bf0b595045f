//! Checks of the agent programs that the roles name.

use liza_agents::providers::{InstalledClient, LoginPlaces, default_provider};
use liza_agents::providers::{Provider, ProviderError, builtin_programs};
use liza_core::model::{Config, Role};

use super::result::{Check, broken, good, warning};

/// The agent programs that the roles would use, each once.
pub(super) fn used_programs(config: Option<&Config>, places: &LoginPlaces<'_>) -> Vec<String> {
    let default = default_provider(places);
    let of_role = |role: &Role| match config {
        Some(config) => names_of(config, *role, default),
        None => default.map(str::to_owned).into_iter().collect(),
    };
    let mut used: Vec<String> = Vec::new();
    for name in Role::ALL.iter().flat_map(of_role) {
        if !used.contains(&name) {
            used.push(name);
        }
    }
    used
}

pub(super) fn programs(installed: &[InstalledClient], used: &[String]) -> Check {
    let found: Vec<&str> = installed.iter().map(|client| client.name.as_str()).collect();
    if found.is_empty() {
        let fix = format!("install one of {}", builtin_programs().join(", "));
        return warning("agent programs", "none on PATH", fix);
    }
    let used = if used.is_empty() { String::new() } else { format!("; liza run uses {}", used.join(", ")) };
    good("agent programs", format!("{}{used}", found.join(", ")))
}

fn names_of(config: &Config, role: Role, default: Option<&str>) -> Vec<String> {
    let provider = Provider::choose_or(config, role, None, default.unwrap_or_default());
    provider.map(|provider| provider.names()).unwrap_or_default()
}

/// The programs of the roles in the config that are not installed, or cannot be used; a role that names none uses that one.
pub(super) fn missing_programs(config: &Config, default: Option<&str>) -> Vec<Check> {
    let named = Role::ALL.iter().filter(|role| {
        let keys = [role.to_string(), role.id_prefix().to_owned()];
        keys.iter().any(|key| config.roles.contains_key(key))
    });
    let problem = |role: &Role| {
        let chosen = match default {
            Some(default) => Provider::choose_or(config, *role, None, default),
            None => Provider::choose(config, *role, None),
        };
        let provider = match chosen {
            Ok(provider) => provider,
            Err(error) => return Some(broken("roles", error.to_string(), role_fix(*role))),
        };
        let error = provider.installed_program().err()?;
        let install = if let ProviderError::Missing { install, .. } = &error { install.as_str() } else { "" };
        let fix = if install.is_empty() { role_fix(*role) } else { install.to_owned() };
        Some(broken("roles", format!("{}: {error}", role.title()), fix))
    };
    named.filter_map(problem).collect()
}

/// A limit of tokens that a program of the roles does not keep.
pub(super) fn budget(config: &Config, default: Option<&str>) -> Option<Check> {
    let default = default.unwrap_or_default();
    let of_role =
        |role: &Role| Provider::choose_or(config, *role, None, default).ok()?.uncounted_tokens(config);
    let (problem, fix) = Role::ALL.iter().find_map(of_role)?;
    Some(warning("budget", problem, fix))
}

fn role_fix(role: Role) -> String {
    format!("liza config roles.{role}.provider NAME")
}

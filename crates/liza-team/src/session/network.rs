//! The hosts that the sessions of a role can reach: from the settings, the agent program and its variables.

use std::path::PathBuf;

use liza_agents::providers::{Provider, ProviderError, role_network};
use liza_core::model::{Config, Network, Role};
use liza_host::model_proxy::{ModelHost, hosts_of};
use liza_sandbox::confine::local_ports;

use super::client_folder::ClientFolder;
use super::plan::home;

/// `None` if its network is open.
pub fn allowed_hosts(
    config: &Config,
    role: Role,
    provider: &Provider,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Vec<ModelHost>>, ProviderError> {
    match role_network(config, role)? {
        Network::Open => Ok(None),
        Network::ModelOnly => {
            let own = provider.model_hosts(variable);
            hosts_of(own.iter().chain(&config.model_hosts)).map(Some).map_err(|error| ProviderError::Config {
                place: "model_hosts".to_owned(),
                problem: error.to_string(),
            })
        }
    }
}

/// The services of this machine that the person has named for an agent program: in its settings, in these texts of its arguments
/// and variables, or as hosts of its model.
pub fn named_services(
    config: &Config,
    provider: &Provider,
    texts: impl IntoIterator<Item = String>,
    variable: &dyn Fn(&str) -> Option<PathBuf>,
) -> Vec<u16> {
    let settings = ClientFolder::settings_texts(provider.home(), home().as_deref(), variable);
    let all = settings.into_iter().chain(texts).chain(config.model_hosts.iter().cloned());
    all.flat_map(|text| local_ports(&text)).collect()
}

/// The least that one of these roles can reach.
pub fn strictest_network(
    config: &Config,
    roles: impl IntoIterator<Item = Role>,
) -> Result<Network, ProviderError> {
    let networks = roles.into_iter().map(|role| role_network(config, role)).collect::<Result<Vec<_>, _>>()?;
    let closed = networks.contains(&Network::ModelOnly);
    Ok(if closed { Network::ModelOnly } else { Network::Open })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> Config {
        serde_json::from_str(json).unwrap()
    }

    fn hosts(json: &str, provider: &str) -> Result<Option<Vec<String>>, String> {
        let config = config(json);
        let provider = Provider::choose(&config, Role::Coder, Some(provider)).unwrap();
        let variable =
            |name: &str| (name == "ANTHROPIC_BASE_URL").then(|| "http://gate.example:8080/v1".to_owned());
        let hosts = allowed_hosts(&config, Role::Coder, &provider, &variable);
        let text = |hosts: Vec<ModelHost>| hosts.iter().map(ToString::to_string).collect();
        hosts.map(|hosts| hosts.map(text)).map_err(|error| error.to_string())
    }

    /// Covers: IS-06
    #[test]
    fn a_role_reaches_the_hosts_of_its_program_and_those_of_the_settings() {
        assert_eq!(hosts("{}", "claude"), Ok(None));
        let only =
            r#"{"roles": {"coder": {"network": "model-only"}}, "model_hosts": ["mirror.example:8443"]}"#;
        let claude = hosts(only, "claude").unwrap().unwrap();
        for host in ["api.anthropic.com", "gate.example:8080", "mirror.example:8443"] {
            assert!(claude.contains(&host.to_owned()), "{host} in {claude:?}");
        }
        assert_eq!(hosts(only, "rehearsal"), Ok(Some(vec!["mirror.example:8443".to_owned()])));
        let strictest = |roles: [Role; 2]| strictest_network(&config(only), roles).unwrap();
        assert_eq!(strictest([Role::Planner, Role::CodeReviewer]), Network::Open);
        assert_eq!(strictest([Role::Planner, Role::Coder]), Network::ModelOnly);
    }

    /// Covers: IS-06
    #[test]
    fn wrong_settings_are_reported_with_their_place() {
        let wrong = r#"{"roles": {"coder": {"network": "closed"}}}"#;
        assert_eq!(
            hosts(wrong, "claude").unwrap_err(),
            "config.roles.coder: network must be open or model-only"
        );
        let wrong = r#"{"roles": {"coder": {"network": "model-only"}}, "model_hosts": ["a b"]}"#;
        assert_eq!(
            hosts(wrong, "claude").unwrap_err(),
            "config.model_hosts: \"a b\" is not HOST or HOST:PORT"
        );
    }
}

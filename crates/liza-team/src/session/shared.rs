//! The things that the sessions of a project share with the person, each with the setting that ends it.

use liza_core::model::{Config, Network};
use liza_sandbox::confine::Level;

/// Shared by sessions without a room only.
pub const WITHOUT_ROOM: &str = "/dev/shm, modes and times of your files";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    pub what: String,
    /// `None` if nothing ends it yet.
    pub ended_by: Option<String>,
}

/// Shared with a session that has a room and this network.
pub fn shared(config: &Config, network: Network) -> Vec<Shared> {
    let listed = |setting: &str, values: &[String]| {
        (!values.is_empty())
            .then(|| Shared { what: values.join(", "), ended_by: Some(format!("config.{setting}")) })
    };
    let network = (network == Network::Open).then(|| Shared {
        what: "the network".to_owned(),
        ended_by: Some("roles.ROLE.network model-only".to_owned()),
    });
    let ports: Vec<String> = config.network_ports.iter().map(|port| format!("port {port}")).collect();
    let named = [
        network,
        Some(Shared { what: "git's settings".to_owned(), ended_by: None }),
        listed("sandbox_readable", &config.sandbox_readable),
        listed("sandbox_writable", &config.sandbox_writable),
        listed("sandbox_sockets", &config.sandbox_sockets),
        listed("pass_env", &config.pass_env),
        listed("network_ports", &ports),
    ];
    named.into_iter().flatten().collect()
}

/// The same in words, for a session of that level.
pub(crate) fn shared_in_words(shared: &[String], level: &Level) -> String {
    let without_room = (*level != Level::Isolated).then_some(WITHOUT_ROOM);
    let all: Vec<&str> = shared.iter().map(String::as_str).chain(without_room).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: RO-08
    #[test]
    fn what_is_shared_has_the_setting_that_ends_it() {
        let config = Config {
            sandbox_readable: vec!["/data".to_owned(), "~/x".to_owned()],
            network_ports: vec![5432],
            ..Config::default()
        };
        let in_words = |network| -> Vec<String> {
            let shared = shared(&config, network).into_iter();
            shared.map(|part| format!("{} {}", part.what, part.ended_by.unwrap_or_default())).collect()
        };
        let closed =
            ["git's settings ", "/data, ~/x config.sandbox_readable", "port 5432 config.network_ports"];
        assert_eq!(in_words(Network::ModelOnly), closed);
        assert_eq!(in_words(Network::Open)[0], "the network roles.ROLE.network model-only");
        assert_eq!(in_words(Network::Open)[1..], closed);
    }
}

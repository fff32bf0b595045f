//! The things that the sessions of a project share with the person, each with the setting that ends it.

use std::collections::BTreeSet;

use liza_core::model::{Config, Network};
use liza_sandbox::confine::Level;

/// Shared by sessions without a room only.
pub const WITHOUT_ROOM: &str = "/dev/shm, modes and times of your files, the list of your processes with their words, free ports (a \
                                session can answer at one for a service of yours that restarts)";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    pub what: String,
    /// What ends it, or why nothing does.
    pub ended_by: String,
}

/// Shared with a session that has a room, this network, and these services of this machine.
pub fn shared(config: &Config, network: Network, services: &[u16]) -> Vec<Shared> {
    let part = |what: String, ended_by: &str| Shared { what, ended_by: ended_by.to_owned() };
    let listed = |setting: &str, values: &[String]| {
        (!values.is_empty()).then(|| part(values.join(", "), &format!("liza config {setting}")))
    };
    let ports = |ports: &mut dyn Iterator<Item = &u16>| -> Vec<String> {
        ports.collect::<BTreeSet<_>>().into_iter().map(|port| format!("port {port}")).collect()
    };
    let named = ports(&mut services.iter().filter(|port| !config.network_ports.contains(port)));
    let is_open = network == Network::Open;
    let all = [
        is_open.then(|| part("the network".to_owned(), "liza config roles.ROLE.network model-only")),
        Some(part(
            "git's settings".to_owned(),
            "nothing, since git does not start without them; keep tokens out of them",
        )),
        listed("sandbox_readable", &config.sandbox_readable),
        listed("sandbox_writable", &config.sandbox_writable),
        listed("sandbox_sockets", &config.sandbox_sockets),
        listed("pass_env", &config.pass_env),
        listed("network_ports", &ports(&mut config.network_ports.iter())),
        (!named.is_empty()).then(|| {
            let end = "taking its address out of your variables and of the settings of the agent program";
            part(named.join(", "), end)
        }),
    ];
    all.into_iter().flatten().collect()
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
            let shared = shared(&config, network, &[5432, 11434, 11434]).into_iter();
            shared.map(|part| format!("{}: {}", part.what, part.ended_by)).collect()
        };
        let closed = [
            "git's settings: nothing, since git does not start without them; keep tokens out of them",
            "/data, ~/x: liza config sandbox_readable",
            "port 5432: liza config network_ports",
            "port 11434: taking its address out of your variables and of the settings of the agent program",
        ];
        assert_eq!(in_words(Network::ModelOnly), closed);
        assert_eq!(in_words(Network::Open)[0], "the network: liza config roles.ROLE.network model-only");
        assert_eq!(in_words(Network::Open)[1..], closed);
    }
}

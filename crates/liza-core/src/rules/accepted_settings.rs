//! Settings of a shared blackboard that name programs or lower protection. They count on a machine only as
//! far as its person has accepted them; patterns that others add to the gate count at once.

use liza_ids::{GateSettings, Role};

use crate::model::{Config, Fields, Unaccepted, Value};

macro_rules! protected_settings {
    ($($name:ident)*) => {
        /// The settings of `shared`, with the protected ones of `accepted`.
        fn with_protected(shared: &Config, accepted: &Config) -> Config {
            Config { $($name: accepted.$name.clone(),)* ..shared.clone() }
        }

        fn differing(shared: &Config, accepted: &Config) -> Vec<String> {
            let all = [$((stringify!($name), shared.$name != accepted.$name)),*];
            all.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned()).collect()
        }

        fn copy(to: &mut Config, from: &Config, name: &str) {
            match name {
                $(stringify!($name) => to.$name = from.$name.clone(),)*
                _ => {}
            }
        }
    };
}

// Of `roles`, only `network`.
protected_settings! {
    client_settings sandbox sandbox_min sandbox_readable sandbox_writable sandbox_sockets sandbox_max_abi
    pass_env model_hosts network_ports exec_wrapper providers setup copy validation gate holdout worktrees
}

const NETWORK: &str = "network";

/// The settings that apply on this machine, with those that don't.
pub fn as_accepted(shared: Config, accepted: &Config) -> Config {
    let mut keys = differing(&shared, accepted);
    let mut used = with_protected(&shared, accepted);
    used.gate = joined(&accepted.gate, &shared.gate);
    for role in Role::ALL {
        let network = network_of(&accepted.roles, role);
        let entries: Vec<_> =
            spellings(role).into_iter().filter_map(|name| shared.roles.get(&name)).collect();
        let differs = |entry: &&Value| part(entry, NETWORK) != network;
        if entries.iter().any(differs) || (entries.is_empty() && network.is_some()) {
            keys.push(format!("roles.{role}.{NETWORK}"));
            set_network(&mut used.roles, role, network);
        }
    }
    used.unaccepted = (!keys.is_empty()).then(|| Box::new(Unaccepted { keys, shared }));
    used
}

/// The settings as everyone sees them: those that this machine does not use included.
pub fn shared(config: &Config) -> &Config {
    config.unaccepted.as_ref().map_or(config, |unaccepted| &unaccepted.shared)
}

/// What a person accepts with all of these settings.
pub fn accepting_all(shared: &Config) -> Config {
    let mut accepted = with_protected(&Config::default(), shared);
    Role::ALL.into_iter().for_each(|role| accept_network(&mut accepted, shared, role));
    accepted
}

/// What a person accepts in addition with one setting or a part of it: `setup`, `roles.coder.network`.
pub fn accepting(mut accepted: Config, shared: &Config, key: &str) -> Config {
    let mut parts = key.split('.');
    let (first, role) = (parts.next().unwrap_or_default(), parts.next());
    copy(&mut accepted, shared, first);
    for known in Role::ALL.into_iter().filter(|_| first == "roles") {
        if role.is_none_or(|role| spellings(known).iter().any(|name| name == role)) {
            accept_network(&mut accepted, shared, known);
        }
    }
    accepted
}

fn accept_network(accepted: &mut Config, shared: &Config, role: Role) {
    spellings(role).iter().for_each(|name| drop(accepted.roles.shift_remove(name)));
    set_network(&mut accepted.roles, role, network_of(&shared.roles, role));
}

/// The names of a role in the settings; the first one wins.
fn spellings(role: Role) -> [String; 2] {
    [role.to_string(), role.id_prefix().to_owned()]
}

fn part<'v>(entry: &'v Value, name: &str) -> Option<&'v Value> {
    entry.as_map()?.get(name).filter(|value| **value != Value::Null)
}

pub(super) fn network_of(roles: &Fields, role: Role) -> Option<&Value> {
    part(spellings(role).iter().find_map(|name| roles.get(name))?, NETWORK)
}

fn set_network(roles: &mut Fields, role: Role, network: Option<&Value>) {
    if network.is_some() && spellings(role).iter().all(|name| !roles.contains_key(name)) {
        roles.insert(role.to_string(), Value::Map(Fields::new()));
    }
    for name in spellings(role) {
        let Some(entry) = roles.get_mut(&name) else { continue };
        // A role may be only the name of its agent program.
        if let (Value::Text(_), Some(_)) = (&*entry, network) {
            *entry = Value::Map(Fields::from_iter([("provider".to_owned(), entry.clone())]));
        }
        if let Value::Map(parts) = entry {
            parts.shift_remove(NETWORK);
            parts.extend(network.map(|network| (NETWORK.to_owned(), network.clone())));
        }
    }
}

fn joined(accepted: &GateSettings, shared: &GateSettings) -> GateSettings {
    let both = |accepted: &[String], shared: &[String]| {
        let added = shared.iter().filter(|pattern| !accepted.contains(pattern));
        accepted.iter().chain(added).cloned().collect()
    };
    GateSettings {
        runs: both(&accepted.runs, &shared.runs),
        watched: both(&accepted.watched, &shared.watched),
    }
}

#[cfg(test)]
mod tests {
    use liza_ids::Sandbox;

    use super::*;

    fn config(text: &str) -> Config {
        serde_json::from_str(text).unwrap()
    }

    fn keys(config: &Config) -> Vec<&str> {
        config.unaccepted.iter().flat_map(|unaccepted| &unaccepted.keys).map(String::as_str).collect()
    }

    /// Covers: RO-05
    #[test]
    fn a_setting_from_elsewhere_is_not_used_until_it_is_accepted() {
        let theirs = config(
            r#"{"sandbox": "off", "setup": "touch /tmp/x", "lease_duration": 60,
                "roles": {"coder": {"count": 4, "network": "open"}}}"#,
        );
        let accepted = config(
            r#"{"sandbox": "require", "validation": ["make"], "roles": {"coder": {"network": "model-only"}}}"#,
        );
        let used = as_accepted(theirs.clone(), &accepted);
        assert_eq!(keys(&used), ["sandbox", "setup", "validation", "roles.coder.network"]);
        assert_eq!((used.sandbox, &used.setup, used.lease_duration.0), (Sandbox::Require, &None, 60));
        assert_eq!(used.validation, ["make"], "nor is one that takes something away");
        assert_eq!(
            used.roles,
            config(r#"{"roles": {"coder": {"count": 4, "network": "model-only"}}}"#).roles
        );
        assert_eq!(shared(&used), &theirs);
        assert_eq!(as_accepted(theirs.clone(), &accepting_all(&theirs)), theirs);
        assert_eq!(as_accepted(accepted.clone(), &accepted), accepted);
    }

    /// Covers: RO-05
    #[test]
    fn each_setting_that_names_a_program_or_lowers_protection_counts_only_as_accepted() {
        let none = Config::default();
        for (key, value) in [
            ("client_settings", r#""allow""#),
            ("sandbox", r#""off""#),
            ("sandbox_min", r#""unenforced""#),
            ("sandbox_readable", r#"["/"]"#),
            ("sandbox_writable", r#"["/"]"#),
            ("sandbox_sockets", r#"["/run/docker.sock"]"#),
            ("sandbox_max_abi", "0"),
            ("pass_env", r#"["AWS_SECRET_ACCESS_KEY"]"#),
            ("model_hosts", r#"["elsewhere.example"]"#),
            ("network_ports", "[5432]"),
            ("exec_wrapper", r#"["planted"]"#),
            ("providers", r#"{"claude": {"program": "planted"}}"#),
            ("setup", r#""planted""#),
            ("copy", r#"[".env"]"#),
            ("validation", r#"["planted"]"#),
            ("holdout", r#""/planted""#),
            ("worktrees", r#""outside""#),
        ] {
            let theirs = config(&format!("{{\"{key}\": {value}}}"));
            let used = as_accepted(theirs.clone(), &none);
            assert_eq!(keys(&used), [key]);
            assert_eq!(Config { unaccepted: None, ..used }, none, "{key}");
            let accepted = accepting(none.clone(), &theirs, key);
            assert_eq!(as_accepted(theirs.clone(), &accepted), theirs, "{key}");
        }
    }

    /// Covers: RO-05
    #[test]
    fn one_setting_is_accepted_without_the_others() {
        let theirs =
            config(r#"{"setup": "make", "copy": [".env"], "roles": {"coder": {"network": "open"}}}"#);
        let left = |key: &str| {
            let accepted = accepting(Config::default(), &theirs, key);
            keys(&as_accepted(theirs.clone(), &accepted)).join(" ")
        };
        assert_eq!(left("setup"), "copy roles.coder.network");
        for role in ["roles", "roles.coder", "roles.coder.network"] {
            assert_eq!(left(role), "setup copy");
        }
        for other in ["roles.planner.network", "lease_duration"] {
            assert_eq!(left(other), "setup copy roles.coder.network");
        }
    }

    /// Covers: RO-05
    #[test]
    fn a_role_has_the_accepted_network_in_each_of_its_spellings() {
        let used = |theirs: &str, accepted: &str| as_accepted(config(theirs), &config(accepted)).roles;
        let closed = r#"{"roles": {"code_reviewer": {"network": "model-only"}}}"#;
        let both = r#"{"roles": {"code-reviewer": "codex", "code_reviewer": {"network": "open"}}}"#;
        let expected = r#"{"roles": {"code-reviewer": {"provider": "codex", "network": "model-only"},
            "code_reviewer": {"network": "model-only"}}}"#;
        assert_eq!(used(both, closed), config(expected).roles);
        assert_eq!(used("{}", closed), config(closed).roles, "nor can it be taken away");
        assert_eq!(
            used(r#"{"roles": {"coder": "codex"}}"#, "{}"),
            config(r#"{"roles": {"coder": "codex"}}"#).roles
        );
    }

    /// Covers: RO-05, JU-01
    #[test]
    fn another_machine_adds_patterns_to_the_gate_and_takes_none_away() {
        let theirs = config(r#"{"gate": {"runs": [], "watched": ["package.json", "Makefile"]}}"#);
        let accepted = config(r#"{"gate": {"runs": ["scripts/**"], "watched": ["Makefile"]}}"#);
        let used = as_accepted(theirs, &accepted);
        assert_eq!(
            used.gate,
            config(r#"{"gate": {"runs": ["scripts/**"], "watched": ["Makefile", "package.json"]}}"#).gate
        );
        assert_eq!(keys(&used), ["gate"]);
    }
}

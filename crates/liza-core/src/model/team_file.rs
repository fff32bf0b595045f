//! The settings that a team shares: `liza.yaml`, as the human accepted it. The blackboard keeps a copy, so that every
//! command works with the same settings.

use serde::{Deserialize, Serialize};

use crate::model::time::Timestamp;
use crate::model::value::{Fields, Value};

/// The name of the file, in the root of the project.
pub const TEAM_FILE: &str = "liza.yaml";

/// What is never taken from the file: where merges and work go, and everything that would open a session's confinement.
pub const NEVER_SHARED: [&str; 14] = [
    "team_file",
    "integration_branch",
    "main_branch",
    "remote",
    "sandbox",
    "sandbox_min",
    "sandbox_read",
    "sandbox_readable",
    "sandbox_writable",
    "sandbox_sockets",
    "sandbox_max_abi",
    "exec_wrapper",
    "model_hosts",
    "network_ports",
];

/// `config.team_file`: the accepted content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TeamFile {
    /// The name that git gives to the content.
    pub hash: String,
    /// When the human accepted it.
    pub accepted: Timestamp,
    /// The settings in it.
    pub values: Fields,
}

/// Where a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum SettingSource {
    /// The program.
    #[strum(serialize = "default")]
    Default,
    /// The shared file.
    #[strum(serialize = "liza.yaml")]
    TeamFile,
    /// The section `config` of the blackboard.
    #[strum(serialize = "state.yaml")]
    Blackboard,
}

/// What earlier versions wrote into every blackboard, whether or not someone had chosen it.
const ALWAYS_WRITTEN: [&str; 19] = [
    "max_coder_iterations",
    "max_review_cycles",
    "heartbeat_interval",
    "lease_duration",
    "coder_poll_interval",
    "coder_max_wait",
    "integration_branch",
    "escalation_webhook",
    "max_crashes",
    "max_idle_exits",
    "max_sessions",
    "max_planner_sessions",
    "max_blocks",
    "max_rescopes",
    "stop_grace",
    "session_limit",
    "quiet_limit",
    "integration_test_limit",
    "lock_timeout",
];

/// The settings in force: those of the blackboard, below them those of the shared file. A default on the blackboard that
/// earlier versions wrote by themselves does not override the file.
pub fn settings_in_force(own: &Fields, defaults: &Fields) -> Fields {
    let mut settings = own.clone();
    for (key, value) in shared_values(own) {
        if source_of(key, own, defaults) == SettingSource::TeamFile {
            settings.insert(key.clone(), value.clone());
        }
    }
    settings
}

/// Every setting: those in force, and the default of each other one.
pub fn all_settings(own: &Fields, defaults: &Fields) -> Fields {
    let mut settings = settings_in_force(own, defaults);
    for (key, value) in defaults {
        settings.entry(key.clone()).or_insert_with(|| value.clone());
    }
    settings
}

/// Where a setting comes from.
pub fn source_of(key: &str, own: &Fields, defaults: &Fields) -> SettingSource {
    let is_chosen = |value: &Value| Some(value) != defaults.get(key) || !ALWAYS_WRITTEN.contains(&key);
    let is_set = own.get(key).is_some_and(|value| *value != Value::Null && is_chosen(value));
    match shared_values(own).any(|(shared, _)| shared == key) {
        _ if is_set => SettingSource::Blackboard,
        true => SettingSource::TeamFile,
        false => SettingSource::Default,
    }
}

fn shared_values(own: &Fields) -> impl Iterator<Item = (&String, &Value)> {
    let values = own.get("team_file").and_then(Value::as_map).and_then(|file| file.get("values"));
    let values = values.and_then(Value::as_map).into_iter().flatten();
    values.filter(|(key, _)| !NEVER_SHARED.contains(&key.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Fields {
        serde_json::from_str(text).unwrap()
    }

    /// Covers: UI-11
    #[test]
    fn a_default_that_only_a_person_writes_overrides_the_file() {
        let defaults = fields(r#"{"copy": [], "max_crashes": 5}"#);
        let own = fields(
            r#"{"copy": [], "max_crashes": 5, "team_file": {"hash": "x", "values": {"copy": [".env"], "max_crashes": 2}}}"#,
        );
        assert_eq!(source_of("copy", &own, &defaults), SettingSource::Blackboard);
        assert_eq!(settings_in_force(&own, &defaults)["copy"], own["copy"]);
        assert_eq!(source_of("max_crashes", &own, &defaults), SettingSource::TeamFile);
    }

    /// Covers: UI-11
    #[test]
    fn the_blackboard_overrides_the_file_and_a_default_overrides_nothing() {
        let defaults = fields(r#"{"max_crashes": 5, "lease_duration": 300}"#);
        let own = fields(
            r#"{"max_crashes": 5, "lease_duration": 60, "sandbox": null, "team_file": {"hash": "x", "values":
                {"max_crashes": 2, "lease_duration": 900, "setup": "make", "sandbox": "off", "exec_wrapper": ["sh"]}}}"#,
        );
        let found = settings_in_force(&own, &defaults);
        assert_eq!((&found["max_crashes"], &found["lease_duration"]), (&Value::Int(2), &Value::Int(60)));
        assert_eq!(found["setup"].as_text(), Some("make"));
        assert!(
            found["sandbox"] == Value::Null && !found.contains_key("exec_wrapper"),
            "never from the file"
        );
        let source = |key: &str| source_of(key, &own, &defaults).to_string();
        assert_eq!(source("max_crashes"), "liza.yaml");
        assert_eq!(source("lease_duration"), "state.yaml");
        assert_eq!(source("sandbox"), "default");
        assert_eq!(source("max_blocks"), "default");
    }
}

//! The settings that a team shares: `liza.yaml`, as the human accepted it. The blackboard keeps a copy, so
//! that every command works with the same settings.

use liza_ids::{Role, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::value::{Fields, Value};

/// The name of the file, in the root of the project.
pub const TEAM_FILE: &str = "liza.yaml";

/// Settings never taken from the file: targets of merges and work, and all that opens a confinement.
pub const NEVER_SHARED: [&str; 17] = [
    "team_file",
    "integration_branch",
    "main_branch",
    "remote",
    "client_settings",
    "sandbox",
    "sandbox_min",
    "sandbox_read",
    "sandbox_readable",
    "sandbox_writable",
    "sandbox_sockets",
    "pass_env",
    "sandbox_max_abi",
    "exec_wrapper",
    "model_hosts",
    "network_ports",
    "worktrees",
];

/// `config.team_file`: the accepted content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TeamFile {
    /// The git hash of the content.
    pub hash: String,
    /// The time at which the human accepted it.
    pub accepted: Timestamp,
    pub values: Fields,
}

/// The origin of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum SettingSource {
    #[strum(serialize = "default")]
    Default,
    #[strum(serialize = "liza.yaml")]
    TeamFile,
    /// The section `config` of the blackboard.
    #[strum(serialize = "state.yaml")]
    Blackboard,
    /// Some parts of it from the blackboard, the others from the shared file.
    #[strum(serialize = "state.yaml and liza.yaml")]
    Both,
}

/// Settings that earlier versions wrote into every blackboard, chosen or not.
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

/// The settings in force: those of the blackboard over those of the shared file, part by part for a setting
/// such as `budget`. A default that an earlier version wrote to the blackboard does not override the file.
pub fn settings_in_force(own: &Fields, defaults: &Fields) -> Fields {
    let mut settings = own.clone();
    for (key, shared) in shared_values(own) {
        let value = match own.get(key).filter(|own| is_chosen(key, own, defaults)) {
            Some(value) => merged(key, shared, value),
            None => shared.clone(),
        };
        settings.insert(key.clone(), value);
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

/// The origin of a setting or of a part: `lease_duration`, `roles.coder.count`.
pub fn source_of(key: &str, own: &Fields, defaults: &Fields) -> SettingSource {
    let (first, parts) = key.split_once('.').map_or((key, None), |(first, parts)| (first, Some(parts)));
    let shared = shared_values(own).find(|(shared, _)| *shared == first).map(|(_, value)| value);
    let set = own.get(first).filter(|value| is_chosen(first, value, defaults));
    let in_force = match (set, shared) {
        (Some(set), Some(shared)) => Some(merged(first, shared, set)),
        (Some(value), None) | (None, Some(value)) => Some(value.clone()),
        (None, None) => None,
    };
    let part = |value: Option<&Value>| value.and_then(|value| part_of(value, parts).cloned());
    match (part(set), part(in_force.as_ref())) {
        (_, None) => SettingSource::Default,
        (Some(set), in_force) if in_force.as_ref() == Some(&set) => SettingSource::Blackboard,
        (Some(Value::Map(set)), Some(_)) if !set.is_empty() => SettingSource::Both,
        _ => SettingSource::TeamFile,
    }
}

/// A part of a value: `day.dollars` of a budget.
fn part_of<'v>(value: &'v Value, parts: Option<&str>) -> Option<&'v Value> {
    parts
        .into_iter()
        .flat_map(|parts| parts.split('.'))
        .try_fold(value, |value, part| value.as_map()?.get(part))
}

/// True if someone chose this value of the blackboard.
fn is_chosen(key: &str, value: &Value, defaults: &Fields) -> bool {
    *value != Value::Null && (Some(value) != defaults.get(key) || !ALWAYS_WRITTEN.contains(&key))
}

/// Merges the blackboard's value of a setting over the shared one: maps key by key, down to the last part.
fn merged(key: &str, shared: &Value, own: &Value) -> Value {
    let (Value::Map(shared), Value::Map(own)) = (shared, own) else { return own.clone() };
    let is_roles = key == "roles";
    let (mut all, own) = match is_roles {
        true => (by_role(shared), by_role(own)),
        false => (shared.clone(), own.clone()),
    };
    for (part, value) in &own {
        let below = all
            .get(part)
            .map(|below| if is_roles { merged_role(below, value) } else { merged("", below, value) });
        all.insert(part.clone(), below.unwrap_or_else(|| value.clone()));
    }
    Value::Map(all)
}

/// Roles by one of their two names: `code_reviewer` may also be written `code-reviewer`.
fn by_role(roles: &Fields) -> Fields {
    let name = |written: &String| {
        let role = Role::ALL.into_iter().find(|role| role.id_prefix() == written);
        role.map_or_else(|| written.clone(), |role| role.to_string())
    };
    roles.iter().map(|(written, value)| (name(written), value.clone())).collect()
}

/// The same for one role: it may be only the name of its agent program; a model belongs to its own program.
fn merged_role(shared: &Value, own: &Value) -> Value {
    let with_parts = |role: &Value| match role.as_text() {
        Some(_) => Value::Map(Fields::from_iter([("provider".to_owned(), role.clone())])),
        None => role.clone(),
    };
    let (mut shared, own) = (with_parts(shared), with_parts(own));
    if let (Value::Map(shared), Some(provider)) = (&mut shared, part_of(&own, Some("provider")))
        && shared.get("provider") != Some(provider)
    {
        shared.shift_remove("model");
    }
    merged("", &shared, &own)
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

    /// Covers: UI-11
    #[test]
    fn a_part_that_is_set_on_the_blackboard_leaves_the_other_parts_of_the_file_in_force() {
        let own = fields(
            r#"{"budget": {"day": {"dollars": 20}, "task": {"tokens": null}}, "team_file": {"hash": "x", "values":
                {"budget": {"day": {"dollars": 5, "tokens": 7}, "task": {"tokens": 3}, "sprint": {"dollars": 9}}}}}"#,
        );
        let found = settings_in_force(&own, &Fields::new());
        let expected = fields(
            r#"{"day": {"dollars": 20, "tokens": 7}, "task": {"tokens": null}, "sprint": {"dollars": 9}}"#,
        );
        assert_eq!(found["budget"], Value::Map(expected));
        let source = |key: &str| source_of(key, &own, &Fields::new());
        assert_eq!(source("budget"), SettingSource::Both);
        assert_eq!(source("budget.day"), SettingSource::Both);
        assert_eq!(source("budget.day.dollars"), SettingSource::Blackboard);
        assert_eq!(source("budget.task"), SettingSource::Blackboard);
        assert_eq!(source("budget.day.tokens"), SettingSource::TeamFile);
        assert_eq!(source("budget.sprint"), SettingSource::TeamFile);
        assert_eq!(source("budget.week"), SettingSource::Default);
    }

    /// Covers: UI-11
    #[test]
    fn a_role_is_merged_by_its_parts_and_a_model_stays_with_its_program() {
        let role = |shared: &str, own: &str| {
            let text = format!(
                r#"{{"roles": {{"coder": {own}}}, "team_file": {{"hash": "x", "values": {{"roles": {{"coder": {shared}}}}}}}}}"#
            );
            let found = settings_in_force(&fields(&text), &Fields::new());
            serde_json::to_string(&found["roles"].as_map().unwrap()["coder"]).unwrap()
        };
        assert_eq!(role(r#""codex""#, r#"{"count": 4}"#), r#"{"provider":"codex","count":4}"#);
        let whole = r#"{"provider": "codex", "model": "big", "count": 2}"#;
        assert_eq!(role(whole, r#""codex""#), r#"{"provider":"codex","model":"big","count":2}"#);
        assert_eq!(role(whole, r#""claude""#), r#"{"provider":"claude","count":2}"#);
        assert_eq!(
            role(whole, r#"{"provider": "claude", "model": "fast"}"#),
            r#"{"provider":"claude","count":2,"model":"fast"}"#
        );
        let spelled = fields(
            r#"{"roles": {"code-reviewer": {"count": 3}}, "team_file": {"hash": "x", "values": {"roles": {"code_reviewer": {"count": 2}}}}}"#,
        );
        let found = serde_json::to_string(&settings_in_force(&spelled, &Fields::new())["roles"]).unwrap();
        assert_eq!(found, r#"{"code_reviewer":{"count":3}}"#);
        assert_eq!(role(whole, r#"{"model": "fast"}"#), r#"{"provider":"codex","model":"fast","count":2}"#);
    }
}

//! The allowed range of every number in `config`, and of a task's own limits. One line per number.
//!
//! Works on plain values, so that a number that does not fit its type is reported with its range too.

use std::fmt;

use liza_ids::Role;

use crate::model::record::TaskRecord;
use crate::model::value::{Fields, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub name: &'static str,
    pub min: u64,
    pub max: u64,
    pub unit: Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    /// Times, sessions, agents: the key says which.
    Times,
}

/// A number that is not in its range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfRange {
    /// The keys with dots between them, such as `roles.coder.count`.
    pub place: String,
    pub found: i128,
    pub bounds: Bounds,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}; allowed: {}", self.place, self.found, self.bounds)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            Unit::Seconds => " s",
            Unit::Times => "",
        };
        write!(f, "{} to {}{unit}", self.min, self.max)
    }
}

const fn times(name: &'static str, min: u64, max: u64) -> Bounds {
    Bounds { name, min, max, unit: Unit::Times }
}

const fn seconds(name: &'static str, min: u64, max: u64) -> Bounds {
    Bounds { name, min, max, unit: Unit::Seconds }
}

const DAY: u64 = 86_400;
const WEEK: u64 = 7 * DAY;

pub const LEASE: Bounds = seconds("lease_duration", 10, DAY);

pub const AGENT_COUNT: Bounds = times("count", 0, 200);

pub const CONFIG_BOUNDS: &[Bounds] = &[
    times("max_coder_iterations", 1, 1_000),
    times("max_review_cycles", 1, 1_000),
    seconds("heartbeat_interval", 1, DAY),
    LEASE,
    seconds("coder_poll_interval", 1, DAY),
    seconds("coder_max_wait", 0, WEEK),
    times("max_crashes", 1, 1_000),
    times("max_idle_exits", 1, 1_000),
    times("max_sessions", 1, 10_000),
    times("max_planner_sessions", 1, 10_000),
    times("max_blocks", 1, 1_000),
    times("max_rescopes", 1, 1_000),
    seconds("stop_grace", 0, DAY),
    seconds("session_limit", 1, WEEK),
    seconds("quiet_limit", 10, WEEK),
    times("high_impact_lines", 1, 10_000_000),
    seconds("integration_test_limit", 1, DAY),
    seconds("validation_limit", 1, DAY),
    seconds("setup_limit", 1, DAY),
    seconds("remote_limit", 1, 3_600),
    seconds("lock_timeout", 0, 3_600),
    seconds("command_limit", 1, 3_600),
    times("sandbox_max_abi", 0, 100),
];

pub const TASK_BOUNDS: [Bounds; 4] = [
    times("max_iterations", 1, 1_000),
    times("max_coder_iterations", 1, 1_000),
    times("max_review_cycles", 1, 1_000),
    seconds("lease_duration_override", LEASE.min, LEASE.max),
];

impl Bounds {
    /// Returns the number if it is out of range.
    fn check(self, place: impl Into<String>, found: i128) -> Option<OutOfRange> {
        let allowed = i128::from(self.min)..=i128::from(self.max);
        (!allowed.contains(&found)).then(|| OutOfRange { place: place.into(), found, bounds: self })
    }
}

/// The first number of the section that is out of range. Values that are not numbers are not judged here.
pub fn out_of_range(config: &Fields) -> Option<OutOfRange> {
    let number = |value: Option<&Value>| match value {
        Some(Value::Int(number)) => Some(i128::from(*number)),
        // A number in quotes, or beyond the largest that a value holds.
        Some(Value::Text(digits)) => digits.parse().ok(),
        Some(_) | None => None,
    };
    let own = |bounds: &Bounds| bounds.check(bounds.name, number(config.get(bounds.name))?);
    let roles = match config.get("roles") {
        Some(Value::Map(roles)) => Some(roles),
        Some(_) | None => None,
    };
    let of_role = |(role, entry): (&String, &Value)| {
        let Value::Map(entry) = entry else { return None };
        AGENT_COUNT.check(format!("roles.{role}.count"), number(entry.get("count"))?)
    };
    let counted = || roles?.iter().filter(|(role, _)| is_role(role)).find_map(of_role);
    CONFIG_BOUNDS.iter().find_map(own).or_else(counted)
}

/// True if a key of `config.roles` names a role.
fn is_role(key: &str) -> bool {
    Role::ALL.into_iter().any(|role| key == role.id_prefix() || key == role.to_string())
}

pub(crate) fn task_out_of_range(record: &TaskRecord) -> Vec<OutOfRange> {
    let [iterations, coder_iterations, cycles, lease] = TASK_BOUNDS;
    let given = [
        (iterations, record.max_iterations.map(u64::from)),
        (coder_iterations, record.max_coder_iterations.map(u64::from)),
        (cycles, record.max_review_cycles.map(u64::from)),
        (lease, record.lease_duration_override.map(|lease| lease.0)),
    ];
    given.into_iter().filter_map(|(bounds, value)| bounds.check(bounds.name, value?.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::config::Config;
    use liza_ids::Seconds;

    fn fields(json: &str) -> Fields {
        serde_json::from_str(json).unwrap()
    }

    fn message(json: &str) -> Option<String> {
        out_of_range(&fields(json)).map(|wrong| wrong.to_string())
    }

    /// Covers: AC-11
    #[test]
    fn every_number_of_the_config_has_a_range_that_contains_its_default() {
        let default: Fields = fields(&serde_json::to_string(&Config::default()).unwrap());
        let is_number = |(_, value): &(&String, &Value)| matches!(value, Value::Int(_));
        let numbers: Vec<&str> = default.iter().filter(is_number).map(|(key, _)| key.as_str()).collect();
        let bounded: Vec<&str> = CONFIG_BOUNDS.iter().map(|bounds| bounds.name).collect();
        for number in &numbers {
            assert!(bounded.contains(number), "{number} has no range");
        }
        assert_eq!(out_of_range(&default), None);
    }

    /// Covers: AC-11
    #[test]
    fn the_page_of_settings_has_every_range() {
        let page = include_str!("../../../../docs/reference/settings.md");
        for bounds in CONFIG_BOUNDS {
            let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", bounds.name)));
            assert!(row.is_some_and(|row| row.contains(&format!(" {bounds} |"))), "{bounds:?}: {row:?}");
        }
    }

    /// Covers: UI-13
    #[test]
    fn the_page_of_settings_has_every_setting_with_its_default() {
        let page = include_str!("../../../../docs/reference/settings.md");
        let default: Fields = fields(&serde_json::to_string(&Config::default()).unwrap());
        for (key, value) in &default {
            let mut rows = page.lines().filter_map(|line| line.strip_prefix(&format!("| `{key}")));
            let row = rows.find(|row| row.starts_with(['`', '.'])).unwrap_or_else(|| panic!("{key}"));
            let shown = row.split('|').nth(1).unwrap().trim().trim_matches('`');
            match value {
                Value::Null | Value::List(_) | Value::Map(_) => {}
                Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) | Value::Time(_) => {
                    assert_eq!(shown, value.to_string(), "{key}");
                }
            }
        }
    }

    /// Covers: AC-11
    #[test]
    fn a_number_out_of_range_is_reported_with_what_is_allowed() {
        let cases = [
            (r#"{"lease_duration": 0}"#, "lease_duration is 0; allowed: 10 to 86400 s"),
            (r#"{"lease_duration": 86401}"#, "lease_duration is 86401; allowed: 10 to 86400 s"),
            (r#"{"heartbeat_interval": 0}"#, "heartbeat_interval is 0; allowed: 1 to 86400 s"),
            (r#"{"max_crashes": -1}"#, "max_crashes is -1; allowed: 1 to 1000"),
            (
                r#"{"session_limit": 18446744073709551615}"#,
                "session_limit is 18446744073709551615; allowed: 1 to 604800 s",
            ),
            (r#"{"roles": {"coder": {"count": 201}}}"#, "roles.coder.count is 201; allowed: 0 to 200"),
        ];
        for (config, expected) in cases {
            assert_eq!(message(config).as_deref(), Some(expected), "{config}");
        }
        for fine in
            [r#"{"lease_duration": 10}"#, r#"{"heartbeat_interval": 86400}"#, r#"{"stop_grace": 0}"#, "{}"]
        {
            assert_eq!(message(fine), None, "{fine}");
        }
    }

    /// Covers: AC-11
    #[test]
    fn a_tasks_own_limits_have_the_same_ranges() {
        let record = TaskRecord {
            max_iterations: Some(0),
            lease_duration_override: Some(Seconds(9)),
            ..TaskRecord::default()
        };
        let found: Vec<String> = task_out_of_range(&record).iter().map(ToString::to_string).collect();
        let expected = [
            "max_iterations is 0; allowed: 1 to 1000",
            "lease_duration_override is 9; allowed: 10 to 86400 s",
        ];
        assert_eq!(found, expected);
    }
}

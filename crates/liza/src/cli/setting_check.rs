//! Refuses a value of a setting that the next run would refuse. Changes nothing.

use std::collections::BTreeSet;

use liza_agents::providers::check_sections;
use liza_core::model::{DOLLARS_IN_WORDS, Fields, TOKENS_IN_WORDS, Value, parse_dollars, parse_tokens};
use liza_core::rules::validation::MAX_COMMANDS;
use liza_core::text::count;
use liza_store::yaml;
use liza_team::project::Project;

use crate::cli::missing_feature::check_setting;
use crate::cli::ui::error::CommandError;

/// Checks the number of agents, the roles and the budgets; everything else is checked where it is written.
pub(crate) fn check(project: &Project, key: &str, value: &str) -> Result<(), CommandError> {
    check_setting(key)?;
    if key.starts_with("roles.") && key.ends_with(".count") {
        check_count(key, value)?;
    }
    if key == "validation" {
        check_commands(value)?;
    }
    if key.split('.').next() == Some("roles") { check_roles(project, key, value) } else { Ok(()) }
}

fn refused(message: String, hint: String) -> CommandError {
    CommandError::refused("invalid", message).hint(hint)
}

/// An amount of a budget in digits, whichever way a person writes it; any other value as it is.
pub(crate) fn in_digits(key: &str, value: &str) -> Result<String, CommandError> {
    let (digits, accepted) = match key.rsplit_once('.') {
        _ if !key.starts_with("budget.") || value == "null" => return Ok(value.to_owned()),
        Some((_, "tokens")) => (parse_tokens(value).map(|tokens| tokens.to_string()), TOKENS_IN_WORDS),
        Some((_, "dollars")) => (parse_dollars(value).map(|dollars| dollars.to_string()), DOLLARS_IN_WORDS),
        _ => return Ok(value.to_owned()),
    };
    let is_none = value.trim().eq_ignore_ascii_case("none");
    digits.ok_or_else(|| {
        let hint = match is_none {
            true => format!("without this budget: liza config {key} --unset"),
            false => "the budgets: liza config budget".to_owned(),
        };
        refused(format!("{key} must be {accepted}, not {value:?}"), hint)
    })
}

/// Refuses more commands than a statement holds: no work could be reviewed.
fn check_commands(value: &str) -> Result<(), CommandError> {
    // What is no list is refused where it is written.
    let lines: BTreeSet<String> = yaml::read(value).unwrap_or_default();
    if lines.len() <= MAX_COMMANDS {
        return Ok(());
    }
    let message = format!(
        "{} are more than the {MAX_COMMANDS} whose results fit into one statement",
        count(lines.len(), "command")
    );
    let hint = "put several into one script: liza config validation '[\"sh scripts/check.sh\"]'";
    Err(CommandError::refused("too_many_commands", message).hint(hint))
}

/// Refuses a value that is no number of agents.
fn check_count(key: &str, value: &str) -> Result<(), CommandError> {
    if value == "null" || value.parse::<u32>().is_ok() {
        return Ok(());
    }
    let message = format!("{key} must be a number of agents, not {value:?}");
    Err(refused(message, format!("such as: liza config {key} 2")))
}

/// Refuses roles that no team could be started with.
fn check_roles(project: &Project, key: &str, value: &str) -> Result<(), CommandError> {
    // Invalid YAML is refused where it is written.
    let Ok(value) = yaml::read::<Value>(value) else { return Ok(()) };
    let mut config = project.store().snapshot()?.board.config()?.clone();
    let path: Vec<&str> = key.split('.').skip(1).collect();
    config.roles = match (path.is_empty(), value) {
        (true, Value::Map(fields)) => fields,
        (true, _) => return Ok(()),
        (false, value) => with(config.roles, &path, value),
    };
    check_sections(&config)
        .map_err(|error| refused(error.to_string(), "such as: liza config roles.coder.count 2".to_owned()))
}

/// The fields with another value at this place.
fn with(mut fields: Fields, path: &[&str], value: Value) -> Fields {
    let Some((first, rest)) = path.split_first() else { return fields };
    let value = match rest.is_empty() {
        true => value,
        false => {
            let inner = match fields.get(*first) {
                Some(Value::Map(inner)) => inner.clone(),
                // A role may be only the name of its agent program.
                Some(Value::Text(name)) => {
                    Fields::from_iter([("provider".to_owned(), Value::from(name.as_str()))])
                }
                Some(_) | None => Fields::new(),
            };
            Value::Map(with(inner, rest, value))
        }
    };
    fields.insert((*first).to_owned(), value);
    fields
}

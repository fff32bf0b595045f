//! Reads the section `config` and the settings that the shared file adds. A number out of its range makes the
//! section broken, with the position of the number.

use liza_core::model::{Config, Fields, OutOfRange, Value, all_settings, out_of_range, settings_in_force};

use crate::document::plain_value;
use crate::yaml::{self, Node, YamlError, decode, to_value};

pub(crate) fn decode_config(node: &Node<'_>) -> Result<Config, YamlError> {
    let Value::Map(own) = plain_value(node) else { return decode(node) };
    if let Some(wrong) = out_of_range(&own) {
        return Err(at_number(node, &wrong));
    }
    if !own.contains_key("team_file") {
        return decode(node);
    }
    let all = settings_in_force(&own, &default_settings()?);
    if let Some(wrong) = out_of_range(&all) {
        return Err(at_number(node, &wrong));
    }
    yaml::read(&yaml::document(&all)).map_err(|error| YamlError::at(error.to_string(), node.position))
}

/// Adds the defaults to the settings of a section; one that is no map stays as it is.
pub(crate) fn every_setting(section: Option<Value>) -> Result<Value, YamlError> {
    let section = section.unwrap_or(Value::Null);
    match section.as_map() {
        Some(own) => Ok(Value::Map(all_settings(own, &default_settings()?))),
        None if section == Value::Null => Ok(Value::Map(default_settings()?)),
        None => Ok(section),
    }
}

/// The settings of a new project.
pub(crate) fn default_settings() -> Result<Fields, YamlError> {
    settings_as_fields(&Config::default())
}

/// The settings as a new blackboard has them: those that differ from the default.
pub(crate) fn settings_to_write(config: &Config) -> Result<Value, YamlError> {
    let defaults = default_settings()?;
    let mut settings = settings_as_fields(config)?;
    settings.retain(|key, value| defaults.get(key) != Some(value));
    Ok(Value::Map(settings))
}

pub fn settings_as_fields(config: &Config) -> Result<Fields, YamlError> {
    Ok(to_value(config)?.as_map().cloned().unwrap_or_default())
}

fn at_number(node: &Node<'_>, wrong: &OutOfRange) -> YamlError {
    let place = wrong.place.split('.').try_fold(node, |node, key| node.get(key));
    let position = place.map_or(node.position, |place| place.position);
    YamlError::at(wrong.to_string(), position)
}

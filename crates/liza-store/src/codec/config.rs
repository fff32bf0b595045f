//! Reads the section `config`, with what the shared file adds to it. A number that is out of its range makes the section
//! broken, with the number's position.

use liza_core::model::{Config, Fields, OutOfRange, Value, out_of_range, settings_in_force};

use crate::document::plain_value;
use crate::yaml::{self, Node, YamlError, decode, to_value};

/// The settings.
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

/// The settings of a new project.
pub(crate) fn default_settings() -> Result<Fields, YamlError> {
    settings_as_fields(&Config::default())
}

/// Settings as they are written.
pub fn settings_as_fields(config: &Config) -> Result<Fields, YamlError> {
    Ok(to_value(config)?.as_map().cloned().unwrap_or_default())
}

fn at_number(node: &Node<'_>, wrong: &OutOfRange) -> YamlError {
    let place = wrong.place.split('.').try_fold(node, |node, key| node.get(key));
    let position = place.map_or(node.position, |place| place.position);
    YamlError::at(wrong.to_string(), position)
}

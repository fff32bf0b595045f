//! Reads the section `config`. A number that is out of its range makes the section broken, with the number's position.

use liza_core::model::{Config, Value, out_of_range};

use crate::document::plain_value;
use crate::yaml::{Node, YamlError, decode};

/// The settings.
pub(crate) fn decode_config(node: &Node<'_>) -> Result<Config, YamlError> {
    if let Value::Map(fields) = plain_value(node)
        && let Some(wrong) = out_of_range(&fields)
    {
        let place = wrong.place.split('.').try_fold(node, |node, key| node.get(key));
        let position = place.map_or(node.position, |place| place.position);
        return Err(YamlError::at(wrong.to_string(), position));
    }
    decode(node)
}

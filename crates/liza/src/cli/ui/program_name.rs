//! The name of an agent program on the command line: any name is accepted, and shells complete the built-in ones.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use liza_agents::providers::builtin_names;

#[derive(Debug, Clone)]
pub(crate) struct ProgramName;

impl TypedValueParser for ProgramName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        // One of config.providers has a name of its own.
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(builtin_names().iter().copied().map(PossibleValue::new)))
    }
}

//! The input of people and agents: texts of any length, lists of task IDs.
//!
//! Every free text is read through [`Text`]: no secret and no terminal sequence reaches the blackboard.

use std::convert::Infallible;
use std::path::Path;
use std::str::FromStr;

use liza_core::model::{IdError, Impact, TaskId};

use crate::cli::context::Context;

use super::ui::error::CommandError;
use super::ui::layout::clean;

/// The longest text that the blackboard accepts; it ends up in prompts and on screens.
const TEXT_MAX: usize = 1024 * 1024;

/// A text from the command line; `-` means standard input.
#[derive(Debug, Clone)]
pub(crate) struct Text(String);

impl FromStr for Text {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl Text {
    /// The text, without control characters and secrets and not longer than the blackboard accepts.
    pub(crate) fn read(self, context: &Context) -> Result<String, CommandError> {
        let text = self.read_unmasked(context)?;
        Ok(context.environment.masker().mask(&text).into_owned())
    }

    /// The same with its secrets: only for a setting, which may have to be one.
    pub(crate) fn read_unmasked(self, context: &Context) -> Result<String, CommandError> {
        let text = if self.0 == "-" { from_stdin(context)? } else { self.0 };
        check_length(&text)?;
        Ok(clean(&text))
    }

    pub(crate) fn read_some(text: Option<Self>, context: &Context) -> Result<Option<String>, CommandError> {
        text.map(|text| text.read(context)).transpose()
    }

    pub(crate) fn read_all(texts: Vec<Self>, context: &Context) -> Result<Vec<String>, CommandError> {
        texts.into_iter().map(|text| text.read(context)).collect()
    }
}

/// The text of a file that an option names; `-` means standard input.
pub(crate) fn read_file(context: &Context, file: &Path, option: &str) -> Result<String, CommandError> {
    if file.as_os_str() == "-" {
        return Text("-".to_owned()).read(context);
    }
    let path = context.directory.join(file);
    let read = context.read_text(file).map_err(|error| {
        CommandError::refused("io", format!("cannot read {}: {error}", path.display()))
            .hint(format!("{option} takes a text file, or - for standard input"))
    })?;
    // A file that contains only a dash does not mean standard input.
    if read.trim() == "-" { Ok(read) } else { Text(read).read(context) }
}

fn from_stdin(context: &Context) -> Result<String, CommandError> {
    let unreadable = |why: String| CommandError::refused("bad_text", format!("standard input: {why}"));
    // One byte more than allowed distinguishes a text that just fits from one that is too long.
    let input = context.screen.console.read_input(TEXT_MAX as u64 + 1);
    let bytes = input.map_err(|error| unreadable(error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text".to_owned()))
}

fn check_length(text: &str) -> Result<(), CommandError> {
    if text.len() <= TEXT_MAX {
        return Ok(());
    }
    let message = format!("the text is longer than {} KiB", TEXT_MAX / 1024);
    Err(CommandError::refused("bad_text", message)
        .hint("put it in a file of the project and refer to that file"))
}

/// Task IDs separated by commas; an empty text is an empty list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks(pub(crate) Vec<TaskId>);

impl FromStr for Tasks {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let ids = text.split(',').map(str::trim).filter(|id| !id.is_empty());
        ids.map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

/// Parses an impact, for clap.
pub(crate) fn impact(text: &str) -> Result<Impact, String> {
    text.parse().map_err(|_| "it is normal or high".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_is_refused() {
        assert!(check_length(&"x".repeat(TEXT_MAX)).is_ok());
        assert_eq!(check_length(&"x".repeat(TEXT_MAX + 1)).unwrap_err().code, "bad_text");
    }

    #[test]
    fn a_list_of_tasks_may_be_empty_but_not_wrong() {
        let ids = |text: &str| text.parse::<Tasks>().map(|tasks| tasks.0.len());
        assert_eq!((ids(""), ids("a"), ids("a, b-2,")), (Ok(0), Ok(1), Ok(2)));
        assert!(ids("a,../x").is_err());
    }
}

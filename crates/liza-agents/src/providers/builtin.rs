//! The built-in agent programs: the table in `builtin.jsonc`, read with the code that reads `config.providers`.

use std::path::Path;
use std::sync::LazyLock;

use liza_core::model::Value;

use super::settings::{Setting as _, WrongSetting};
use super::template::{ClientHome, CommandTemplate};

const TABLE: &str = include_str!("builtin.jsonc");

/// The agent of Liza itself, which has no program of its own.
pub(super) const REHEARSAL: &str = "rehearsal";

/// Other names of built-in programs.
const ALIASES: [(&str, &str); 1] = [("mistral", "vibe")];

static BUILT_IN: LazyLock<Vec<CommandTemplate>> = LazyLock::new(|| read(TABLE).unwrap_or_default());

static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| built_in().map(|(name, _)| name).collect());

/// The entries of a table; a line that begins with `//` is a comment.
fn read(table: &str) -> Result<Vec<CommandTemplate>, WrongSetting> {
    let lines: Vec<&str> = table.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let entries: Vec<Value> = serde_json::from_str(&lines.join("\n"))
        .map_err(|error| WrongSetting::must_be(&format!("valid: {error}")))?;
    let entry = |value: &Value| {
        let mut template = CommandTemplate::default();
        template.accept(value).map(|()| template)
    };
    entries.iter().map(entry).collect()
}

/// The built-in programs with their names, the preferred one first.
pub(super) fn built_in() -> impl Iterator<Item = (&'static str, &'static CommandTemplate)> {
    let name = |template: &'static CommandTemplate| match template.program.as_str() {
        "" => REHEARSAL,
        program => program,
    };
    BUILT_IN.iter().map(move |template| (name(template), template))
}

/// The name of a program that may be given by another one.
pub(super) fn own_name(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name)
}

pub(super) fn find(name: &str) -> Option<&'static CommandTemplate> {
    let name = own_name(name);
    built_in().find(|(known, _)| *known == name).map(|(_, template)| template)
}

pub fn builtin_names() -> &'static [&'static str] {
    &NAMES
}

/// Looks up the places of a known program by the name of its file.
pub fn places_of(program: &Path) -> Option<&'static ClientHome> {
    find(program.file_stem()?.to_str()?).map(|template| &template.home)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: AX-34
    #[test]
    fn the_table_is_valid() {
        let names = "claude codex gemini vibe opencode goose copilot qwen rehearsal";
        assert_eq!(read(TABLE).unwrap().len(), names.split(' ').count());
        assert_eq!(builtin_names().join(" "), names);
    }
}

//! Reads playbooks of the rehearsal agent from YAML. The format is `liza-rehearsal`'s; this module only joins
//! it with the program's YAML reader, so that a mistake is reported with its line and column.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use liza_rehearsal::{DEMO_PLAYBOOK, Playbook};
use liza_store::yaml::{self, YamlError};

#[derive(Debug, thiserror::Error)]
pub enum PlaybookError {
    #[error("cannot read the playbook {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}{}: {source}", path.display(), Position(source))]
    Invalid { path: PathBuf, source: YamlError },
}

/// Formats `:LINE:COLUMN` and the key of an error.
struct Position<'e>(&'e YamlError);

impl fmt::Display for Position<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.0.position {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        match &self.0.key {
            Some(key) => write!(f, ": {key}"),
            None => Ok(()),
        }
    }
}

/// Reads a playbook file and returns its text too.
pub fn load(path: &Path) -> Result<(Playbook, String), PlaybookError> {
    let text = fs::read_to_string(path)
        .map_err(|source| PlaybookError::Unreadable { path: path.to_owned(), source })?;
    Ok((parse(&text, path)?, text))
}

/// Errors name it `path`.
pub fn parse(text: &str, path: &Path) -> Result<Playbook, PlaybookError> {
    yaml::read(text).map_err(|source| PlaybookError::Invalid { path: path.to_owned(), source })
}

pub fn demo() -> Result<(Playbook, String), PlaybookError> {
    Ok((parse(DEMO_PLAYBOOK, Path::new("demo.yaml"))?, DEMO_PLAYBOOK.to_owned()))
}

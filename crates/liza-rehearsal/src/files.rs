//! Reads and writes whole files; an error names the file and the action.

use std::fs;
use std::path::Path;

use crate::error::RehearsalError;

pub(crate) fn read(path: &Path) -> Result<String, RehearsalError> {
    fs::read_to_string(path).map_err(RehearsalError::io("read", path))
}

/// Creates the folders that the file needs.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), RehearsalError> {
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, text));
    written.map_err(RehearsalError::io("write", path))
}

pub(crate) fn delete(path: &Path) -> Result<(), RehearsalError> {
    fs::remove_file(path).map_err(RehearsalError::io("delete", path))
}

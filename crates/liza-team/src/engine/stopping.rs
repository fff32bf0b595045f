//! The mark of a team that is stopping: another `liza stop` waits for it, and kills nothing.

use std::path::{Path, PathBuf};

use liza_host::durable;

use super::EngineError;

/// Notes that this process, which runs the project's team, is stopping.
pub fn mark_stopping(folder: &Path) -> Result<(), EngineError> {
    let path = path(folder);
    durable::replace_private_file(&path, std::process::id().to_string().as_bytes())
        .map_err(EngineError::io("write", &path))
}

pub fn is_stopping(folder: &Path, process: u32) -> bool {
    durable::read_text(&path(folder)).is_ok_and(|text| text.trim().parse() == Ok(process))
}

/// Removes the mark of an earlier team, whose process may have had the same number.
pub fn clear_stopping(folder: &Path) {
    // Most often there is none.
    let _ = durable::remove_if_present(&path(folder));
}

fn path(folder: &Path) -> PathBuf {
    folder.join("run.stopping")
}

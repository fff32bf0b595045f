//! Creates and removes the stop files in `.liza/`.

use std::io::{self, Write as _};
use std::path::Path;

use liza_core::model::{StopFile, Timestamp};
use liza_host::{durable, private};

use super::error::EngineError;

/// The note about a checkpoint that has waited too long; removed with the checkpoint.
pub const ESCALATION: &str = "ESCALATION";

/// Creates a stop file durably. Its first line is the time.
pub(super) fn create(folder: &Path, file: StopFile, now: Timestamp) -> io::Result<()> {
    let path = folder.join(file.name());
    // A file that a person created stays as it is: it dates the stop.
    let mut created = match private::create_new(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        created => created?,
    };
    created.write_all(format!("{now}\n").as_bytes())?;
    created.sync_all()?;
    durable::sync_folder(folder)
}

pub(super) fn remove(folder: &Path, file: StopFile) -> Result<(), EngineError> {
    remove_file(folder, file.name())?;
    match file {
        StopFile::Checkpoint => remove_file(folder, ESCALATION),
        StopFile::Pause | StopFile::Abort => Ok(()),
    }
}

fn remove_file(folder: &Path, name: &str) -> Result<(), EngineError> {
    let path = folder.join(name);
    durable::remove_if_present(&path).map_err(|source| EngineError::Effect { path, source })
}

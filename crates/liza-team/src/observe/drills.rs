//! The results of drills, in a file beside the blackboard; no task and no rule knows of them.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use liza_core::evidence::DrillRecord;
use liza_host::durable;

pub fn file(folder: &Path) -> PathBuf {
    folder.join("drills.json")
}

/// All results of the project with this `.liza`; none if there was no drill.
pub fn read_records(folder: &Path) -> io::Result<Vec<DrillRecord>> {
    match durable::read_file(&file(folder)) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| io::Error::new(ErrorKind::InvalidData, format!(".liza/drills.json: {error}"))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

//! Files and folders that only their owner may read: they may contain secrets that were not masked.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

const FILE: u32 = 0o600;
const FOLDER: u32 = 0o700;

/// Creates a folder, and those above it that are missing.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(path)
}

pub fn create_new_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER).create(path)
}

/// Options that create a file only its owner may read. A file that exists keeps its mode.
pub fn file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE);
    options
}

pub fn create_new(path: &Path) -> io::Result<File> {
    file_options().write(true).create_new(true).open(path)
}

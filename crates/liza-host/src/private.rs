//! Files and folders that only their owner may read: they may contain secrets that were not masked.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use rustix::fs::Mode;

use crate::durable::{self, Open};
pub use crate::own_folder::create_folder;

pub fn create_new_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(Mode::RWXU.bits()).create(path)
}

pub fn create_new(path: &Path) -> io::Result<File> {
    durable::open(Open::New, path)
}

//! Names of temporary files and folders, by which those of dead processes are found.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::process;

/// A name `<prefix><process>-<number>` that no other call returns.
pub fn temporary_name(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{prefix}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Files and folders in `parent` with such a name, whose process is gone.
pub fn leftovers(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let abandoned = entries.filter_map(|entry| {
        let name = entry.file_name();
        let (owner, _) = name.to_str()?.strip_prefix(prefix)?.split_once('-')?;
        (!process::is_alive(owner.parse().ok()?)).then(|| entry.path())
    });
    abandoned.collect()
}

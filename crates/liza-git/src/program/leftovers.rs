//! Names of temporary files and folders, by which those of dead processes are found.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use liza_sandbox::sys::process;

/// The prefix of the folders in which Liza looks at an agent's files, in the repository's git folder.
pub(crate) const VIEW: &str = "liza-view-";

/// A name `<prefix><process>-<number>` that no other call returns.
pub(crate) fn temporary_name(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{prefix}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Deleted on drop.
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Chooses its name; creates nothing.
    pub(crate) fn name_in(parent: &Path, prefix: &str) -> Self {
        Self(parent.join(temporary_name(prefix)))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Files and folders in `parent` with such a name, whose process is gone.
pub(crate) fn leftovers(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let abandoned = entries.filter_map(|entry| {
        let name = entry.file_name();
        let (owner, _) = name.to_str()?.strip_prefix(prefix)?.split_once('-')?;
        (!process::is_alive(owner.parse().ok()?)).then(|| entry.path())
    });
    abandoned.collect()
}

//! The free space of a disk, and failures for the lack of it: they are nobody's fault, and pass.

use std::cell::RefCell;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use rustix::process::geteuid;

/// With less than this, hardly a file can be written.
const LEAST: u64 = 1 << 20;

/// The person's next step.
pub const FREE_SPACE: &str = "free space on the disk (df -h FOLDER), then try again";

/// The words of programs for the same, in no language but English.
const WORDS: &str = "No space left on device";

/// True if hardly anything can be written to the disk of a file or folder.
pub fn is_full(path: &Path) -> bool {
    let Ok(disk) = statvfs(path) else { return false };
    // The rest is kept for root.
    let free = if geteuid().is_root() { disk.f_bfree } else { disk.f_bavail };
    let has_no_files = disk.f_files > 0 && disk.f_favail == 0;
    disk.f_blocks > 0 && (free.saturating_mul(disk.f_frsize) < LEAST || has_no_files)
}

/// Looks at the disks on which a program works while it runs: if one was full, its failure says nothing about it.
#[derive(Debug)]
pub struct SpaceWatch {
    folders: Vec<PathBuf>,
    full: RefCell<Option<PathBuf>>,
}

impl SpaceWatch {
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { folders: folders.into_iter().collect(), full: RefCell::default() }
    }

    pub fn look(&self) {
        let mut full = self.full.borrow_mut();
        if full.is_none() {
            *full = self.folders.iter().find(|folder| is_full(folder)).cloned();
        }
    }

    /// An error if a disk was full at a look, or is now.
    pub fn check(&self) -> io::Result<()> {
        self.look();
        let Some(folder) = &*self.full.borrow() else { return Ok(()) };
        let folder = folder.display();
        let why = format!("the disk with {folder} was full while it ran, so its result does not count");
        Err(io::Error::new(ErrorKind::StorageFull, why))
    }
}

/// True if an error is, or was caused by, a full disk.
pub fn is_lack_of_space(error: &(dyn Error + 'static)) -> bool {
    let is_full = |error: &(dyn Error + 'static)| {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        matches!(kind, Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
    };
    is_full(error) || error.to_string().contains(WORDS) || error.source().is_some_and(is_lack_of_space)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot write")]
    struct Outer {
        source: io::Error,
    }

    /// Covers: RO-07
    #[test]
    fn a_full_disk_is_found_behind_other_errors_and_words() {
        let of = |source: io::Error| is_lack_of_space(&Outer { source });
        assert!(of(io::Error::from_raw_os_error(28)) && of(io::Error::from_raw_os_error(122)));
        assert!(is_lack_of_space(&io::Error::other("fatal: write error: No space left on device")));
        assert!(!of(io::Error::from_raw_os_error(13)));
        assert!(!is_full(Path::new("/proc")) && !is_full(Path::new("/no/such/folder")));
    }
}

//! What every Unix can do about the processes of others: little.
//!
//! Must stay honest: where the answer is not known, it says so, and the caller takes the careful way.

use std::path::Path;

/// Processes that carry `mark`, or descend from `root`: unknown here, so the process group has to be enough.
pub(super) fn members(_mark: &str, _root: u32) -> Vec<u32> {
    Vec::new()
}

/// Processes below a folder that outlived their owner: unknown here.
pub(super) fn orphans(_name: &str, _folder: &Path) -> Vec<u32> {
    Vec::new()
}

/// Whether a process has `file` open or is a git at work below one of `folders`: unknown here.
pub(super) fn in_use(_file: &Path, _folders: &[&Path]) -> Option<bool> {
    None
}

/// Orphans of descendants go to the first process here; the process group has to be enough.
pub(super) fn adopt_orphans() -> bool {
    false
}

/// Processes that were started for a process: unknown here.
pub(super) fn owned(_name: &str, _owner: u32) -> Vec<u32> {
    Vec::new()
}

/// The signals that this process ignores: unknown here.
pub(super) fn ignored_signals() -> Option<u64> {
    None
}

/// What tells this run of this machine from others: unknown here.
pub(super) fn this_boot() -> Option<String> {
    None
}

//! Caches of build tools: Liza's own for each project and role, so that a session changes none of the person's.

use std::path::{Path, PathBuf};

use liza_ids::{Role, TaskId};

use crate::sys::remove_tree::remove_tree;

/// Variables that name a cache, and its folder.
const CACHES: &[(&str, &str)] = &[
    ("XDG_CACHE_HOME", "xdg"),
    ("npm_config_cache", "npm"),
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
    ("GOCACHE", "go-build"),
    ("GOMODCACHE", "go-mod"),
    (CARGO_HOME, "cargo"),
];

/// The variable that names cargo's home folder.
pub const CARGO_HOME: &str = "CARGO_HOME";

/// In a project's `.liza`: the caches of code under test.
const CHECKS: &str = "caches/checks";

/// In place of a task, for sessions without one. No task is called so.
const NO_TASK: &str = ".none";

/// The caches of code under test: others than those of the role, since what code under test leaves in a cache must not be run
/// by the session itself, and others for each task, since the code of one task must not decide what becomes of another. In no
/// folder that a session can write, since it could put a link in their place.
pub fn check_caches(liza: &Path, role: Role, task: Option<&TaskId>) -> PathBuf {
    liza.join(CHECKS).join(task.map_or(NO_TASK, TaskId::as_str)).join(role.to_string())
}

/// Removes the caches of code under test of a task that needs them no longer. What cannot be removed only takes up space.
pub fn remove_check_caches(liza: &Path, task: &TaskId) {
    let _ = remove_tree(&liza.join(CHECKS).join(task.as_str()));
}

/// The variables that lead build tools to the caches in a folder.
pub fn cache_variables(folder: &Path) -> Vec<(String, String)> {
    let value = |below: &str| folder.join(below).to_string_lossy().into_owned();
    CACHES.iter().map(|(name, below)| ((*name).to_owned(), value(below))).collect()
}

/// The person's own home folder of cargo.
pub fn cargo_home(home: Option<&Path>) -> Option<PathBuf> {
    std::env::var_os(CARGO_HOME)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(home?.join(".cargo")))
}

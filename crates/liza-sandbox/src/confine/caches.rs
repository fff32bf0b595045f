//! Caches of build tools: Liza's own for each project and role, so that a session changes none of the person's.

use std::path::{Path, PathBuf};

use liza_ids::{Role, Sha, TaskId};

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

pub const CARGO_HOME: &str = "CARGO_HOME";

/// Below a project's `.liza`.
const CHECKS: &str = "caches/checks";

/// The folder for sessions without a task. No task has this name.
const NO_TASK: &str = ".none";

/// The caches of code under test. Not the role's, since the session must not run what code under test left
/// there; one per task, since the code of one task must not influence another; in no folder that a session
/// can write, since it could place a link there.
pub fn check_caches(liza: &Path, role: Role, task: Option<&TaskId>) -> PathBuf {
    liza.join(CHECKS).join(task.map_or(NO_TASK, TaskId::as_str)).join(role.to_string())
}

/// The caches of the checks of one review: nothing that ran for another commit has written them.
pub fn review_caches(liza: &Path, task: &TaskId, commit: &Sha) -> PathBuf {
    check_caches(liza, Role::CodeReviewer, Some(task)).join(commit.as_str())
}

/// The same for the commands that validate this commit. No session can write them.
pub fn validation_caches(liza: &Path, task: &TaskId, commit: &Sha) -> PathBuf {
    liza.join(CHECKS).join(task.as_str()).join("validation").join(commit.as_str())
}

/// The caches of one run of a merge's test. What a commit's test leaves, such as settings of cargo that name a
/// program, is read by no test of another commit.
pub fn merge_caches(liza: &Path, task: Option<&TaskId>, commit: &Sha) -> PathBuf {
    liza.join(CHECKS).join(task.map_or(NO_TASK, TaskId::as_str)).join("merge").join(commit.as_str())
}

/// Removes the caches of a finished task's code under test. Leftovers only take up space.
pub fn remove_check_caches(liza: &Path, task: &TaskId) {
    let _ = remove_tree(&liza.join(CHECKS).join(task.as_str()));
}

/// The variables that point build tools to the caches in a folder.
pub fn cache_variables(folder: &Path) -> Vec<(String, String)> {
    let value = |below: &str| folder.join(below).to_string_lossy().into_owned();
    CACHES.iter().map(|(name, below)| ((*name).to_owned(), value(below))).collect()
}

pub fn cargo_home(home: Option<&Path>) -> Option<PathBuf> {
    std::env::var_os(CARGO_HOME)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(home?.join(".cargo")))
}

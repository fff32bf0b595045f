//! Caches of build tools: Liza's own for each project and role, so that a session changes none of the person's.

use std::path::{Path, PathBuf};

/// Variables that name a cache, and its folder.
const CACHES: &[(&str, &str)] = &[
    ("XDG_CACHE_HOME", "xdg"),
    ("npm_config_cache", "npm"),
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
    ("GOCACHE", "go-build"),
    ("GOMODCACHE", "go-mod"),
];

/// What cargo downloads is shared with the person; its settings and programs are not writable.
const CARGO: &[&str] = &["registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache"];

/// The caches of code under test: another folder than that of the role, since what code under test leaves in a cache must
/// not be run by the session itself. Beside it, since a session could put a link in the place of a folder below its own.
pub(crate) fn check_caches(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push("-check");
    folder.with_file_name(name)
}

/// The variables that lead build tools to the caches in a folder.
pub(crate) fn cache_variables(folder: &Path) -> Vec<(String, String)> {
    let value = |below: &str| folder.join(below).to_string_lossy().into_owned();
    CACHES.iter().map(|(name, below)| ((*name).to_owned(), value(below))).collect()
}

/// What of cargo's home a session can write.
pub(crate) fn shared_caches(home: Option<&Path>, cargo_home: Option<PathBuf>) -> Vec<PathBuf> {
    let Some(cargo) = cargo_home.or_else(|| Some(home?.join(".cargo"))) else { return Vec::new() };
    CARGO.iter().map(|name| cargo.join(name)).collect()
}

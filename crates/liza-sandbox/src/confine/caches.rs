//! Caches of build tools: Liza's own for each project and role, so that a session changes none of the person's. What the
//! person has downloaded is read from there.

use std::io;
use std::path::{Path, PathBuf};

use liza_ids::{Role, Sha, TaskId};
use serde::{Deserialize, Serialize};

use crate::sys::remove_tree::remove_tree;

use super::cargo_home;
use super::downloads::{fill_go, fill_npm, fill_pip};

/// A cache of a build tool.
struct Cache {
    /// The variable that names it.
    variable: &'static str,
    /// The folder of Liza's own.
    own: &'static str,
    /// What the person has in the same cache; `None` if Liza's own begins empty.
    source: Option<Source>,
}

struct Source {
    /// Variables that name it or a folder above it, with the path from there; the first one that is set counts.
    named: &'static [(&'static str, &'static str)],
    /// Its place in the home folder otherwise.
    in_home: &'static str,
    /// The parts that sessions read.
    readable: &'static [&'static str],
    /// The parts of these that no session reads.
    hidden: &'static [&'static str],
    /// Links what a checkout uses, from the person's to Liza's own.
    fill: fn(own: &Path, yours: &Path, checkout: &Path) -> io::Result<()>,
}

const fn empty(variable: &'static str, own: &'static str) -> Cache {
    Cache { variable, own, source: None }
}

const CACHES: [Cache; 7] = [
    empty("XDG_CACHE_HOME", "xdg"),
    Cache {
        variable: "npm_config_cache",
        own: "npm",
        source: Some(Source {
            named: &[("npm_config_cache", "")],
            in_home: ".npm",
            readable: &["_cacache/content-v2"],
            hidden: &[],
            fill: fill_npm,
        }),
    },
    Cache {
        variable: "PIP_CACHE_DIR",
        own: "pip",
        source: Some(Source {
            named: &[("PIP_CACHE_DIR", ""), ("XDG_CACHE_HOME", "pip")],
            in_home: ".cache/pip",
            readable: &["http", "http-v2", "wheels"],
            hidden: &[],
            fill: fill_pip,
        }),
    },
    empty("UV_CACHE_DIR", "uv"),
    empty("GOCACHE", "go-build"),
    Cache {
        variable: "GOMODCACHE",
        own: "go-mod",
        source: Some(Source {
            named: &[("GOMODCACHE", ""), ("GOPATH", "pkg/mod")],
            in_home: "go/pkg/mod",
            readable: &["cache/download"],
            hidden: &[],
            fill: fill_go,
        }),
    },
    Cache {
        variable: "CARGO_HOME",
        own: "cargo",
        source: Some(Source {
            named: &[("CARGO_HOME", "")],
            in_home: ".cargo",
            readable: cargo_home::READABLE,
            hidden: cargo_home::HIDDEN,
            fill: cargo_home::fill,
        }),
    },
];

/// A cache of the person's, by the variable of the tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct YourCache {
    pub variable: String,
    pub folder: PathBuf,
}

impl YourCache {
    fn source(&self) -> Option<&'static Source> {
        CACHES.iter().find(|cache| cache.variable == self.variable)?.source.as_ref()
    }

    /// The parts that sessions read.
    pub(super) fn readable(&self) -> impl Iterator<Item = PathBuf> {
        self.source().into_iter().flat_map(|source| source.readable).map(|name| self.folder.join(name))
    }

    /// The parts of these that no session reads.
    pub(super) fn hidden(&self) -> &'static [&'static str] {
        self.source().map(|source| source.hidden).unwrap_or_default()
    }

    /// Fills the cache that this process was given; the tool downloads the rest.
    pub(super) fn fill(&self, checkout: &Path) {
        let own = std::env::var_os(&self.variable).map(PathBuf::from);
        if let (Some(own), Some(source)) = (own, self.source()) {
            let _ = (source.fill)(&own, &self.folder, checkout);
        }
    }
}

/// The caches of the person that fill those of sessions.
pub fn your_caches(home: Option<&Path>) -> Vec<YourCache> {
    let named = |(name, below): &(&str, &str)| {
        let folder = std::env::var_os(name).and_then(|value| std::env::split_paths(&value).next());
        Some(folder.filter(|folder| folder.is_absolute())?.join(below))
    };
    let yours = |cache: &Cache| {
        let source = cache.source.as_ref()?;
        let folder = source.named.iter().find_map(named).or_else(|| Some(home?.join(source.in_home)))?;
        Some(YourCache { variable: cache.variable.to_owned(), folder })
    };
    CACHES.iter().filter_map(yours).collect()
}

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
    CACHES.iter().map(|cache| (cache.variable.to_owned(), value(cache.own))).collect()
}

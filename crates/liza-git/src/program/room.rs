//! The sandbox for git commands that touch agents' files or objects: it limits reads and writes, whatever git
//! is made to run. Made from the settings that git lists; the system's side is `sys::confinement`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use liza_host::worktrees;
use liza_sandbox::confine::{DiskLook, GitSurroundings, RoomRules, git_grants};
use liza_sandbox::sys::confinement::{Grants, TcpGrants};

use crate::program::environment::GitEnvironment;
use crate::program::programs::{each_setting, is_large_files};

/// The folder of Git LFS in a git folder.
const LARGE_FILES: &str = "lfs";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomUse {
    /// It reads files or objects of agents. It fetches nothing.
    Reading,
    /// It writes the files of a commit. Git LFS may fetch them.
    CheckingOut,
}

/// The sandbox of one git command.
#[derive(Debug, Clone)]
pub struct Room {
    pub used_for: RoomUse,
    pub root: PathBuf,
    /// The git folder with its objects.
    pub git: PathBuf,
    /// The first one has the temporary files too.
    pub writable: Vec<PathBuf>,
    /// The person's settings.
    pub rules: Arc<RoomRules>,
}

impl Room {
    /// The grants of git; `settings` is the output of `git config --list --show-scope -z`.
    pub fn grants(&self, git: &GitEnvironment, settings: &[u8], mut needed: Vec<PathBuf>) -> Grants {
        let variable = |name: &str| git.variable(name).map(Path::new).filter(|path| path.is_absolute());
        let paths: Vec<PathBuf> =
            git.variable("PATH").map(std::env::split_paths).into_iter().flatten().collect();
        let files = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].into_iter().filter_map(variable);
        needed.extend(files.map(Path::to_owned));
        needed.extend(variable("GIT_EXEC_PATH").map(Path::to_owned));
        needed.extend(named_files(settings, git.home()));
        // The keeper of filters.
        needed.push(git.liza.clone());

        let mut writable = self.writable.clone();
        let has_large_files =
            each_setting(settings).any(|(key, value)| key.starts_with(b"filter.") && is_large_files(value));
        if has_large_files {
            let folder = self.git.join(LARGE_FILES);
            // Without it, Git LFS reports the missing folder.
            let _ = std::fs::create_dir_all(&folder);
            writable.push(folder);
        }
        let around = GitSurroundings {
            root: &self.root,
            git: &self.git,
            program: &git.program,
            search_path: &paths,
            home: git.home(),
            settings: variable("XDG_CONFIG_HOME"),
            needed: &needed,
            writable: &writable,
        };
        let fetches = has_large_files && self.used_for == RoomUse::CheckingOut;
        let network = (!fetches).then(TcpGrants::default);
        let mut grants = git_grants(&around, &DiskLook);
        // As for sessions: paths that you name count, even among credentials.
        grants.read.extend(self.rules.readable.iter().cloned());
        grants.read.extend(worktrees::outside(&self.root));
        grants.write.extend(self.rules.writable.iter().cloned());
        Grants { network, max_abi: self.rules.max_abi, ..grants }
    }

    /// True if git runs unconfined: to fetch missing objects of a partial clone it needs your logins, and so
    /// does Git LFS. Without other filters a checkout runs nothing.
    pub fn is_left(&self, settings: &[u8]) -> bool {
        let is_filter = |(key, value): (&[u8], &[u8])| {
            let writes = key.ends_with(b".smudge") || key.ends_with(b".process");
            key.starts_with(b"filter.") && writes && !value.is_empty() && !is_large_files(value)
        };
        self.used_for == RoomUse::CheckingOut && !each_setting(settings).any(is_filter)
    }

    /// True if git writes files whose objects the repository may lack.
    pub(crate) fn is_partial(&self, settings: &[u8]) -> bool {
        let is_partial = |(key, _): (&[u8], &[u8])| {
            key == b"extensions.partialclone" || (key.starts_with(b"remote.") && key.ends_with(b".promisor"))
        };
        self.used_for == RoomUse::CheckingOut && each_setting(settings).any(is_partial)
    }
}

/// The files that settings name, and the folders of filters: git fails at an unreadable file of settings.
fn named_files(settings: &[u8], home: Option<&Path>) -> Vec<PathBuf> {
    let mut named = Vec::new();
    for (key, value) in each_setting(settings) {
        let is_file = matches!(key, b"core.excludesfile" | b"core.attributesfile" | b"include.path")
            || (key.starts_with(b"includeif.") && key.ends_with(b".path"));
        let is_filter = key.starts_with(b"filter.");
        let value =
            if is_filter { value.split(|byte| *byte == b' ').next().unwrap_or_default() } else { value };
        let path = Path::new(OsStr::from_bytes(value));
        let path = match (path.strip_prefix("~"), home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.to_owned(),
        };
        if path.is_absolute() && path.is_file() && (is_file || is_filter) {
            named.extend(path.parent().filter(|_| is_filter).map(Path::to_owned));
            named.push(path);
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-08
    #[test]
    fn files_that_settings_name_are_readable_wherever_they_are() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        for name in ["ignore", "more", "filter"] {
            std::fs::write(at(name), "").unwrap();
        }
        let settings = format!(
            "global\0core.excludesfile\n~/ignore\0global\0includeif.gitdir:~/x/.path\n{}\0\
             global\0filter.x.clean\n{} --clean\0global\0user.name\n~/more\0local\0include.path\n~/none\0",
            at("more").display(),
            at("filter").display()
        );
        let expected = [at("ignore"), at("more"), home.path().to_owned(), at("filter")];
        assert_eq!(named_files(settings.as_bytes(), Some(home.path())), expected);
    }
}

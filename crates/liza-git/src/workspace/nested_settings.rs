//! The settings of the repositories inside a worktree, after a session: submodules, and whatever an agent made.
//!
//! A person's git prompt in such a folder reads them, and git at the top starts itself in each submodule. So they are written anew,
//! from an allow-list of what is needed to read the repository; nothing of it names a program.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use liza_host::worktrees::WORKTREES;
use liza_sandbox::sys::untrusted::{EntryKind, UntrustedFolder};

use crate::diff::isolated::setting_lines;
use crate::program::error::GitError;
use crate::program::repo::Repo;
use crate::workspace::agent_repo::{linked_place, without_dots};
use crate::workspace::giant_files::remove_waiting;
use crate::workspace::unfinished::remove_unfinished;

/// The folder of Liza in a project.
pub(crate) const FOLDER: &str = ".liza";

const ACTION: &str = "restoring the settings of repositories inside a worktree";

/// Settings that stay: whole keys, and those with a middle part of their own.
const KEPT: [&str; 10] = [
    "core.repositoryformatversion",
    "core.bare",
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.worktree",
    "extensions.objectformat",
    "user.name",
    "user.email",
];
const KEPT_PARTS: [(&str, &[&str]); 3] =
    [("remote", &["url", "fetch"]), ("branch", &["remote", "merge"]), ("submodule", &["url", "active"])];

/// Settings that win over those of the person too, who may have a monitor for every repository.
const OURS: [(&str, &str); 3] =
    [("core.fsmonitor", "false"), ("core.hookspath", "/dev/null"), ("core.usereplacerefs", "false")];

const CONFIG_MAX: u64 = 1 << 20;

/// The deepest folder whose content is looked at. Each one above it is open meanwhile.
const DEEPEST: usize = 100;

impl Repo {
    /// Writes the settings of all repositories in `tree` but its own, wherever git would find one. Links to places of other
    /// sessions are removed: a repository could appear there at any time. What cannot be read or written stays as it is: git
    /// would fail there too. Fails if folders lie so deep that what is in them stays as it is.
    pub(crate) fn restore_nested(&self, tree: &Path) -> Result<(), GitError> {
        let Ok(root) = UntrustedFolder::open(tree) else { return Ok(()) };
        let walk = Walk { repo: self, tree, agents: AgentPlaces::around(self, tree) };
        let Some(left) = walk.restore(&root, Path::new(""), (DEEPEST, false)) else { return Ok(()) };
        let why =
            format!("it lies below {DEEPEST} folders, so git there is as the session left it: remove it");
        Err(GitError::io(ACTION, &tree.join(left), io::Error::other(why)))
    }

    /// `lies_inside` tells whether a place that the repository names is in the worktree.
    fn restore_git_folder(
        &self,
        folder: &UntrustedFolder,
        lies_inside: impl Fn(&OsStr) -> bool,
    ) -> io::Result<()> {
        let old = folder.read(Path::new("config"), CONFIG_MAX).unwrap_or_default();
        remove_unfinished(folder)?;
        for name in ["commondir", "config.worktree"] {
            folder.remove(Path::new(name))?;
        }
        if let Ok(info) = folder.folder(Path::new("info")) {
            info.remove(Path::new("grafts"))?;
        }
        let list = ["config", "--file", "-", "--no-includes", "--list", "-z"];
        let listed = self.command(ACTION).args(list).stdin(old).read().unwrap_or_default();
        let settings = listed.split(|byte| *byte == 0).filter_map(|setting| {
            let (key, value) = std::str::from_utf8(setting).ok()?.split_once('\n')?;
            // Git would write the repository's files there.
            let is_elsewhere = key == "core.worktree" && !lies_inside(OsStr::new(value));
            (is_kept(key) && !is_elsewhere).then(|| setting_lines((key, value)))
        });
        let text: String = settings.chain(OURS.map(setting_lines)).collect();
        folder.write(Path::new("config"), text.as_bytes())
    }
}

/// A walk through all folders of a worktree. Each is opened from the one above it, so that its depth costs nothing.
struct Walk<'a> {
    repo: &'a Repo,
    tree: &'a Path,
    agents: AgentPlaces<'a>,
}

impl Walk<'_> {
    /// Returns a folder that lies too deep. What a repository has of itself is files and folders: git would wait at a pipe.
    fn restore(
        &self,
        folder: &UntrustedFolder,
        path: &Path,
        (depth, is_git): (usize, bool),
    ) -> Option<PathBuf> {
        let entries = folder.entries().ok()?;
        let has = |wanted: &str| entries.iter().any(|(name, _)| name == wanted);
        let is_git = is_git || has("HEAD") && has("objects") && has("refs");
        if path != Path::new(".git") {
            let _ = restore_folder(self.repo, self.tree, path, (folder, &entries));
        }
        let mut left = None;
        for (name, kind) in &entries {
            match kind {
                EntryKind::Folder if depth == 0 => left = Some(path.join(name)),
                EntryKind::Folder => {
                    // It may have been removed above.
                    let Ok(inner) = folder.folder(Path::new(name)) else { continue };
                    left = self.restore(&inner, &path.join(name), (depth - 1, is_git)).or(left);
                }
                EntryKind::Other if is_git || self.agents.has_link(folder, path, name) => {
                    let _ = folder.remove(Path::new(name));
                }
                EntryKind::File | EntryKind::Other => {}
            }
        }
        left
    }
}

fn is_kept(key: &str) -> bool {
    let (section, name) = (key.split('.').next(), key.rsplit('.').next());
    let is_part = |(kept, names): &(&str, &[&str])| {
        section == Some(*kept) && name.is_some_and(|name| names.contains(&name))
    };
    KEPT.contains(&key) || KEPT_PARTS.iter().any(is_part)
}

fn restore_folder(
    repo: &Repo,
    tree: &Path,
    path: &Path,
    (folder, entries): (&UntrustedFolder, &[(OsString, EntryKind)]),
) -> io::Result<()> {
    let has = |wanted: &str| entries.iter().any(|(name, _)| name == wanted);
    let git = entries.iter().find(|(name, _)| name == ".git").map(|(_, kind)| *kind);
    let is_top = path.as_os_str().is_empty();
    remove_waiting(folder, entries)?;
    let leads_away = || git == Some(EntryKind::File) && !leads_inside(tree, path, folder);
    if !is_top && (git == Some(EntryKind::Other) || leads_away()) {
        folder.remove(Path::new(".git"))?;
    }
    if has("HEAD") && (has("objects") || has("commondir")) {
        repo.restore_git_folder(folder, |place| lies_in(tree, &tree.join(path).join(place)))?;
    }
    Ok(())
}

/// True if a `.git` file leads to a folder of the worktree.
fn leads_inside(tree: &Path, path: &Path, folder: &UntrustedFolder) -> bool {
    let Ok(text) = folder.read(Path::new(".git"), 4 << 10) else { return false };
    linked_place(&text).is_some_and(|place| lies_in(tree, &tree.join(path).join(place)))
}

fn lies_in(tree: &Path, place: &Path) -> bool {
    matches!((place.canonicalize(), tree.canonicalize()), (Ok(place), Ok(tree)) if place.starts_with(&tree))
}

/// Places outside of a worktree in which other sessions write: their caches and folders, and their worktrees.
struct AgentPlaces<'a> {
    tree: &'a Path,
    real: Option<PathBuf>,
    places: Vec<PathBuf>,
}

impl<'a> AgentPlaces<'a> {
    fn around(repo: &Repo, tree: &'a Path) -> Self {
        let named = [repo.root().join(FOLDER), repo.root().join(WORKTREES), repo.worktrees_folder()];
        let real = named.iter().filter_map(|place| place.canonicalize().ok());
        Self { tree, real: tree.canonicalize().ok(), places: real.chain(named.clone()).collect() }
    }

    /// True if that entry of a folder is a link to such a place, or through one. What lies behind a process differs for each
    /// program that follows the link.
    fn has_link(&self, folder: &UntrustedFolder, path: &Path, name: &OsStr) -> bool {
        let Ok(target) = folder.link(Path::new(name)) else { return false };
        let named = without_dots(&self.tree.join(path).join(target));
        if ["/proc", "/dev/fd"].iter().any(|place| named.starts_with(place)) {
            return true;
        }
        let real = named.ancestors().find_map(|above| above.canonicalize().ok());
        [Some(named), real].into_iter().flatten().any(|place| self.contains(&place))
    }

    fn contains(&self, place: &Path) -> bool {
        let is_own =
            place.starts_with(self.tree) || self.real.as_ref().is_some_and(|tree| place.starts_with(tree));
        !is_own && self.places.iter().any(|agents| place.starts_with(agents))
    }
}

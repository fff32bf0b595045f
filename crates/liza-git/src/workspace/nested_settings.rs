//! The settings of the repositories inside a worktree, after a session: submodules, and whatever an agent made.
//!
//! A person's git prompt in such a folder reads them, and git at the top starts itself in each submodule. So they are written anew,
//! from an allow-list of what is needed to read the repository; nothing of it names a program.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use liza_sandbox::sys::untrusted::{EntryKind, UntrustedFolder};

use crate::diff::isolated::setting_lines;
use crate::program::repo::Repo;

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
const OURS: [(&str, &str); 2] = [("core.fsmonitor", "false"), ("core.hookspath", "/dev/null")];

const CONFIG_MAX: u64 = 1 << 20;

impl Repo {
    /// Writes the settings of all repositories below `tree` but its own. What cannot be read or written stays as it is: git would
    /// fail there too.
    pub(crate) fn restore_nested(&self, tree: &Path) {
        let Ok(root) = UntrustedFolder::open(tree) else { return };
        let mut left = vec![PathBuf::new()];
        while let Some(path) = left.pop() {
            let Ok(folder) = root.folder(&path) else { continue };
            let Ok(entries) = folder.entries() else { continue };
            if !path.as_os_str().is_empty() {
                let _ = self.restore_folder(tree, &path, &folder, &entries);
            }
            let is_own = |name: &OsStr| path.as_os_str().is_empty() && name == ".git";
            for (name, _) in entries.iter().filter(|(_, kind)| *kind == EntryKind::Folder) {
                // The repositories of submodules.
                left.push(if is_own(name) { PathBuf::from(".git/modules") } else { path.join(name) });
            }
        }
    }

    fn restore_folder(
        &self,
        tree: &Path,
        path: &Path,
        folder: &UntrustedFolder,
        entries: &[(OsString, EntryKind)],
    ) -> io::Result<()> {
        let has = |wanted: &str| entries.iter().any(|(name, _)| name == wanted);
        let git = entries.iter().find(|(name, _)| name == ".git").map(|(_, kind)| *kind);
        let leads_inside = || leads_inside(tree, path, folder);
        if git == Some(EntryKind::Other) || git == Some(EntryKind::File) && !leads_inside() {
            folder.remove(Path::new(".git"))?;
        }
        if has("HEAD") && (has("objects") || has("commondir")) {
            self.restore_git_folder(folder)?;
        }
        Ok(())
    }

    fn restore_git_folder(&self, folder: &UntrustedFolder) -> io::Result<()> {
        let old = folder.read(Path::new("config"), CONFIG_MAX).unwrap_or_default();
        for name in ["commondir", "config.worktree"] {
            folder.remove(Path::new(name))?;
        }
        let list = ["config", "--file", "-", "--no-includes", "--list", "-z"];
        let listed = self.command(ACTION).args(list).stdin(old).read().unwrap_or_default();
        let settings = listed.split(|byte| *byte == 0).filter_map(|setting| {
            let (key, value) = std::str::from_utf8(setting).ok()?.split_once('\n')?;
            is_kept(key).then(|| setting_lines((key, value)))
        });
        let text: String = settings.chain(OURS.map(setting_lines)).collect();
        folder.write(Path::new("config"), text.as_bytes())
    }
}

fn is_kept(key: &str) -> bool {
    let (section, name) = (key.split('.').next(), key.rsplit('.').next());
    let is_part = |(kept, names): &(&str, &[&str])| {
        section == Some(*kept) && name.is_some_and(|name| names.contains(&name))
    };
    KEPT.contains(&key) || KEPT_PARTS.iter().any(is_part)
}

/// True if a `.git` file leads to a folder of the worktree.
fn leads_inside(tree: &Path, path: &Path, folder: &UntrustedFolder) -> bool {
    let Ok(text) = folder.read(Path::new(".git"), 4 << 10) else { return false };
    let Some(place) = text.strip_prefix(b"gitdir: ") else { return false };
    let place = tree.join(path).join(OsStr::from_bytes(place.trim_ascii()));
    matches!((place.canonicalize(), tree.canonicalize()), (Ok(place), Ok(tree)) if place.starts_with(&tree))
}

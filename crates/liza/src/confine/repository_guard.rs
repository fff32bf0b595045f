//! The parts of a checkout's `.git` that decide what git runs and where it looks: remembered before code under test runs, and
//! restored afterwards, so that the reviewer's next git is not changed by it.
//!
//! Not everything that git reads: a repository inside of the checkout remains as the code has left it.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// Files that are remembered, in every folder, and folders of which everything is.
const FILES: [&str; 4] = ["config", "config.worktree", "commondir", "gitdir"];
const FOLDERS: [&str; 2] = ["hooks", "info"];

/// Folders that contain only data.
const DATA: [&str; 3] = ["logs", "refs", "lfs"];

/// A longer file is not remembered, and removed if it is new.
const FILE_MAX: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Remembered {
    File { content: Vec<u8>, mode: u32 },
    Link(PathBuf),
}

/// What a repository had.
#[derive(Debug)]
pub(super) struct RepositoryGuard {
    git: PathBuf,
    parts: BTreeMap<PathBuf, Remembered>,
}

impl RepositoryGuard {
    /// Remembers the repository of the checkout around a folder; none if there is none.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
        let git = folder.ancestors().map(|above| above.join(".git")).find(is_folder)?;
        let found = found_in(&git);
        let parts = found.into_iter().filter_map(|path| Some((path.clone(), read(&path)?))).collect();
        Some(Self { git, parts })
    }

    /// Restores it; returns what had changed. What cannot be restored is returned too.
    pub(super) fn restore(&self) -> Vec<PathBuf> {
        let mut changed = Vec::new();
        for path in found_in(&self.git).into_iter().filter(|path| !self.parts.contains_key(path)) {
            let _ = remove(&path);
            changed.push(path);
        }
        for (path, part) in &self.parts {
            if read(path).as_ref() != Some(part) {
                let _ = self.write(path, part);
                changed.push(path.clone());
            }
        }
        changed
    }

    fn write(&self, path: &Path, part: &Remembered) -> io::Result<()> {
        let inside = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.git));
        // The code may have put a link there, which must not be followed.
        for folder in inside.collect::<Vec<_>>().into_iter().rev() {
            if !fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir()) {
                let _ = remove(folder);
                fs::create_dir(folder)?;
            }
        }
        let _ = remove(path);
        match part {
            Remembered::File { content, mode } => {
                io::Write::write_all(&mut fs::File::create_new(path)?, content)?;
                fs::set_permissions(path, Permissions::from_mode(*mode))
            }
            Remembered::Link(target) => symlink(target, path),
        }
    }
}

/// The files and links below a folder that matter.
fn found_in(git: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(git.to_owned(), false)];
    while let Some((folder, is_kept)) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let is = |names: &[&str]| names.iter().any(|known| name == *known);
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_kept = is_kept || is(&FOLDERS) || (!is_folder && is(&FILES));
            if is_folder && name == "objects" && !is_kept {
                folders.push((path.join("info"), true));
            } else if is_folder && (is_kept || !is(&DATA)) {
                folders.push((path, is_kept));
            } else if !is_folder && is_kept {
                found.push(path);
            }
        }
    }
    found
}

fn read(path: &Path) -> Option<Remembered> {
    let meta = fs::symlink_metadata(path).ok()?;
    if meta.is_symlink() {
        return fs::read_link(path).ok().map(Remembered::Link);
    }
    let is_small = meta.is_file() && meta.len() <= FILE_MAX;
    let content = is_small.then(|| fs::read(path).ok()).flatten()?;
    Some(Remembered::File { content, mode: meta.permissions().mode() & 0o7777 })
}

/// Removes whatever is there, without following a link.
fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-13
    #[test]
    fn what_code_under_test_changes_in_a_repository_is_restored() {
        let place = tempfile::tempdir().unwrap();
        let git = place.path().join(".git");
        let put = |name: &str, text: &str| {
            fs::create_dir_all(git.join(name).parent().unwrap()).unwrap();
            fs::write(git.join(name), text).unwrap();
        };
        let names =
            ["config", "info/exclude", "hooks/pre-commit", "modules/lib/config", "objects/info/alternates"];
        names.iter().for_each(|name| put(name, "ours"));
        put("refs/heads/hooks/x", "a branch");
        put("index", "data");
        let guard = RepositoryGuard::of(&place.path().join("src")).unwrap();
        assert_eq!(guard.restore(), Vec::<PathBuf>::new());

        put("config", "[core] fsmonitor = evil");
        put("info/attributes", "* filter=evil");
        put("modules/new/hooks/post-checkout", "evil");
        put("refs/heads/hooks/x", "another commit");
        put("index", "other data");
        fs::set_permissions(git.join("hooks/pre-commit"), Permissions::from_mode(0o777)).unwrap();
        fs::remove_file(git.join("modules/lib/config")).unwrap();
        // A link in place of a folder must not lead the repair elsewhere.
        let outside = place.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::remove_dir_all(git.join("objects/info")).unwrap();
        symlink(&outside, git.join("objects/info")).unwrap();
        let mut restored = guard.restore();
        restored.sort();
        let expected = [
            "config",
            "hooks/pre-commit",
            "info/attributes",
            "modules/lib/config",
            "modules/new/hooks/post-checkout",
            "objects/info/alternates",
        ];
        assert_eq!(restored, expected.map(|name| git.join(name)));
        for name in names {
            assert_eq!(fs::read_to_string(git.join(name)).unwrap(), "ours", "{name}");
        }
        assert!(!git.join("info/attributes").exists() && fs::read_dir(&outside).unwrap().next().is_none());
        assert_eq!(fs::read_to_string(git.join("index")).unwrap(), "other data");
        assert_eq!(guard.restore(), Vec::<PathBuf>::new());
        assert!(RepositoryGuard::of(Path::new("/proc")).is_none());
    }
}

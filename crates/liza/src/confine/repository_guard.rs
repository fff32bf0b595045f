//! The parts of a checkout's `.git` that decide what git runs and where it looks: remembered before code under test runs, and
//! restored afterwards, so that the reviewer's next git is not changed by it.
//!
//! Not everything that git reads: a repository inside of the checkout remains as the code has left it.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// Files that are remembered, in every folder, and folders of which everything is.
const FILES: [&str; 4] = ["config", "config.worktree", "commondir", "gitdir"];
const FOLDERS: [&str; 2] = ["hooks", "info"];

/// Folders that contain only data.
const DATA: [&str; 3] = ["logs", "refs", "lfs"];

/// The content of a longer file is not remembered.
const FILE_MAX: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Remembered {
    File {
        content: Vec<u8>,
        mode: u32,
    },
    Link(PathBuf),
    /// Too long, or not readable: only whether it changes is known. Its change time cannot be set back.
    Other {
        inode: u64,
        changed: (i64, i64),
    },
}

/// What a repository had.
#[derive(Debug)]
pub(super) struct RepositoryGuard {
    git: PathBuf,
    parts: BTreeMap<PathBuf, Remembered>,
}

impl RepositoryGuard {
    /// Remembers the repositories around a folder, up to the top of the session's checkout.
    pub(super) fn around(folder: &Path) -> Vec<Self> {
        let inside = folder.ancestors().take_while(|above| above.file_name() != Some(".worktrees".as_ref()));
        inside.map(|above| above.join(".git")).filter(|git| is_folder(git)).map(Self::of).collect()
    }

    fn of(git: PathBuf) -> Self {
        let found = found_in(&git);
        let parts = found.into_iter().filter_map(|path| Some((path.clone(), read(&path)?))).collect();
        Self { git, parts }
    }

    /// Restores it; returns what had changed. What cannot be restored is removed, and returned too.
    pub(super) fn restore(&self) -> Vec<PathBuf> {
        if !is_folder(&self.git) {
            // A link in its place would lead to another folder.
            let _ = remove(&self.git);
            return vec![self.git.clone()];
        }
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
            Remembered::Other { .. } => Ok(()),
        }
    }
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
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
            // A submodule can have any name.
            let is_module = folder.file_name() == Some("modules".as_ref());
            if is_folder && name == "objects" && !is_kept && !is_module {
                folders.push((path.join("info"), true));
            } else if is_folder && (is_kept || is_module || !is(&DATA)) {
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
    let other = Remembered::Other { inode: meta.ino(), changed: (meta.ctime(), meta.ctime_nsec()) };
    let mode = meta.permissions().mode() & 0o7777;
    let content = is_small.then(|| fs::read(path).ok()).flatten();
    Some(content.map_or(other, |content| Remembered::File { content, mode }))
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
        let (long, longer) = ("x".repeat(2 << 20), "y".repeat(2 << 20));
        put("hooks/long", &long);
        put("hooks/changed", &long);
        put("modules/logs/config", "ours");
        let [guard] = &RepositoryGuard::around(&place.path().join("src"))[..] else { panic!("one") };
        assert_eq!(guard.restore(), Vec::<PathBuf>::new());

        put("config", "[core] fsmonitor = evil");
        put("hooks/changed", &longer);
        put("modules/logs/config", "evil");
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
            "hooks/changed",
            "hooks/pre-commit",
            "info/attributes",
            "modules/lib/config",
            "modules/logs/config",
            "modules/new/hooks/post-checkout",
            "objects/info/alternates",
        ];
        assert_eq!(restored, expected.map(|name| git.join(name)));
        for name in names {
            assert_eq!(fs::read_to_string(git.join(name)).unwrap(), "ours", "{name}");
        }
        assert!(!git.join("info/attributes").exists() && fs::read_dir(&outside).unwrap().next().is_none());
        assert_eq!(fs::read_to_string(git.join("index")).unwrap(), "other data");
        assert!(!git.join("hooks/changed").exists(), "what it was is not known");
        assert_eq!(fs::read_to_string(git.join("hooks/long")).unwrap(), long);
        assert_eq!(guard.restore(), [git.join("hooks/changed")], "it is gone");
        assert!(RepositoryGuard::around(Path::new("/proc")).is_empty());
        fs::rename(&git, place.path().join("moved")).unwrap();
        fs::create_dir(outside.join("hooks")).unwrap();
        fs::write(outside.join("hooks/theirs"), "").unwrap();
        symlink(&outside, &git).unwrap();
        assert_eq!(guard.restore(), [git.as_path()]);
        assert!(outside.join("hooks/theirs").exists() && fs::symlink_metadata(&git).is_err());
    }
}

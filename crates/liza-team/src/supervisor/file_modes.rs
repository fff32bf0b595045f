//! The modes of Liza's own files and of the folders of the project's repository, which a session can change
//! although it cannot write them: compared and repaired. Landlock doesn't cover `chmod`. Modes that a person
//! has set before the session are kept.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Its files are compared, besides those in `.liza` itself.
const LOCKS: &str = "agent-locks";

/// Below `.git`: the folders whose own folders are compared too. Git never changes the mode of a folder.
const REPOSITORY: [&str; 3] = ["", "objects", "refs"];

/// The modes of `.liza` and its content, of the folder with the sockets, and of the folders of the repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileModes(BTreeMap<PathBuf, u32>);

impl FileModes {
    /// Unreadable ones are left out.
    pub(super) fn read(folder: &Path, sockets: &Path, git: &Path) -> Self {
        let entries = |folder: &Path| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<PathBuf>>()
        };
        let own = [folder, sockets].map(Path::to_owned).into_iter().chain(entries(folder));
        let own = own.chain(entries(&folder.join(LOCKS))).chain(entries(sockets));
        let folders = REPOSITORY.iter().flat_map(|name| entries(&git.join(name))).chain([git.to_owned()]);
        let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
        let paths = own.chain(folders.filter(is_folder));
        Self(
            paths.filter_map(|path| Some((mode_of(&path)?, path))).map(|(mode, path)| (path, mode)).collect(),
        )
    }

    /// Restores modes that let others in or lock Liza out; returns the paths. Folders come before their content.
    pub(super) fn repair(&self) -> Vec<PathBuf> {
        let was_repaired = |(path, old): (&PathBuf, &u32)| {
            let new = mode_of(path).filter(|new| is_worse(*old, *new))?;
            // A file that Liza has replaced meanwhile has a mode that is as good.
            fs::set_permissions(path, Permissions::from_mode(*old)).ok()?;
            (mode_of(path) != Some(new)).then(|| path.clone())
        };
        self.0.iter().filter_map(was_repaired).collect()
    }
}

/// `None` for a link.
fn mode_of(path: &Path) -> Option<u32> {
    let meta = fs::symlink_metadata(path).ok().filter(|meta| !meta.is_symlink())?;
    Some(meta.permissions().mode() & 0o7777)
}

/// True if others may do more than before, or the owner less.
fn is_worse(old: u32, new: u32) -> bool {
    let (owner, others) = (0o700, 0o7077);
    new & others & !old != 0 || old & owner & !new != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-16
    #[test]
    fn modes_that_open_or_lock_files_are_restored() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join(".liza");
        fs::create_dir_all(folder.join(LOCKS)).unwrap();
        let set =
            |name: &str, mode| fs::set_permissions(folder.join(name), Permissions::from_mode(mode)).unwrap();
        let get = |name: &str| mode_of(&folder.join(name)).unwrap();
        let files =
            [("state.yaml", 0o640), ("log.yaml", 0o600), ("notes", 0o644), ("agent-locks/coder-1", 0o600)];
        for (name, mode) in files {
            fs::write(folder.join(name), "").unwrap();
            set(name, mode);
        }
        set("", 0o700);
        let (sockets, git) = (place.path().join("sockets"), place.path().join(".git"));
        for made in [sockets.clone(), git.join("refs/heads"), git.join("objects/ab")] {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(git.join("packed-refs"), "").unwrap();
        fs::set_permissions(&sockets, Permissions::from_mode(0o700)).unwrap();
        let modes = FileModes::read(&folder, &sockets, &git);
        assert_eq!(modes.repair(), Vec::<PathBuf>::new());
        let locked = [git.clone(), git.join("objects"), git.join("objects/ab"), git.join("refs"), sockets];
        for path in locked.iter().rev() {
            fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
        }
        assert_eq!(modes.repair(), locked);
        fs::set_permissions(git.join("packed-refs"), Permissions::from_mode(0o666)).unwrap();
        assert_eq!(modes.repair(), Vec::<PathBuf>::new(), "git replaces its files");
        set("state.yaml", 0o666);
        set("agent-locks/coder-1", 0o604);
        set("log.yaml", 0o000);
        // Liza itself replaces files by private ones.
        set("notes", 0o600);
        set("", 0o711);
        let repaired = modes.repair();
        let expected = ["", "agent-locks/coder-1", "log.yaml", "state.yaml"];
        let expected = expected.map(|name| if name.is_empty() { folder.clone() } else { folder.join(name) });
        assert_eq!(repaired, expected);
        for (name, mode) in [("", 0o700), ("state.yaml", 0o640), ("log.yaml", 0o600), ("notes", 0o600)] {
            assert_eq!(get(name), mode, "{name}");
        }
    }
}

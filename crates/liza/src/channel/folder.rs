//! Where sockets are created: a private folder with a short path (the system limits it), outside of everything
//! that a session may write to.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use liza_store::private;
use rustix::fs::{FlockOperation, flock};

use super::secret::random_hex;

/// The longest path of the place for such a folder: systems allow 104 bytes for the path of a socket.
const PLACE_MAX: usize = 60;

const PREFIX: &str = "liza-channel-";
const NAME_LENGTH: usize = 16;

/// A folder for the sockets of one supervisor; removed with it.
#[derive(Debug)]
pub(crate) struct SocketFolder {
    path: PathBuf,
    /// Locked as long as the supervisor lives, which shows others that the folder is in use.
    _lock: File,
    sockets: AtomicU32,
}

impl SocketFolder {
    /// Creates one, and removes those of supervisors that were killed.
    ///
    /// # Errors
    /// When no folder for temporary files can be written.
    pub(crate) fn create(runtime: Option<&Path>, temporary: &Path) -> io::Result<Self> {
        let places = runtime.into_iter().chain([temporary, Path::new("/tmp")]);
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        for place in places.filter(|place| place.is_absolute() && place.as_os_str().len() <= PLACE_MAX) {
            remove_abandoned(place);
            match Self::create_in(place) {
                Ok(folder) => return Ok(folder),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn create_in(place: &Path) -> io::Result<Self> {
        let path = place.join(format!("{PREFIX}{}", random_hex(NAME_LENGTH / 2)?));
        private::create_new_folder(&path)?;
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        // Another supervisor may have taken it for an abandoned one before it was locked.
        fs::symlink_metadata(&path)?;
        Ok(Self { path, _lock: lock, sockets: AtomicU32::default() })
    }

    /// The path of a new socket.
    pub(super) fn next(&self) -> PathBuf {
        self.path.join(self.sockets.fetch_add(1, Ordering::Relaxed).to_string())
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes our own folders whose supervisor is gone.
fn remove_abandoned(place: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().is_some_and(|name| {
            let random = name.strip_prefix(PREFIX).unwrap_or_default();
            random.len() == NAME_LENGTH && random.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        let path = entry.path();
        let is_ours = || path.symlink_metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == own);
        if is_named && is_ours() && is_unlocked(&path) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn is_unlocked(path: &Path) -> bool {
    let folder = File::open(path);
    folder.is_ok_and(|folder| flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Covers: IS-02
    #[test]
    fn the_folder_is_private_short_and_removed() {
        let place = tempfile::tempdir().unwrap();
        let long = place.path().join("x".repeat(PLACE_MAX));
        fs::create_dir(&long).unwrap();
        let folder = SocketFolder::create(Some(&long), place.path()).unwrap();
        assert_eq!(folder.path.parent(), Some(place.path()));
        assert_eq!(fs::metadata(&folder.path).unwrap().permissions().mode() & 0o777, 0o700);
        assert_ne!(folder.next(), folder.next());
        let path = folder.path.clone();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn only_folders_of_supervisors_that_are_gone_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let (dead, other) =
            (place.path().join("liza-channel-0123456789abcdef"), place.path().join("liza-channel-x"));
        fs::create_dir(&dead).unwrap();
        fs::create_dir(&other).unwrap();
        let alive = SocketFolder::create(None, place.path()).unwrap();
        assert!(!dead.exists() && other.exists());
        let second = SocketFolder::create(None, place.path()).unwrap();
        assert!(alive.path.exists() && second.path.exists());
    }
}

//! A private folder for sockets with a short path (the system limits it), outside everything that a session
//! can write. Removed after use; the next process that needs one removes those of killed processes.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use liza_host::private;
use liza_host::random_text::random_hex;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, lstat, open};

/// The longest path of the place for such a folder: systems allow 104 bytes for the path of a socket.
const PLACE_MAX: usize = 60;

/// Every session can write there.
const SHARED_MEMORY: &str = "/dev/shm";

/// The number of attempts if another process removes the folder before it is locked.
const ATTEMPTS: u32 = 5;

const NAME_LENGTH: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketUse {
    Channel,
    /// To prove that a session cannot reach a socket.
    Probe,
}

impl SocketUse {
    fn prefix(self) -> &'static str {
        match self {
            SocketUse::Channel => "liza-channel-",
            SocketUse::Probe => "liza-probe-",
        }
    }
}

/// True for a socket in such a folder, of whatever process.
pub(crate) fn is_of_liza(socket: &Path) -> bool {
    let name = socket.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    [SocketUse::Channel, SocketUse::Probe].into_iter().any(|usage| name.starts_with(usage.prefix()))
}

/// Removed with its process.
#[derive(Debug)]
pub struct SocketFolder {
    path: PathBuf,
    /// Locked while the process lives, which shows others that the folder is in use.
    _lock: File,
    sockets: AtomicU32,
}

impl SocketFolder {
    /// Also removes the folders of killed processes.
    pub fn create(usage: SocketUse, runtime: Option<&Path>, temporary: &Path) -> io::Result<Self> {
        let places = runtime.into_iter().chain([temporary, Path::new("/tmp")]);
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        let is_usable = |place: &&Path| {
            let is_shared = place.starts_with(SHARED_MEMORY);
            place.is_absolute() && place.as_os_str().len() <= PLACE_MAX && !is_shared
        };
        for place in places.filter(is_usable) {
            remove_abandoned(usage, place, rustix::process::geteuid().as_raw());
            for _ in 0..ATTEMPTS {
                match Self::create_in(usage, place) {
                    Ok(folder) => return Ok(folder),
                    Err(error) => failed = error,
                }
            }
        }
        Err(failed)
    }

    fn create_in(usage: SocketUse, place: &Path) -> io::Result<Self> {
        let path = place.join(format!("{}{}", usage.prefix(), random_hex(NAME_LENGTH / 2)?));
        private::create_new_folder(&path)?;
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        // Another process may have removed it as abandoned before it was locked.
        if !is_folder_at(&lock, &path)? {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self { path, _lock: lock, sockets: AtomicU32::default() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn next(&self) -> PathBuf {
        self.path.join(self.sockets.fetch_add(1, Ordering::Relaxed).to_string())
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders of that user whose process is gone.
fn remove_abandoned(usage: SocketUse, place: &Path, user: u32) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().is_some_and(|name| {
            let random = name.strip_prefix(usage.prefix()).unwrap_or_default();
            random.len() == NAME_LENGTH && random.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        let path = entry.path();
        if is_named {
            if_abandoned(&path, user, || {
                let _ = fs::remove_dir_all(&path);
            });
        }
    }
}

/// Calls `remove` under the lock if the folder is abandoned: its creator must not lock it in between.
fn if_abandoned(path: &Path, user: u32, remove: impl FnOnce()) {
    if let Some(lock) = lock_abandoned(path, user) {
        remove();
        drop(lock);
    }
}

/// Locks a folder of that user, not a link to one, that no process has locked.
fn lock_abandoned(path: &Path, user: u32) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = open(path, flags, Mode::empty()).ok()?;
    if fstat(&folder).ok()?.st_uid != user {
        return None;
    }
    flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    is_folder_at(&folder, path).ok()?.then_some(folder)
}

/// True if the open folder is still the one at that path.
fn is_folder_at(folder: impl AsFd, path: &Path) -> io::Result<bool> {
    let (open, named) = (fstat(folder)?, lstat(path)?);
    Ok((open.st_dev, open.st_ino) == (named.st_dev, named.st_ino))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Covers: IS-02
    #[test]
    fn the_folder_is_private_short_and_removed() {
        let place = tempfile::tempdir().unwrap();
        let shared =
            SocketFolder::create(SocketUse::Channel, Some(Path::new("/dev/shm")), place.path()).unwrap();
        assert!(shared.path().starts_with(place.path()), "sessions write to /dev/shm");
        drop(shared);
        let long = place.path().join("x".repeat(PLACE_MAX));
        fs::create_dir(&long).unwrap();
        let folder = SocketFolder::create(SocketUse::Channel, Some(&long), place.path()).unwrap();
        assert_eq!(folder.path.parent(), Some(place.path()));
        assert_eq!(fs::metadata(&folder.path).unwrap().permissions().mode() & 0o777, 0o700);
        assert_ne!(folder.next(), folder.next());
        let path = folder.path.clone();
        drop(folder);
        assert!(!path.exists());
    }

    /// Covers: IS-02
    #[test]
    fn only_own_folders_of_processes_that_are_gone_are_removed() {
        for usage in [SocketUse::Channel, SocketUse::Probe] {
            let place = tempfile::tempdir().unwrap();
            let named = |end: &str| place.path().join(format!("{}{end}", usage.prefix()));
            let (dead, other, link) = (named("0123456789abcdef"), named("x"), named("00000000000000aa"));
            let target = place.path().join("target");
            for folder in [&dead, &other, &target] {
                fs::create_dir(folder).unwrap();
                fs::write(folder.join("0"), "").unwrap();
            }
            std::os::unix::fs::symlink(&target, &link).unwrap();
            remove_abandoned(usage, place.path(), rustix::process::geteuid().as_raw() + 1);
            assert!(dead.exists(), "it belongs to another user");
            let alive = SocketFolder::create(usage, None, place.path()).unwrap();
            assert!(!dead.exists());
            assert!(other.exists() && link.exists() && target.join("0").exists(), "not ours, or a link");
            let second = SocketFolder::create(usage, None, place.path()).unwrap();
            assert!(alive.path.exists() && second.path.exists());
        }
    }

    /// Covers: IS-02
    #[test]
    fn a_folder_is_locked_until_it_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("liza-probe-0123456789abcdef");
        fs::create_dir(&path).unwrap();
        let user = rustix::process::geteuid().as_raw();
        let lock = || flock(File::open(&path).unwrap(), FlockOperation::NonBlockingLockExclusive);
        let mut is_locked = None;
        if_abandoned(&path, user, || is_locked = Some(lock().is_err()));
        assert_eq!(is_locked, Some(true), "no other process can begin to use it");
        assert!(lock().is_ok(), "it is unlocked afterwards");
    }

    /// Covers: IS-02
    #[test]
    fn a_lock_counts_only_for_the_folder_that_is_at_the_path() {
        let place = tempfile::tempdir().unwrap();
        let (path, moved) = (place.path().join("a"), place.path().join("b"));
        fs::create_dir(&path).unwrap();
        let folder = File::open(&path).unwrap();
        assert!(is_folder_at(&folder, &path).unwrap());
        fs::rename(&path, &moved).unwrap();
        assert!(is_folder_at(&folder, &path).is_err());
        fs::create_dir(&path).unwrap();
        assert!(!is_folder_at(&folder, &path).unwrap());
    }
}

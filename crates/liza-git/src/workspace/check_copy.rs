//! The copy of a session's checkout in which `liza check` runs code under test: nothing that the code writes
//! reaches the checkout. Made with the rights of the session, from files that the session could read anyway.
//! A copy that is kept is brought up to date for the next check, so that builds are incremental.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, File, Metadata, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use liza_host::private;
use liza_sandbox::sys::remove_tree::remove_tree;
use liza_sandbox::sys::untrusted::{UntrustedFolder, take_rights};

/// The place of a repository that names the repositories whose objects it borrows.
const ALTERNATES: &str = ".git/objects/info/alternates";

/// The folder of the copy, beside the caches of code under test.
pub const CHECK_COPY: &str = "tree";

/// Takes the turn at a place of copies; `None` while another check has it. It ends with the value, or with its process.
pub fn take_turn(place: &Path) -> io::Result<Option<File>> {
    let folder = File::open(place)?;
    match folder.try_lock() {
        Ok(()) => Ok(Some(folder)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyLife {
    /// It starts from nothing and is removed on drop.
    OneRun,
    /// The next copy in its place starts from the ignored files that the code under test has left.
    Builds,
}

#[derive(Debug)]
pub struct CheckCopy {
    folder: PathBuf,
    life: CopyLife,
}

impl CheckCopy {
    /// Copies a checkout as it is, with its repository and what is not committed.
    pub fn of(checkout: &Path, folder: &Path, life: CopyLife) -> io::Result<Self> {
        if life == CopyLife::OneRun || !is_folder(folder) {
            remove_tree(folder)?;
        }
        private::create_folder(folder)?;
        let copy = Self { folder: folder.to_owned(), life };
        take_rights(&UntrustedFolder::open(folder)?);
        let mut mirror = Mirror { from: checkout, to: folder, doubtful: Vec::new() };
        mirror.copy_folder(Path::new(""))?;
        mirror.settle()?;
        borrow_objects(checkout, folder)?;
        Ok(copy)
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }
}

impl Drop for CheckCopy {
    fn drop(&mut self) {
        if self.life == CopyLife::OneRun {
            // The next one removes what is left.
            let _ = remove_tree(&self.folder);
        }
    }
}

struct Mirror<'a> {
    from: &'a Path,
    to: &'a Path,
    /// Entries of an earlier copy that stay if git ignores them: additions, and files that are newer.
    doubtful: Vec<PathBuf>,
}

impl Mirror<'_> {
    fn copy_folder(&mut self, at: &Path) -> io::Result<()> {
        let names: BTreeSet<OsString> =
            entries(&self.from.join(at))?.map(|entry| entry.file_name()).collect();
        let added = entries(&self.to.join(at))?.filter(|entry| !names.contains(&entry.file_name()));
        self.doubtful.extend(added.map(|entry| at.join(entry.file_name())));
        for name in names {
            self.copy_entry(&at.join(name))?;
        }
        Ok(())
    }

    fn copy_entry(&mut self, at: &Path) -> io::Result<()> {
        let (from, to) = (self.from.join(at), self.to.join(at));
        // A file that disappears meanwhile, such as a lock of git, is none of the copy.
        let Ok(meta) = fs::symlink_metadata(&from) else { return Ok(()) };
        let old = fs::symlink_metadata(&to).ok();
        if meta.is_dir() {
            if !old.is_some_and(|old| old.is_dir()) {
                remove_tree(&to)?;
                fs::create_dir(&to)?;
            }
            fs::set_permissions(&to, Permissions::from_mode(meta.permissions().mode() | 0o700))?;
            return self.copy_folder(at);
        }
        let old = old.filter(|old| old.file_type() == meta.file_type());
        if old.as_ref().is_some_and(|old| old.is_file() && is_same(&meta, old)) {
            return Ok(());
        }
        if old.is_some_and(|old| old.is_file() && is_newer(&old, &meta)) {
            self.doubtful.push(at.to_owned());
            return Ok(());
        }
        copy_file(&from, &meta, &to)
    }

    /// Decides about the doubtful entries with one call of git, in the checkout: the repository of an earlier
    /// copy may name programs of code under test.
    fn settle(&mut self) -> io::Result<()> {
        let doubtful = std::mem::take(&mut self.doubtful);
        let ignored = ignored(self.from, self.to, &doubtful);
        for at in doubtful.iter().filter(|at| !ignored.contains(*at)) {
            let (from, to) = (self.from.join(at), self.to.join(at));
            match fs::symlink_metadata(&from) {
                Ok(meta) => copy_file(&from, &meta, &to)?,
                Err(_) => remove_tree(&to)?,
            }
        }
        Ok(())
    }
}

fn entries(folder: &Path) -> io::Result<impl Iterator<Item = DirEntry> + use<>> {
    Ok(fs::read_dir(folder)?.flatten())
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    let facts = |meta: &Metadata| (meta.len(), meta.modified().ok(), meta.permissions().mode() & 0o777);
    facts(one) == facts(other)
}

fn is_newer(one: &Metadata, other: &Metadata) -> bool {
    matches!((one.modified(), other.modified()), (Ok(one), Ok(other)) if one > other)
}

/// Copies a file with its time, for build tools, or a link; sockets and the like are left out.
fn copy_file(from: &Path, meta: &Metadata, to: &Path) -> io::Result<()> {
    remove_tree(to)?;
    if meta.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if !meta.is_file() {
        return Ok(());
    }
    fs::copy(from, to)?;
    File::open(to)?.set_modified(meta.modified()?)
}

/// The paths that git ignores in a checkout; none if git cannot say.
fn ignored(checkout: &Path, copy: &Path, paths: &[PathBuf]) -> BTreeSet<PathBuf> {
    if paths.is_empty() {
        return BTreeSet::new();
    }
    let mut list = Vec::new();
    for path in paths {
        list.extend(path.as_os_str().as_bytes());
        // Many patterns mean folders only, and this one may not exist in the checkout.
        list.extend(if is_folder(&copy.join(path)) { &b"/\0"[..] } else { b"\0" });
    }
    let ask = || {
        let mut git = Command::new("git");
        git.args(["check-ignore", "-z", "--stdin"]).current_dir(checkout);
        let mut child = git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let writer = thread::spawn(move || input.write_all(&list));
        let output = child.wait_with_output()?;
        let _ = writer.join();
        Ok::<_, io::Error>(output.stdout)
    };
    let answer = ask().unwrap_or_default();
    let path = |name: &[u8]| PathBuf::from(OsStr::from_bytes(name.strip_suffix(b"/").unwrap_or(name)));
    answer.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(path).collect()
}

/// Names the repositories that the checkout borrows from by absolute paths: relative ones lead elsewhere from here.
fn borrow_objects(checkout: &Path, copy: &Path) -> io::Result<()> {
    let Ok(text) = fs::read(checkout.join(ALTERNATES)) else { return Ok(()) };
    let objects = checkout.join(".git/objects");
    let mut lines = Vec::new();
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let place = objects.join(OsStr::from_bytes(line));
        lines.extend(place.canonicalize().unwrap_or(place).into_os_string().as_bytes());
        lines.push(b'\n');
    }
    let target = copy.join(ALTERNATES);
    remove_tree(&target)?;
    fs::write(target, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            fs::create_dir(place.path("checkout")).unwrap();
            let git = Command::new("git").args(["init", "-q"]).current_dir(place.path("checkout")).status();
            assert!(git.unwrap().success());
            place.put("checkout/.gitignore", "target/\n*.cache\n");
            place.put("checkout/src/lib.rs", "code");
            place
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn put(&self, name: &str, text: &str) {
            fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
            fs::write(self.path(name), text).unwrap();
        }

        fn read(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.path(name)).ok()
        }

        fn copy(&self, life: CopyLife) -> CheckCopy {
            CheckCopy::of(&self.path("checkout"), &self.path("copy/tree"), life).unwrap()
        }
    }

    /// Covers: JU-08
    #[test]
    fn a_copy_for_one_run_starts_from_nothing_and_is_removed() {
        let place = Place::new();
        place.put("copy/tree/target/poisoned", "x");
        place.put("checkout/target/built", "by the set-up");
        symlink("src", place.path("checkout/link")).unwrap();
        place.put("checkout/.git/objects/info/alternates", "../../src\n");
        let copy = place.copy(CopyLife::OneRun);
        assert_eq!(place.read("copy/tree/target/poisoned"), None);
        assert_eq!(place.read("copy/tree/target/built").as_deref(), Some("by the set-up"));
        assert_eq!(place.read("copy/tree/link/lib.rs").as_deref(), Some("code"));
        let borrowed = format!("{}\n", place.path("checkout/src").canonicalize().unwrap().display());
        assert_eq!(place.read("copy/tree/.git/objects/info/alternates"), Some(borrowed));
        drop(copy);
        assert!(!place.path("copy/tree").exists());
    }

    /// Covers: JU-08
    #[test]
    fn a_kept_copy_has_the_files_of_the_checkout_and_what_builds_have_left() {
        let place = Place::new();
        place.put("checkout/target/of-both", "old");
        place.put("checkout/gone", "x");
        let time = |name: &str| fs::metadata(place.path(name)).unwrap().modified().unwrap();
        drop(place.copy(CopyLife::Builds));
        assert_eq!(time("checkout/src/lib.rs"), time("copy/tree/src/lib.rs"), "builds compare times");
        // The code under test changes the copy, and the coder its checkout.
        place.put("copy/tree/target/built", "new");
        place.put("copy/tree/target/of-both", "newer");
        place.put("copy/tree/a.cache", "new");
        place.put("copy/tree/src/lib.rs", "changed by a test");
        place.put("copy/tree/src/left.rs", "x");
        fs::set_permissions(place.path("copy/tree/src"), Permissions::from_mode(0o0)).unwrap();
        fs::remove_file(place.path("checkout/gone")).unwrap();
        fs::write(place.path("copy/tree/.git/config"), "[core]\n\tfsmonitor = ./evil\n").unwrap();
        symlink(place.path("checkout"), place.path("copy/tree/target/out")).unwrap();
        drop(place.copy(CopyLife::Builds));
        let read = |name: &str| place.read(&format!("copy/tree/{name}"));
        assert_eq!(read("target/built").as_deref(), Some("new"));
        assert_eq!(read("target/of-both").as_deref(), Some("newer"));
        assert_eq!(read("a.cache").as_deref(), Some("new"));
        assert_eq!(read("src/lib.rs").as_deref(), Some("code"));
        assert_eq!((read("src/left.rs"), read("gone")), (None, None));
        assert!(!read(".git/config").unwrap().contains("evil"));
        assert_eq!(place.read("checkout/src/lib.rs").as_deref(), Some("code"));
    }
}

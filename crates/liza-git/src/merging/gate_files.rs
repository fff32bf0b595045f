//! The protected files in the checkout of a test: written as git stores them, and watched while the test
//! runs. The tested code has the rights of the test, so a test that changes these files has not passed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use liza_sandbox::confine::{Placed, PlacedFiles};
use liza_sandbox::sys::remove_tree::remove_tree;
use liza_sandbox::sys::untrusted::UntrustedFolder;

use crate::diff::objects::ObjectQuery;
use crate::merging::protected::Protected;
use crate::program::error::GitError;
use crate::program::repo::Repo;

/// The coarsest step of file times: a later change has another time.
const TIME_STEP: Duration = Duration::from_millis(20);

/// The most mounts for it: the system has a limit, and each takes a few microseconds.
const SEALED_MAX: usize = 4000;

const ACTION: &str = "writing the files of the integration test";

#[derive(Debug, Default)]
pub(crate) struct GateFiles {
    checkout: PathBuf,
    marks: Vec<(PathBuf, Option<Mark>)>,
}

/// Changes with a file: its place on the disk, and its time of change, which no program can set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    device: u64,
    number: u64,
    changed: (i64, i64),
    size: u64,
}

impl Repo {
    /// Writes the protected files into a checkout as they are stored, despite filters and set-ups.
    pub(crate) fn lay_out(&self, checkout: &Path, protected: &Protected) -> Result<GateFiles, GitError> {
        let failed = |path: &Path| {
            let path = checkout.join(path);
            move |error: io::Error| GitError::io(ACTION, &path, error)
        };
        let folder = UntrustedFolder::open(checkout).map_err(failed(Path::new("")))?;
        let files: Vec<_> = protected.files().filter(|(_, entry, _)| !entry.is_submodule()).collect();
        let queries: Vec<ObjectQuery<'_>> =
            files.iter().map(|(_, entry, _)| ObjectQuery::Content(&entry.object)).collect();
        let objects = match queries.is_empty() {
            true => Vec::new(),
            false => self.command("reading protected files").read_objects(&queries)?,
        };
        for ((path, entry, _), object) in files.iter().zip(objects) {
            let content = object.map(|object| object.content).unwrap_or_default();
            put(&folder, checkout, path, &entry.mode, &content).map_err(failed(path))?;
        }
        let runs = files.iter().filter(|(_, _, runs)| *runs).map(|(path, ..)| *path);
        Ok(GateFiles::of(checkout, runs))
    }
}

/// Puts a file or a link in the place of whatever exists.
fn put(folder: &UntrustedFolder, checkout: &Path, path: &Path, mode: &str, content: &[u8]) -> io::Result<()> {
    folder.make_folder(path.parent().unwrap_or(Path::new("")))?;
    if folder.remove(path).is_err() {
        remove_tree(&checkout.join(path))?;
    }
    if mode == "120000" {
        return folder.new_link(path, std::ffi::OsStr::from_bytes(content));
    }
    let mut file = folder.new_file(path)?;
    file.write_all(content)?;
    let rights = if mode == "100755" { 0o755 } else { 0o644 };
    file.set_permissions(fs::Permissions::from_mode(rights))
}

impl GateFiles {
    /// Remembers the files and the folders above them, but not the checkout itself, where a test may make files.
    fn of<'p>(checkout: &Path, files: impl Iterator<Item = &'p Path>) -> Self {
        let paths: BTreeSet<&Path> =
            files.flat_map(Path::ancestors).filter(|path| !path.as_os_str().is_empty()).collect();
        let marks = paths.into_iter().map(|path| (path.to_owned(), mark(&checkout.join(path)))).collect();
        Self { checkout: checkout.to_owned(), marks }
    }

    /// Waits until a change would show.
    pub(crate) fn settle(&self) {
        if !self.marks.is_empty() {
            std::thread::sleep(TIME_STEP);
        }
    }

    /// What a room does so that none of them can be changed in it: a file that is read-only, in folders that stay. Links
    /// are not among them, so their marks decide. `shown` is where the room has the checkout.
    pub(crate) fn sealed(&self, shown: &Path) -> Vec<Placed> {
        let shown = if shown == self.checkout { self.checkout.canonicalize() } else { Ok(shown.to_owned()) };
        let Ok(shown) = shown else { return Vec::new() };
        let files = self.marks.iter().take(SEALED_MAX).filter_map(|(path, _)| {
            let at = shown.join(path);
            let kind = fs::symlink_metadata(self.checkout.join(path)).ok()?.file_type();
            let files = match () {
                () if kind.is_file() => PlacedFiles::Sealed,
                () if kind.is_dir() => PlacedFiles::Pinned,
                () => return None,
            };
            Some(Placed { at, files })
        });
        files.collect()
    }

    pub(crate) fn changed(&self) -> Vec<PathBuf> {
        let differs = |(path, before): &&(PathBuf, Option<Mark>)| mark(&self.checkout.join(path)) != *before;
        self.marks.iter().filter(differs).map(|(path, _)| path.clone()).collect()
    }
}

fn mark(path: &Path) -> Option<Mark> {
    let data = fs::symlink_metadata(path).ok()?;
    Some(Mark {
        device: data.dev(),
        number: data.ino(),
        changed: (data.ctime(), data.ctime_nsec()),
        size: data.size(),
    })
}

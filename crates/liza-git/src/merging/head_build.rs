//! The build of an integration head, kept on this machine, with which the validation of work begins. It only saves time: it
//! decides nothing, may be missing, and what a run of work writes is never in it.
//!
//! Build tools compare times. So it keeps the time that each file had when it was built; a file with another content gets a
//! new time, and is built again whatever it contained before.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use liza_host::durable::{self, Open};
use liza_host::private;
use liza_ids::Sha;
use liza_sandbox::confine::can_copy;
use liza_sandbox::sys::leftovers::temporary_name;
use liza_sandbox::sys::remove_tree::remove_tree;
use liza_sandbox::sys::untrusted::UntrustedFolder;
use serde::{Deserialize, Serialize};

use crate::merging::integration_test::ScratchCheckout;
use crate::program::repo::Repo;

/// The file that names the build that counts.
const CURRENT: &str = "current";
const PREFIX: &str = "build-";
const FILES: &str = "files";
const RECORD: &str = "record.json";
const LOCK: &str = "lock";

/// The most that is kept.
const BYTES_MAX: u64 = 20 << 30;
const ENTRIES_MAX: usize = 1_000_000;

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    head: Sha,
    /// The time at which it was kept, after everything in it was written.
    kept: Nanoseconds,
    /// The files from which it was built.
    sources: BTreeMap<String, Source>,
    /// What decides about all files: links, submodules and attributes.
    others: BTreeMap<String, String>,
}

type Nanoseconds = u64;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Source {
    /// Its mode and object.
    content: String,
    size: u64,
    time: Nanoseconds,
}

#[derive(Debug)]
pub struct HeadBuild {
    record: Record,
    files: PathBuf,
    /// Locked while it is used, so it is not removed.
    _lock: File,
}

impl HeadBuild {
    /// The build that counts; `None` if there is none, or it cannot be used.
    pub fn of(store: &Path) -> Option<Self> {
        let store = store.canonicalize().ok()?;
        let name = durable::read_text(&store.join(CURRENT)).ok()?;
        let is_name = Path::new(&name).components().map(|part| matches!(part, Component::Normal(_)));
        if !name.starts_with(PREFIX) || !is_name.eq([true]) {
            return None;
        }
        let folder = store.join(name);
        let lock = durable::open(Open::Read, &folder.join(LOCK)).ok()?;
        lock.try_lock_shared().ok()?;
        let record: Record = serde_json::from_slice(&durable::read_file(&folder.join(RECORD)).ok()?).ok()?;
        let files = folder.join(FILES);
        // If the clock was set back, changed files could look older than the build.
        let is_usable = can_copy(&files) && record.kept < nanoseconds(SystemTime::now())?;
        is_usable.then_some(Self { record, files, _lock: lock })
    }

    pub fn head(&self) -> &Sha {
        &self.record.head
    }

    pub fn files(&self) -> &Path {
        &self.files
    }

    /// Gives files of a new checkout the times that they had when they were built; `None` if it cannot begin with this build.
    pub fn give_times(&self, repo: &Repo, commit: &Sha, checkout: &Path) -> Option<()> {
        let files = repo.files_of(commit).ok()?;
        if others(&files) != self.record.others {
            return None;
        }
        let folder = UntrustedFolder::open(checkout).ok()?;
        for (name, source) in &self.record.sources {
            if files.get(Path::new(name)) != Some(&source.content) {
                continue;
            }
            let Ok(file) = folder.file(Path::new(name)) else { continue };
            if file.metadata().is_ok_and(|meta| meta.len() == source.size) {
                file.set_modified(UNIX_EPOCH + Duration::from_nanos(source.time)).ok()?;
            }
        }
        Some(())
    }
}

/// Files that decide about others: what a link leads to, and how git writes a file.
fn others(files: &BTreeMap<PathBuf, String>) -> BTreeMap<String, String> {
    let decides = |path: &Path, content: &str| {
        !content.starts_with("100") || path.file_name().is_some_and(|name| name == ".gitattributes")
    };
    let others = files.iter().filter(|(path, content)| decides(path, content));
    others.map(|(path, content)| (path.to_string_lossy().into_owned(), content.clone())).collect()
}

/// A checkout in which a judge has built a commit, at the place at which validations build.
#[derive(Debug)]
pub struct BuiltCheckout {
    checkout: ScratchCheckout,
    /// The files as they were before.
    marks: BTreeMap<PathBuf, Mark>,
}

/// Changes with a file: the time of change cannot be set back.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    number: u64,
    changed: (i64, i64),
    size: u64,
    time: Nanoseconds,
}

/// Marks the files of a checkout before anything is built in it.
pub struct Marks(BTreeMap<PathBuf, Mark>);

impl Marks {
    pub fn of(repo: &Repo, commit: &Sha, checkout: &Path) -> Option<Self> {
        let files = repo.files_of(commit).ok()?.into_keys();
        Some(Self(files.filter_map(|path| Some((path.clone(), mark(&checkout.join(path))?))).collect()))
    }

    pub fn built(self, checkout: ScratchCheckout) -> BuiltCheckout {
        BuiltCheckout { checkout, marks: self.0 }
    }
}

fn mark(file: &Path) -> Option<Mark> {
    let meta = fs::symlink_metadata(file).ok().filter(fs::Metadata::is_file)?;
    let (changed, time) = ((meta.ctime(), meta.ctime_nsec()), nanoseconds(meta.modified().ok()?)?);
    Some(Mark { number: meta.ino(), changed, size: meta.len(), time })
}

fn nanoseconds(time: SystemTime) -> Option<Nanoseconds> {
    time.duration_since(UNIX_EPOCH).ok()?.as_nanos().try_into().ok()
}

impl BuiltCheckout {
    /// True if there is something to keep.
    pub fn has_build(&self, repo: &Repo, commit: &Sha) -> bool {
        repo.build_folders(self.checkout.path(), commit).is_ok_and(|folders| !folders.is_empty())
    }

    /// Keeps what was built as the build of this head, which has the files of the checkout's commit and on which every run
    /// there has passed. Without it, validations take longer.
    pub fn keep(self, repo: &Repo, store: &Path, head: &Sha) {
        let _: Option<()> = self.try_to_keep(repo, store, head);
    }

    fn try_to_keep(&self, repo: &Repo, store: &Path, head: &Sha) -> Option<()> {
        let folders = repo.build_folders(self.checkout.path(), head).ok()?;
        if folders.is_empty() {
            return None;
        }
        let store = prepare(store).ok()?;
        let folder = store.join(temporary_name(PREFIX));
        private::create_new_folder(&folder).ok()?;
        let lock = durable::open(Open::New, &folder.join(LOCK)).ok()?;
        lock.try_lock_shared().ok()?;
        let kept = self.fill(repo, head, &folder, &folders);
        if kept.is_some() {
            let name = folder.file_name()?.to_str()?;
            durable::replace_private_file(&store.join(CURRENT), name.as_bytes()).ok()?;
        }
        drop(lock);
        remove_others(&store);
        kept
    }

    fn fill(&self, repo: &Repo, head: &Sha, folder: &Path, folders: &[PathBuf]) -> Option<()> {
        let files = folder.join(FILES);
        fs::create_dir(&files).ok()?;
        for build in folders {
            let place = files.join(build);
            fs::create_dir_all(place.parent()?).ok()?;
            // The folders above belong to Liza: no process of the run is left, and git lists no link.
            fs::rename(self.checkout.path().join(build), place).ok()?;
        }
        let kept = nanoseconds(SystemTime::now())?;
        Look { left: (ENTRIES_MAX, BYTES_MAX), before: kept }.at(&files).ok()?;
        let record = self.record(&repo.files_of(head).ok()?, head, kept);
        durable::replace_private_file(&folder.join(RECORD), &serde_json::to_vec(&record).ok()?).ok()
    }

    /// Files that the run has changed are not among the sources: nothing says when they were read.
    fn record(&self, files: &BTreeMap<PathBuf, String>, head: &Sha, kept: Nanoseconds) -> Record {
        let source = |(path, content): (&PathBuf, &String)| {
            let before = self.marks.get(path)?;
            let is_same = mark(&self.checkout.path().join(path)).as_ref() == Some(before);
            let source = Source { content: content.clone(), size: before.size, time: before.time };
            Some((path.to_str().filter(|_| is_same)?.to_owned(), source))
        };
        let sources = files.iter().filter_map(source).collect();
        Record { head: head.clone(), kept, sources, others: others(files) }
    }
}

fn prepare(store: &Path) -> io::Result<PathBuf> {
    private::create_folder(store)?;
    // The project's folder may give its files to another group, which a room does not know.
    std::os::unix::fs::chown(store, None, Some(rustix::process::getegid().as_raw()))?;
    fs::set_permissions(store, fs::Permissions::from_mode(0o700))?;
    store.canonicalize()
}

/// Removes what does not count any more, unless a run still uses it; then a later call does.
fn remove_others(store: &Path) {
    let current = durable::read_text(&store.join(CURRENT)).unwrap_or_default();
    for entry in fs::read_dir(store).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with(PREFIX) || name.to_str() == Some(&current) {
            continue;
        }
        let lock = durable::open(Open::Read, &entry.path().join(LOCK));
        // Without one, its process was killed.
        if lock.map_or(true, |lock| lock.try_lock().is_ok()) {
            let _ = remove_tree(&entry.path());
        }
    }
}

/// A look at everything that is kept: it is not too much, has only files, folders and links, and nothing in it is newer than
/// the moment at which it is kept, since changed files would look older.
struct Look {
    left: (usize, u64),
    before: Nanoseconds,
}

impl Look {
    fn at(&mut self, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let (entry, unusable) = (entry?, || io::Error::from(io::ErrorKind::Unsupported));
            let meta = fs::symlink_metadata(entry.path())?;
            let (entries, bytes) = self.left;
            let left = (entries.checked_sub(1), bytes.checked_sub(meta.blocks() * 512));
            self.left = left.0.zip(left.1).ok_or_else(unusable)?;
            let kind = meta.file_type();
            let is_old = meta.modified().ok().and_then(nanoseconds).is_some_and(|time| time <= self.before);
            match () {
                () if kind.is_symlink() => {}
                () if is_old && kind.is_dir() => self.at(&entry.path())?,
                () if is_old && kind.is_file() => {}
                () => return Err(unusable()),
            }
        }
        Ok(())
    }
}

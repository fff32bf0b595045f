//! A repository that an agent can write, read as plain files. Git is never started in it: its configuration,
//! links and hooks are the agent's. Its content is trusted only after the objects were checked (see `take`).

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use liza_ids::Sha;
use liza_sandbox::sys::untrusted::{EntryKind, UntrustedFolder};

use crate::program::error::GitError;
use crate::workspace::unfinished::{UNFINISHED_REFS, unfinished_commits};

/// The size of a small file, such as HEAD or a reference.
const SMALL: u64 = 4 << 10;
/// The size of a list of references or of an index.
const LARGE: u64 = 256 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHead {
    pub commit: Sha,
    /// `None` when HEAD is detached.
    pub branch: Option<String>,
}

#[derive(Debug)]
pub struct AgentRepo {
    path: PathBuf,
    folder: UntrustedFolder,
}

/// The place that a `.git` file names, exactly as git reads it: a blank at its end is a part of the name.
pub(crate) fn linked_place(text: &[u8]) -> Option<&OsStr> {
    let mut place = text.strip_prefix(b"gitdir: ")?;
    while let [rest @ .., b'\n' | b'\r'] = place {
        place = rest;
    }
    Some(OsStr::from_bytes(place))
}

impl AgentRepo {
    /// The repository whose files are in `tree`; `None` unless `.git` is a folder.
    pub fn of(tree: &Path) -> Option<Self> {
        let path = tree.join(".git");
        let folder = UntrustedFolder::open(tree).ok()?.folder(Path::new(".git")).ok()?;
        Some(Self { path, folder })
    }

    /// The repository at `path` in `tree`; `None` unless its git folder is below `place`, without links on
    /// the way. A `.git` file can name any folder of the machine.
    pub fn inside(tree: &Path, path: &Path, place: &Path) -> Option<Self> {
        let link = path.join(".git");
        let git_dir = match UntrustedFolder::open(tree).ok()?.read(&link, SMALL) {
            Ok(text) => without_dots(&tree.join(path).join(linked_place(&text)?)),
            Err(_) => tree.join(link),
        };
        let folder = UntrustedFolder::open(place).ok()?.folder(git_dir.strip_prefix(place).ok()?).ok()?;
        Some(Self { path: git_dir, folder })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn folder(&self) -> &UntrustedFolder {
        &self.folder
    }

    pub fn head(&self) -> Result<AgentHead, GitError> {
        let damaged = |why: &str| GitError::DamagedWorktree { path: self.path.clone(), why: why.to_owned() };
        let text = self.text("HEAD").ok_or_else(|| damaged("it has no readable HEAD"))?;
        let Some(name) = text.trim().strip_prefix("ref:").map(str::trim) else {
            let commit = text.trim().parse().ok().filter(Sha::is_full);
            return commit
                .map(|commit| AgentHead { commit, branch: None })
                .ok_or_else(|| damaged("its HEAD names no commit"));
        };
        let commit = self.reference(name).ok_or_else(|| damaged("its branch has no commit"))?;
        Ok(AgentHead { commit, branch: Some(name.to_owned()) })
    }

    /// The commit of a reference, which may be packed.
    fn reference(&self, name: &str) -> Option<Sha> {
        if !name.starts_with("refs/") {
            return None;
        }
        let full = |text: &str| text.trim().parse().ok().filter(Sha::is_full);
        if let Some(commit) = self.text(name).as_deref().and_then(full) {
            return Some(commit);
        }
        let packed = self.folder.read(Path::new("packed-refs"), LARGE).ok()?;
        let line = |line: &[u8]| {
            let (commit, found) = std::str::from_utf8(line).ok()?.split_once(' ')?;
            if found == name { full(commit) } else { None }
        };
        packed.split(|byte| *byte == b'\n').find_map(line)
    }

    pub fn branches(&self) -> Vec<Sha> {
        let mut commits = self.references("refs/heads");
        commits.extend(self.reference("refs/stash"));
        commits
    }

    pub(crate) fn remote_branches(&self) -> Vec<Sha> {
        self.references("refs/remotes")
    }

    /// The commits at which a shallow history ends.
    pub fn shallow(&self) -> Option<Vec<u8>> {
        self.folder.read(Path::new("shallow"), LARGE).ok()
    }

    /// The commits of all references below a folder of references.
    fn references(&self, below: &str) -> Vec<Sha> {
        let is_below = |name: &str| name.strip_prefix(below).is_some_and(|rest| rest.starts_with('/'));
        let packed = self.folder.read(Path::new("packed-refs"), LARGE).unwrap_or_default();
        let line = |line: &[u8]| {
            let (commit, name) = std::str::from_utf8(line).ok()?.split_once(' ')?;
            commit.parse().ok().filter(|_| is_below(name))
        };
        let mut commits: Vec<Sha> = packed.split(|byte| *byte == b'\n').filter_map(line).collect();
        if let Ok(loose) = self.folder.folder(Path::new(below)) {
            loose_refs(&loose, 0, &mut commits);
        }
        commits.retain(Sha::is_full);
        commits
    }

    /// Commits that an unfinished merge or rebase names, or one that a session had left.
    pub fn in_progress(&self) -> Vec<Sha> {
        let mut commits = unfinished_commits(&self.folder);
        commits.extend(self.references(UNFINISHED_REFS));
        commits
    }

    /// `None` if there is no usable one.
    pub fn index(&self) -> Option<Vec<u8>> {
        self.folder.read(Path::new("index"), LARGE).ok()
    }

    /// True if there is an index that git would read.
    pub(crate) fn has_index(&self) -> bool {
        let mut start = [0; 4];
        let read = self.folder.file(Path::new("index")).and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && start == *b"DIRC"
    }

    /// True if nothing was ever committed, staged or fetched in it.
    pub(crate) fn has_no_objects(&self) -> bool {
        let mut any = false;
        let found = self.each_object(&mut |_, _, _| {
            any = true;
            Ok(())
        });
        found.is_ok() && !any
    }

    /// Copies the files of its objects to another folder, except those that `known` has; true if there were
    /// any. Fails above `limit` bytes.
    pub(crate) fn copy_objects(&self, to: &Path, known: &Path, limit: u64) -> Result<bool, GitError> {
        let mut left = limit;
        let mut any = false;
        let copied = self.each_object(&mut |folder, name, parent| {
            let place = Path::new(folder).join(name);
            if known.join(&place).exists() {
                return Ok(());
            }
            any = true;
            let mut file = parent.file(Path::new(name))?;
            let length = file.metadata()?.len();
            left = left.checked_sub(length).ok_or(io::ErrorKind::FileTooLarge)?;
            std::fs::create_dir_all(to.join(folder))?;
            let mut copy = File::create_new(to.join(&place))?;
            io::copy(&mut Read::take(&mut file, length), &mut copy).map(drop)
        });
        match copied {
            Ok(()) => Ok(any),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let why = format!("its new objects are larger than {} MiB", limit >> 20);
                Err(GitError::DamagedWorktree { path: self.path.clone(), why })
            }
            Err(error) => Err(GitError::io("copying an agent's commits", &self.path, error)),
        }
    }

    /// Visits each file of its objects: `ab/cdef…` and packs with their indexes, and nothing else.
    fn each_object(
        &self,
        visit: &mut dyn FnMut(&OsStr, &OsStr, &UntrustedFolder) -> io::Result<()>,
    ) -> io::Result<()> {
        // A session may have deleted it.
        let Ok(objects) = self.folder.folder(Path::new("objects")) else { return Ok(()) };
        for (name, kind) in objects.entries()? {
            let is_wanted: fn(&str) -> bool = match name.to_str() {
                Some("pack") => |file| file.ends_with(".pack") || file.ends_with(".idx"),
                Some(prefix) if is_hex(prefix) && prefix.len() == 2 => |file| is_hex(file),
                Some(_) | None => continue,
            };
            if kind != EntryKind::Folder {
                continue;
            }
            let folder = objects.folder(Path::new(&name))?;
            for (file, _) in folder.entries()? {
                if file.to_str().is_some_and(is_wanted) {
                    visit(&name, &file, &folder)?;
                }
            }
        }
        Ok(())
    }

    fn text(&self, name: &str) -> Option<String> {
        String::from_utf8(self.folder.read(Path::new(name), SMALL).ok()?).ok()
    }
}

/// An absolute path without `.` and `..`, where no part of it is a link.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(clean.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(part),
        }
    }
    clean
}

/// The commits of all references in a folder, to a depth that no branch name has.
fn loose_refs(folder: &UntrustedFolder, depth: usize, commits: &mut Vec<Sha>) {
    for (name, kind) in folder.entries().unwrap_or_default() {
        match kind {
            EntryKind::Folder if depth < 16 => {
                if let Ok(inner) = folder.folder(Path::new(&name)) {
                    loose_refs(&inner, depth + 1, commits);
                }
            }
            EntryKind::File => {
                let text = folder.read(Path::new(&name), SMALL).unwrap_or_default();
                commits.extend(std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok()));
            }
            EntryKind::Folder | EntryKind::Other => {}
        }
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

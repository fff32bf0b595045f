//! A copy of some files of a worktree, from which git saves them. A session may still run meanwhile, and put
//! a link in the place of a folder at any moment. Git would follow it and save files that the session itself
//! must not read. Here no link is followed.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use liza_sandbox::sys::untrusted::UntrustedFolder;
use rustix::fs::seek;
use rustix::io::Errno;

use crate::program::error::GitError;
use crate::program::leftovers::{TemporaryFolder, VIEW};
use crate::program::repo::{Repo, path};

/// Deleted on drop.
pub(crate) struct StagedCopy {
    folder: TemporaryFolder,
    /// The rest no longer exists.
    pub copied: Vec<PathBuf>,
    pub unreadable: Vec<PathBuf>,
    /// Huge files with almost nothing in them: git would read their emptiness for hours.
    pub hollow: Vec<PathBuf>,
}

impl StagedCopy {
    /// Copies files and links of at most `limit` bytes each.
    pub(crate) fn of(
        repo: &Repo,
        files: &UntrustedFolder,
        paths: &[PathBuf],
        limit: u64,
    ) -> Result<Self, GitError> {
        let folder = TemporaryFolder::name_in(repo.common_dir(), VIEW);
        let create = || fs::create_dir(folder.path()).and_then(|()| UntrustedFolder::open(folder.path()));
        let to = create().map_err(|error| GitError::io("saving files", folder.path(), error))?;
        let mut copy = Self { folder, copied: Vec::new(), unreadable: Vec::new(), hollow: Vec::new() };
        for path in paths {
            match copy_one(files, &to, path, limit) {
                Ok(()) => copy.copied.push(path.clone()),
                Err(CopyError::Gone) => {}
                Err(CopyError::Unreadable) => copy.unreadable.push(path.clone()),
                Err(CopyError::Hollow) => copy.hollow.push(path.clone()),
                Err(CopyError::Here(error)) => {
                    return Err(GitError::io("saving files", &copy.folder().join(path), error));
                }
            }
        }
        Ok(copy)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

enum CopyError {
    /// There is no such file, or a link is on the way to it: git lists no path behind a link.
    Gone,
    /// It cannot be read, or is too large.
    Unreadable,
    Hollow,
    /// The copy cannot be written.
    Here(io::Error),
}

fn copy_one(files: &UntrustedFolder, to: &UntrustedFolder, path: &Path, limit: u64) -> Result<(), CopyError> {
    match files.link(path) {
        Ok(target) => return to.new_link(path, &target).map_err(write_error),
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {}
        Err(error) => return Err(read_error(&error)),
    }
    let from = files.file(path).map_err(|error| read_error(&error))?;
    let meta = from.metadata().map_err(|error| read_error(&error))?;
    if meta.len() > limit {
        return Err(CopyError::Unreadable);
    }
    if is_hollow(meta.len(), meta.blocks().saturating_mul(512)) {
        return Err(CopyError::Hollow);
    }
    let copy = to.new_file(path).map_err(write_error)?;
    copy_data(&from, &copy, meta.len()).map_err(CopyError::Here)?;
    let mode = if meta.permissions().mode() & 0o111 == 0 { 0o600 } else { 0o700 };
    copy.set_permissions(Permissions::from_mode(mode)).map_err(CopyError::Here)
}

/// True if a file of that length uses so little of the disk that it is huge only in name.
fn is_hollow(length: u64, used: u64) -> bool {
    length > 1 << 30 && used < 1 << 20
}

/// Copies `length` bytes; a hole, which may be larger than the disk, stays a hole.
fn copy_data(from: &File, to: &File, length: u64) -> io::Result<()> {
    to.set_len(length)?;
    let mut at = 0;
    while at < length {
        let data = match seek(from, rustix::fs::SeekFrom::Data(at)) {
            // No data up to the end.
            Err(Errno::NXIO) => return Ok(()),
            // The file system doesn't know holes.
            Err(_) => at,
            Ok(data) => data,
        };
        let hole = seek(from, rustix::fs::SeekFrom::Hole(data)).unwrap_or(length).min(length);
        let (mut source, mut target) = (from, to);
        source.seek(SeekFrom::Start(data))?;
        target.seek(SeekFrom::Start(data))?;
        io::copy(&mut source.take(hole.saturating_sub(data)), &mut target)?;
        at = hole.max(data + 1);
    }
    Ok(())
}

/// A copied file is in the place of a folder above it, or in its own: the files changed meanwhile.
fn write_error(error: io::Error) -> CopyError {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::EXIST | Errno::LOOP | Errno::NOTDIR | Errno::ISDIR) => CopyError::Gone,
        _ => CopyError::Here(error),
    }
}

fn read_error(error: &io::Error) -> CopyError {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::ISDIR) => CopyError::Gone,
        // A pipe or a socket has no content.
        None if error.kind() == io::ErrorKind::InvalidData => CopyError::Gone,
        _ => CopyError::Unreadable,
    }
}

/// The files in the output of `git ls-files -z`, without repositories, which it lists as folders.
pub(crate) fn listed_files(output: &[u8]) -> Vec<PathBuf> {
    let names = output.split(|byte| *byte == 0).filter(|name| !name.is_empty() && !name.ends_with(b"/"));
    let mut files: Vec<PathBuf> = names.map(path).collect();
    files.dedup();
    files
}

/// Paths as git reads them with `-z`.
pub(crate) fn nul_list(paths: &[PathBuf]) -> Vec<u8> {
    let names: Vec<&[u8]> = paths.iter().map(|path| path.as_os_str().as_bytes()).collect();
    names.join(&b"\0"[..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::command::Git;
    use std::os::unix::fs::symlink;

    /// Covers: IS-08, IS-14
    #[test]
    fn a_folder_that_became_a_link_after_it_was_listed_adds_nothing() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("project");
        Git::new().command("init", home.path()).args(["init", "-q", "project"]).check().unwrap();
        let repo = Repo::open(&Git::new(), &project).unwrap();
        let tree = home.path().join("tree");
        for folder in ["keys", "tree/deep"] {
            fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        fs::write(home.path().join("keys/id"), "secret").unwrap();
        symlink("../keys", tree.join("u")).unwrap();
        symlink("../keys/id", tree.join("link")).unwrap();
        fs::write(tree.join("deep/text"), "text").unwrap();
        fs::write(tree.join("run"), "run").unwrap();
        fs::set_permissions(tree.join("run"), Permissions::from_mode(0o755)).unwrap();
        // A path below a link that was copied before must not lead out of the copy either.
        let listed = ["u", "u/id", "u/deep/new", "link", "deep/text", "run", "gone", "deep"];
        let listed = listed.map(PathBuf::from).to_vec();
        let files = UntrustedFolder::open(&tree).unwrap();
        let copy = StagedCopy::of(&repo, &files, &listed, 4).unwrap();
        assert_eq!(copy.copied, ["u", "link", "deep/text", "run"].map(PathBuf::from));
        assert_eq!(fs::read_dir(home.path().join("keys")).unwrap().count(), 1);
        assert_eq!(copy.unreadable, [] as [PathBuf; 0]);
        let at = |name: &str| copy.folder().join(name);
        assert_eq!(fs::read_link(at("link")).unwrap(), Path::new("../keys/id"));
        assert_eq!(fs::read_to_string(at("deep/text")).unwrap(), "text");
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("run"), mode("deep/text")), (0o700, 0o600));
        let short = StagedCopy::of(&repo, &files, &["deep/text".into()], 3).unwrap();
        assert_eq!(short.unreadable, [PathBuf::from("deep/text")]);
        let folder = copy.folder().to_owned();
        drop(copy);
        assert!(!folder.exists());
    }
}

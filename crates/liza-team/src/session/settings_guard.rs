//! Files from which agent programs take settings or instructions, in a checkout in which an agent's code
//! runs: additions are removed, changes restored. Looks for the names itself: git lists neither files in an
//! ignored folder nor those in one that it cannot read.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use liza_sandbox::sys::remove_tree::remove_tree;
use liza_sandbox::sys::untrusted::{EntryKind, UntrustedFolder};

/// Agent programs are not started below this depth.
const DEEPEST: usize = 200;

/// The content of a longer file is not remembered.
const FILE_MAX: u64 = 1 << 20;

#[derive(Debug)]
pub struct SettingsGuard<F> {
    checkout: PathBuf,
    is_setting: F,
    files: BTreeMap<PathBuf, FileGuard>,
}

impl<F: Fn(&Path) -> bool> SettingsGuard<F> {
    /// Remembers the paths that `is_setting`.
    pub fn of(checkout: &Path, is_setting: F) -> io::Result<Self> {
        let found = found_in(checkout, &is_setting)?.into_iter();
        let files = found.map(|path| (path.clone(), FileGuard::of(checkout.join(path)))).collect();
        Ok(Self { checkout: checkout.to_owned(), is_setting, files })
    }

    /// Removes additions, unless they `may_stay`, and restores the rest. Returns the changed relative paths.
    pub fn restore(&self, may_stay: impl Fn(&Path) -> bool) -> io::Result<Vec<PathBuf>> {
        let is_added = |path: &PathBuf| !self.files.contains_key(path) && !may_stay(path);
        let mut added = found_in(&self.checkout, &self.is_setting)?.into_iter().filter(is_added);
        added.try_for_each(|path| remove_tree(&self.checkout.join(path)))?;
        let top = UntrustedFolder::open(&self.checkout)?;
        let mut changed = Vec::new();
        for (path, file) in &self.files {
            // A link in the place of a folder above must not lead elsewhere.
            top.make_folder(path.parent().unwrap_or(Path::new("")))?;
            if file.restore()? {
                changed.push(path.clone());
            }
        }
        Ok(changed)
    }
}

fn found_in(checkout: &Path, is_setting: &impl Fn(&Path) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut keep = |path: PathBuf| {
        if is_setting(&path) {
            found.push(path);
        }
    };
    look(&UntrustedFolder::open(checkout)?, Path::new(""), DEEPEST, &mut keep)?;
    Ok(found)
}

fn look(folder: &UntrustedFolder, at: &Path, depth: usize, keep: &mut impl FnMut(PathBuf)) -> io::Result<()> {
    for (name, kind) in folder.entries()? {
        let path = at.join(&name);
        match kind {
            EntryKind::Folder if name.eq_ignore_ascii_case(".git") || depth == 0 => {}
            EntryKind::Folder => look(&folder.folder(Path::new(&name))?, &path, depth - 1, keep)?,
            EntryKind::File | EntryKind::Other => keep(path),
        }
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Remembered {
    File {
        content: Vec<u8>,
        mode: u32,
    },
    Link(PathBuf),
    /// Too long or not readable: only a change is noticed. Its change time cannot be set back.
    Other {
        inode: u64,
        changed: (i64, i64),
    },
}

#[derive(Debug)]
struct FileGuard {
    path: PathBuf,
    part: Option<Remembered>,
}

impl FileGuard {
    fn of(path: PathBuf) -> Self {
        Self { part: read(&path), path }
    }

    /// Restores the file or removes it; true if it had changed.
    fn restore(&self) -> io::Result<bool> {
        if read(&self.path) == self.part {
            return Ok(false);
        }
        remove_tree(&self.path)?;
        self.part.as_ref().map_or(Ok(()), |part| write_part(&self.path, part)).map(|()| true)
    }
}

fn write_part(path: &Path, part: &Remembered) -> io::Result<()> {
    match part {
        Remembered::File { content, mode } => {
            io::Write::write_all(&mut fs::File::create_new(path)?, content)?;
            fs::set_permissions(path, Permissions::from_mode(*mode))
        }
        Remembered::Link(target) => symlink(target, path),
        Remembered::Other { .. } => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-15
    #[test]
    fn settings_are_restored_also_in_ignored_folders_and_behind_links() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("checkout");
        let put = |name: &str, text: &str| {
            fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
            fs::write(top.join(name), text).unwrap();
        };
        put(".claude/settings.json", "ours");
        put(".codex/config.toml", "ours");
        put("src/lib.rs", "code");
        let is_setting = |path: &Path| {
            let named = |part: &std::ffi::OsStr| {
                [".claude", ".codex", ".mcp.json", ".env"].iter().any(|name| part == *name)
            };
            path.iter().any(named)
        };
        let guard = SettingsGuard::of(&top, is_setting).unwrap();
        assert_eq!(guard.restore(|_| false).unwrap(), Vec::<PathBuf>::new());

        put("node_modules/x/.claude/settings.json", "evil");
        put(".mcp.json", "evil");
        put("src/lib.rs", "other code");
        put(".codex/config.toml", "evil");
        // The same text, and then another one.
        put("elsewhere/settings.json", "ours");
        fs::remove_dir_all(top.join(".claude")).unwrap();
        symlink("elsewhere", top.join(".claude")).unwrap();
        let changed = [".claude/settings.json", ".codex/config.toml"].map(PathBuf::from);
        put(".env", "made");
        let is_env = |path: &Path| path == Path::new(".env");
        assert_eq!(guard.restore(is_env).unwrap(), changed);
        let read = |name: &str| fs::read_to_string(top.join(name)).ok();
        assert_eq!(read("node_modules/x/.claude/settings.json"), None);
        assert_eq!((read(".mcp.json"), read(".env").as_deref()), (None, Some("made")));
        assert!(!top.join(".claude").is_symlink());
        assert_eq!(read(".claude/settings.json").as_deref(), Some("ours"));
        assert_eq!(read(".codex/config.toml").as_deref(), Some("ours"));
        assert_eq!(read("src/lib.rs").as_deref(), Some("other code"));
    }
}

//! Restores a checkout's `.git` after code under test ran in it, so that the session's next git behaves as
//! before. In a code reviewer's session everything is restored: nobody else writes there. A coder may commit
//! during its tests, so there it is only the settings that decide which programs git runs and where it looks.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use liza_sandbox::sys::remove_tree::remove_tree;

/// Remembered files, in every folder, and folders that are remembered completely.
const FILES: [&str; 4] = ["config", "config.worktree", "commondir", "gitdir"];
const FOLDERS: [&str; 2] = ["hooks", "info"];

/// Folders that contain only data.
const DATA: [&str; 3] = ["logs", "refs", "lfs"];

/// The content of a longer file is not remembered.
const FILE_MAX: u64 = 1 << 20;
/// The same for a large project's index and all other files.
const EVERY_FILE_MAX: u64 = 64 << 20;

/// Files that a concurrent git writes, and those without influence.
const VOLATILE: [&str; 5] = ["index", "FETCH_HEAD", "ORIG_HEAD", "COMMIT_EDITMSG", "logs"];

/// The number of checks of a restored repository while a git of the session runs.
const TRIES: u32 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardExtent {
    /// The settings that decide which programs git runs and where it looks.
    Settings,
    /// Everything, also in the repositories of submodules.
    Everything,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Remembered {
    File {
        content: Vec<u8>,
        mode: u32,
    },
    Link(PathBuf),
    /// Too long, an object, or not readable: only a change is noticed. Its change time cannot be set back.
    Other {
        inode: u64,
        changed: (i64, i64),
    },
}

#[derive(Debug)]
pub struct RepositoryGuard {
    pub git: PathBuf,
    extent: GuardExtent,
    /// Without the folder, the entry in its place, if any.
    place: Option<Option<Remembered>>,
    parts: BTreeMap<PathBuf, Remembered>,
}

impl RepositoryGuard {
    /// Remembers the repositories around a folder, up to the top of the session's checkout.
    pub fn around(folder: &Path, extent: GuardExtent) -> Vec<Self> {
        let inside = folder.ancestors().take_while(|above| above.file_name() != Some(".worktrees".as_ref()));
        let gits: Vec<PathBuf> =
            inside.map(|above| above.join(".git")).filter(|git| is_folder(git)).collect();
        let submodules = match (extent, gits.last().and_then(|git| git.parent())) {
            (GuardExtent::Everything, Some(top)) => submodules_of(top),
            (GuardExtent::Everything, None) | (GuardExtent::Settings, _) => Vec::new(),
        };
        gits.into_iter().chain(submodules).map(|git| Self::of(git, extent)).collect()
    }

    fn of(git: PathBuf, extent: GuardExtent) -> Self {
        if !is_folder(&git) {
            let place = Some(read(&git, EVERY_FILE_MAX));
            return Self { git, extent, place, parts: BTreeMap::new() };
        }
        let mut guard = Self { git, extent, place: None, parts: BTreeMap::new() };
        guard.parts = guard.now();
        guard
    }

    fn now(&self) -> BTreeMap<PathBuf, Remembered> {
        let found = found_in(&self.git, self.extent).into_iter();
        found.filter_map(|path| Some((path.clone(), self.read(&path)?))).collect()
    }

    fn read(&self, path: &Path) -> Option<Remembered> {
        let below = path.strip_prefix(&self.git).unwrap_or(path);
        let has = |name: &str| below.iter().any(|part| part == name);
        let is_object = has("lfs") || (has("objects") && !has("info"));
        match self.extent {
            GuardExtent::Settings => read(path, FILE_MAX),
            GuardExtent::Everything if is_object => read(path, 0),
            GuardExtent::Everything => read(path, EVERY_FILE_MAX),
        }
    }

    /// Restores the repository; returns the changed paths. Unrestorable files are removed, and returned too.
    pub fn restore(&self) -> io::Result<Vec<PathBuf>> {
        let restored = match &self.place {
            Some(place) => self.restore_place(place.as_ref()),
            None => self.restore_folder(),
        };
        if restored.is_err() && (self.extent == GuardExtent::Everything || !self.is_restored()) {
            let _ = remove_tree(&self.git);
        }
        let failed = |error| io::Error::other(format!("cannot restore {}: {error}", self.git.display()));
        restored.map_err(failed)
    }

    fn restore_folder(&self) -> io::Result<Vec<PathBuf>> {
        let mut changed = Vec::new();
        if !is_folder(&self.git) {
            // A link in its place would lead to another folder; without any, git would find the repository of the person.
            remove_tree(&self.git)?;
            fs::create_dir(&self.git)?;
            changed.push(self.git.clone());
        }
        open_folders(&self.git);
        let mut done = self.restore_parts(&mut changed);
        for _ in 1..TRIES {
            if done.is_ok() && (changed.is_empty() || self.is_restored()) {
                return Ok(changed);
            }
            // A git of the session may run at the same time.
            thread::sleep(Duration::from_millis(50));
            done = self.restore_parts(&mut changed);
        }
        done?;
        if self.is_restored() { Ok(changed) } else { Err(io::Error::other("it changes again and again")) }
    }

    fn restore_parts(&self, changed: &mut Vec<PathBuf>) -> io::Result<()> {
        let mut done = Ok(());
        for path in found_in(&self.git, self.extent).into_iter().filter(|path| !self.parts.contains_key(path))
        {
            done = done.and(remove_tree(&path));
            changed.push(path);
        }
        for (path, part) in &self.parts {
            if self.read(path).as_ref() != Some(part) {
                done = done.and(self.write(path, part));
                changed.push(path.clone());
            }
        }
        // Git takes an empty folder for a submodule that it has already.
        remove_empty(&self.git.join("modules"));
        done
    }

    /// Ignores missing files, which could not be kept.
    fn is_restored(&self) -> bool {
        let decides = |path: &Path| {
            let below = path.strip_prefix(&self.git).unwrap_or(path);
            let is_lock = below.extension().is_some_and(|extension| extension == "lock");
            !is_lock && !below.iter().any(|part| VOLATILE.iter().any(|name| part == *name))
        };
        let now = self.now();
        now.iter().filter(|(path, _)| decides(path)).all(|(path, part)| self.parts.get(path) == Some(part))
    }

    /// Restores the entry in the place of a missing folder, which decides where git looks.
    fn restore_place(&self, old: Option<&Remembered>) -> io::Result<Vec<PathBuf>> {
        if read(&self.git, EVERY_FILE_MAX).as_ref() == old && !is_folder(&self.git) {
            return Ok(Vec::new());
        }
        remove_tree(&self.git)?;
        old.map_or(Ok(()), |part| write_part(&self.git, part))?;
        Ok(vec![self.git.clone()])
    }

    fn write(&self, path: &Path, part: &Remembered) -> io::Result<()> {
        let inside = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.git));
        // The code may have put a link there, which must not be followed.
        for folder in inside.collect::<Vec<_>>().into_iter().rev() {
            if !is_folder(folder) {
                remove_tree(folder)?;
                fs::create_dir(folder)?;
            }
        }
        remove_tree(path)?;
        write_part(path, part)
    }
}

#[derive(Debug)]
pub struct FileGuard {
    path: PathBuf,
    part: Option<Remembered>,
}

impl FileGuard {
    pub fn of(path: PathBuf) -> Self {
        Self { part: read(&path, FILE_MAX), path }
    }

    /// Restores the file or removes it; true if it had changed.
    pub fn restore(&self) -> io::Result<bool> {
        if read(&self.path, FILE_MAX) == self.part {
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

/// The folders of the repositories of a checkout's submodules, existing or not.
fn submodules_of(top: &Path) -> Vec<PathBuf> {
    let mut list = Command::new("git");
    list.args(["-c", "core.fsmonitor=false", "ls-files", "--stage", "-z"]).current_dir(top);
    let Ok(output) = list.stdin(Stdio::null()).stderr(Stdio::null()).output() else { return Vec::new() };
    let entries = output.stdout.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 "));
    let names = entries.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1));
    names.map(|name| top.join(std::ffi::OsStr::from_bytes(name)).join(".git")).collect()
}

/// Removes empty folders below one, and it itself if it becomes empty.
fn remove_empty(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.for_each(|entry| remove_empty(&entry.path()));
    // Fails unless it is empty.
    let _ = fs::remove_dir(folder);
}

/// Gives the owner all rights on the folders below one, so that they can be restored.
fn open_folders(folder: &Path) {
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.for_each(|entry| open_folders(&entry.path()));
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// The files and links below a folder that matter.
fn found_in(git: &Path, extent: GuardExtent) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(git.to_owned(), extent != GuardExtent::Settings)];
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

fn read(path: &Path, max: u64) -> Option<Remembered> {
    let meta = fs::symlink_metadata(path).ok()?;
    if meta.is_symlink() {
        return fs::read_link(path).ok().map(Remembered::Link);
    }
    let is_small = meta.is_file() && meta.len() <= max && max > 0;
    let other = Remembered::Other { inode: meta.ino(), changed: (meta.ctime(), meta.ctime_nsec()) };
    let mode = meta.permissions().mode() & 0o7777;
    let content = is_small.then(|| fs::read(path).ok()).flatten();
    Some(content.map_or(other, |content| Remembered::File { content, mode }))
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
        let [guard] = &RepositoryGuard::around(&place.path().join("src"), GuardExtent::Settings)[..] else {
            panic!("one")
        };
        assert_eq!(guard.restore().unwrap(), Vec::<PathBuf>::new());

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
        let mut restored = guard.restore().unwrap();
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
        assert_eq!(guard.restore().unwrap(), [git.join("hooks/changed")], "it is gone");
        assert!(RepositoryGuard::around(Path::new("/proc"), GuardExtent::Settings).is_empty());
        fs::rename(&git, place.path().join("moved")).unwrap();
        fs::create_dir(outside.join("hooks")).unwrap();
        fs::write(outside.join("hooks/theirs"), "").unwrap();
        symlink(&outside, &git).unwrap();
        assert_eq!(guard.restore().unwrap().first(), Some(&git));
        assert!(outside.join("hooks/theirs").exists() && is_folder(&git));
        assert_eq!(fs::read_to_string(git.join("config")).unwrap(), "ours");
    }
    /// Covers: IS-13
    #[test]
    fn nothing_of_a_reviewers_repository_can_be_changed_or_locked() {
        let place = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| {
            let mut command = Command::new("git");
            command.args(["-c", "user.name=A", "-c", "user.email=a@x"]).args(words).current_dir(place.path());
            let output = command.output().unwrap();
            assert!(output.status.success(), "{words:?}: {output:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        git(&["init", "-q"]);
        fs::write(place.path().join("bad"), "bad").unwrap();
        git(&["add", "-A"]);
        git(&["commit", "-qm", "bad"]);
        let commit = git(&["rev-parse", "HEAD"]);
        // A submodule that is not checked out, and one that is.
        git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},lib")]);
        git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},there")]);
        git(&["init", "-q", "there"]);
        fs::create_dir(place.path().join("lib")).unwrap();
        git(&["commit", "-qm", "submodules"]);
        let (status, commit) = (git(&["status", "--porcelain"]), git(&["rev-parse", "HEAD"]));
        let guards = RepositoryGuard::around(place.path(), GuardExtent::Everything);
        assert_eq!(guards.len(), 3);
        let restore = || guards.iter().flat_map(|guard| guard.restore().unwrap()).collect::<Vec<_>>();
        assert_eq!(restore(), Vec::<PathBuf>::new());

        let good = git(&["hash-object", "-w", "--stdin-paths"]);
        assert_eq!(good, "");
        fs::write(place.path().join("good"), "good").unwrap();
        let good = git(&["hash-object", "-w", "good"]);
        fs::remove_file(place.path().join("good")).unwrap();
        git(&["replace", &git(&["rev-parse", "HEAD:bad"]), &good]);
        assert_eq!(git(&["show", "HEAD:bad"]), "good", "the lie");
        git(&["update-index", "--assume-unchanged", "bad"]);
        git(&["config", "core.fsmonitor", "./evil"]);
        git(&["-C", "there", "config", "core.fsmonitor", "./evil"]);
        fs::create_dir_all(place.path().join("lib/.git/hooks")).unwrap();
        for locked in [".git/refs", ".git"] {
            fs::set_permissions(place.path().join(locked), Permissions::from_mode(0o555)).unwrap();
        }
        assert!(!restore().is_empty());
        assert_eq!(git(&["show", "HEAD:bad"]), "bad");
        assert_eq!(git(&["rev-parse", "HEAD"]), commit);
        assert_eq!(git(&["status", "--porcelain"]), status);
        assert!(!place.path().join("lib/.git").exists());
        assert!(!fs::read_to_string(place.path().join("there/.git/config")).unwrap().contains("evil"));
        assert!(!fs::read_to_string(place.path().join(".git/config")).unwrap().contains("evil"));
        let object = format!(".git/objects/{}/{}", &good[..2], &good[2..]);
        assert!(!place.path().join(object).exists());

        // A git that runs at the same time, and one that the code removed.
        fs::write(place.path().join(".git/index.lock"), "").unwrap();
        git(&["config", "a.b", "c"]);
        assert!(!restore().contains(&place.path().join(".git")));
        fs::remove_dir_all(place.path().join(".git")).unwrap();
        assert!(restore().contains(&place.path().join(".git")));
        let head = fs::read_to_string(place.path().join(".git/refs/heads").join(git(&[
            "symbolic-ref",
            "--short",
            "HEAD",
        ])));
        assert_eq!(head.unwrap().trim(), commit);
    }
}

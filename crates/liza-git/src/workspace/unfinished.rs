//! What a session leaves of a command of git that it has not finished. A list of steps can name programs, and `git rebase
//! --continue` runs them for the person; so between sessions a repository has no such list. Its commits are kept under
//! references of the repository.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use liza_ids::Sha;
use liza_sandbox::sys::untrusted::{EntryKind, UntrustedFolder};

/// The folder of references to commits that only an unfinished command named.
pub(crate) const UNFINISHED_REFS: &str = "refs/liza/unfinished";

/// Folders with lists of steps.
const STEPS: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

/// Files that name commits to which only an unfinished command may refer.
const NAMES_COMMITS: [&str; 7] = [
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "MERGE_AUTOSTASH",
    "rebase-merge/orig-head",
    "rebase-merge/autostash",
    "rebase-apply/orig-head",
    "rebase-apply/autostash",
];

/// The entries that the repository of a worktree keeps between sessions. Nothing in them starts a program once its settings are
/// written anew.
const KEPT_FOLDERS: [&str; 6] = ["info", "lfs", "logs", "modules", "objects", "refs"];
const KEPT_FILES: [&str; 16] = [
    "AUTO_MERGE",
    "CHERRY_PICK_HEAD",
    "COMMIT_EDITMSG",
    "FETCH_HEAD",
    "HEAD",
    "MERGE_AUTOSTASH",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "ORIG_HEAD",
    "REVERT_HEAD",
    "SQUASH_MSG",
    "config",
    "index",
    "packed-refs",
    "shallow",
];

/// The size of a file that names commits.
const SMALL: u64 = 4 << 10;

/// Commits that an unfinished merge or rebase names.
pub(crate) fn unfinished_commits(git: &UntrustedFolder) -> Vec<Sha> {
    let linked = git.folder(Path::new("worktrees")).and_then(|linked| linked.entries()).unwrap_or_default();
    let heads = linked.iter().map(|(name, _)| Path::new("worktrees").join(name).join("HEAD"));
    let texts =
        NAMES_COMMITS.iter().map(Into::into).chain(heads).filter_map(|name| git.read(&name, SMALL).ok());
    let commits = |text: Vec<u8>| {
        let text = String::from_utf8(text).unwrap_or_default();
        text.lines().filter_map(|line| line.trim().parse().ok()).filter(Sha::is_full).collect::<Vec<_>>()
    };
    texts.flat_map(commits).collect()
}

/// Removes lists of steps from any repository of a session.
pub(crate) fn remove_unfinished(git: &UntrustedFolder) -> io::Result<()> {
    if STEPS.iter().any(|name| git.folder(Path::new(name)).is_ok()) {
        keep_commits(git)?;
    }
    STEPS.iter().try_for_each(|name| git.remove(Path::new(name)))
}

/// Removes everything from the repository of a worktree that is not on the list of what it keeps.
pub(crate) fn remove_unknown(git: &UntrustedFolder) -> io::Result<()> {
    let entries = git.entries()?;
    let unknown: Vec<_> = entries.iter().filter(|(name, kind)| !is_known(name, *kind)).collect();
    if unknown.iter().any(|(_, kind)| *kind == EntryKind::Folder) {
        keep_commits(git)?;
    }
    unknown.iter().try_for_each(|(name, _)| git.remove(Path::new(name)))
}

fn is_known(name: &OsString, kind: EntryKind) -> bool {
    let is = |known: &[&str]| known.iter().any(|known| name == OsStr::new(known));
    let text = name.to_string_lossy();
    match kind {
        EntryKind::Folder => is(&KEPT_FOLDERS),
        // Locks that nobody holds are removed elsewhere; the other ones are parts of an index.
        EntryKind::File => is(&KEPT_FILES) || text.ends_with(".lock") || text.starts_with("sharedindex."),
        EntryKind::Other => false,
    }
}

fn keep_commits(git: &UntrustedFolder) -> io::Result<()> {
    let commits = unfinished_commits(git);
    if commits.is_empty() {
        return Ok(());
    }
    let folder = git.make_folder(Path::new(UNFINISHED_REFS))?;
    commits
        .iter()
        .try_for_each(|commit| folder.write(Path::new(commit.as_str()), format!("{commit}\n").as_bytes()))
}

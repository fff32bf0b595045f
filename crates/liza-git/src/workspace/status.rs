//! The differences of a worktree from its commit, from `git status --porcelain=v2`.

use std::path::{Path, PathBuf};

use liza_ids::Sha;

use crate::program::command::TREE_LIMIT;
use crate::program::error::GitError;
use crate::program::repo::{Repo, path};

/// The untracked files that a status includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UntrackedFiles {
    Skip,
    /// Every untracked file that is not ignored.
    Show,
    ShowIgnored,
}

impl UntrackedFiles {
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Self::Skip => &["--untracked-files=no"],
            Self::Show => &["--untracked-files=all"],
            Self::ShowIgnored => &["--untracked-files=all", "--ignored=matching"],
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeStatus {
    /// `None` before the first commit.
    pub head: Option<Sha>,
    /// `None` when HEAD is detached.
    pub branch: Option<String>,
    pub changes: Vec<FileChange>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    Tracked {
        path: PathBuf,
        /// The index differs from HEAD.
        staged: bool,
        /// The file differs from the index.
        unstaged: bool,
        /// It is a submodule with another commit or uncommitted changes.
        submodule: bool,
    },
    Conflicted {
        path: PathBuf,
    },
    Untracked {
        path: PathBuf,
    },
    Ignored {
        path: PathBuf,
    },
}

impl FileChange {
    pub fn path(&self) -> &Path {
        match self {
            Self::Tracked { path, .. }
            | Self::Conflicted { path }
            | Self::Untracked { path }
            | Self::Ignored { path } => path,
        }
    }

    pub(crate) fn is_tracked(&self) -> bool {
        match self {
            Self::Tracked { .. } | Self::Conflicted { .. } => true,
            Self::Untracked { .. } | Self::Ignored { .. } => false,
        }
    }
}

impl Repo {
    pub fn status(&self, tree: &Path, untracked: UntrackedFiles) -> Result<WorktreeStatus, GitError> {
        let command = self
            .command_in("looking for uncommitted changes", tree)
            .args(["status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--ignore-submodules=none"])
            .args(untracked.options())
            .limit(TREE_LIMIT);
        command.read_with(parse)
    }

    /// True if a folder of the person's checkout has files that are neither tracked nor ignored.
    pub fn has_untracked(&self, folder: &str) -> Result<bool, GitError> {
        let words = ["ls-files", "--others", "--exclude-standard", "--directory", "-z", "--", folder];
        let found = self.command("looking for files that are not committed").args(words).read()?;
        Ok(!found.is_empty())
    }
}

pub(crate) fn parse(output: &[u8]) -> Option<WorktreeStatus> {
    let mut status = WorktreeStatus { head: None, branch: None, changes: Vec::new() };
    for record in output.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
        let (kind, rest) = record.split_at_checked(2)?;
        match kind {
            b"# " => header(&mut status, rest)?,
            b"1 " => status.changes.push(tracked(rest)?),
            b"u " => status.changes.push(FileChange::Conflicted { path: path(field(rest, 9)?) }),
            b"? " => status.changes.push(FileChange::Untracked { path: path(rest) }),
            b"! " => status.changes.push(FileChange::Ignored { path: path(rest) }),
            _ => return None,
        }
    }
    Some(status)
}

fn header(status: &mut WorktreeStatus, line: &[u8]) -> Option<()> {
    let line = String::from_utf8_lossy(line);
    let (name, value) = line.split_once(' ')?;
    match name {
        "branch.oid" if value != "(initial)" => status.head = Some(value.parse().ok()?),
        "branch.head" if value != "(detached)" => status.branch = Some(value.to_owned()),
        _ => {}
    }
    Some(())
}

/// `XY sub mH mI mW hH hI path`
fn tracked(rest: &[u8]) -> Option<FileChange> {
    let (staged, unstaged) = (*rest.first()? != b'.', *rest.get(1)? != b'.');
    let submodule = *rest.get(3)? == b'S';
    Some(FileChange::Tracked { path: path(field(rest, 7)?), staged, unstaged, submodule })
}

/// The text after `count` fields, each followed by a space.
fn field(rest: &[u8], count: usize) -> Option<&[u8]> {
    rest.splitn(count + 1, |byte| *byte == b' ').nth(count)
}

/// The path of an untracked repository: the only kind of folder that git lists among untracked files.
pub(crate) fn nested_repository(change: &FileChange) -> Option<&Path> {
    let is_folder = |path: &Path| path.as_os_str().as_encoded_bytes().ends_with(b"/");
    match change {
        FileChange::Untracked { path } => Some(path.as_path()).filter(|path| is_folder(path)),
        FileChange::Tracked { .. } | FileChange::Conflicted { .. } | FileChange::Ignored { .. } => None,
    }
}

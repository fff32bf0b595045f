//! What differs in a worktree from its commit, from `git status --porcelain=v2`.
//!
//! Reads only; what a difference means is for others to say.

use std::path::{Path, PathBuf};

use liza_core::model::Sha;

use super::error::GitError;
use super::repo::{Repo, path};
use super::run::TREE_LIMIT;

/// Whether files that git does not know are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untracked {
    /// Tracked files only.
    Skip,
    /// Also untracked files that are not ignored, one by one.
    Show,
    /// Also ignored ones.
    ShowIgnored,
}

impl Untracked {
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Skip => &["--untracked-files=no"],
            Self::Show => &["--untracked-files=all"],
            Self::ShowIgnored => &["--untracked-files=all", "--ignored=matching"],
        }
    }
}

/// The state of one worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The commit that is checked out; `None` before the first.
    pub head: Option<Sha>,
    /// The branch that is checked out; `None` when HEAD is detached.
    pub branch: Option<String>,
    /// Everything that differs.
    pub changes: Vec<Change>,
}

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A file that git knows.
    Tracked {
        /// Where.
        path: PathBuf,
        /// The index differs from HEAD.
        staged: bool,
        /// The file differs from the index.
        unstaged: bool,
        /// It is a submodule: other commit, or dirt inside.
        submodule: bool,
    },
    /// A file with an unresolved conflict.
    Conflicted {
        /// Where.
        path: PathBuf,
    },
    /// A file that git does not know.
    Untracked {
        /// Where.
        path: PathBuf,
    },
    /// A file or folder that git was told to ignore.
    Ignored {
        /// Where.
        path: PathBuf,
    },
}

impl Change {
    /// Where.
    pub fn path(&self) -> &Path {
        match self {
            Self::Tracked { path, .. }
            | Self::Conflicted { path }
            | Self::Untracked { path }
            | Self::Ignored { path } => path,
        }
    }

    /// Whether git knows the file.
    pub fn is_tracked(&self) -> bool {
        match self {
            Self::Tracked { .. } | Self::Conflicted { .. } => true,
            Self::Untracked { .. } | Self::Ignored { .. } => false,
        }
    }
}

impl Repo {
    /// The state of the worktree at `tree`.
    ///
    /// # Errors
    ///
    /// When git cannot tell.
    pub fn status(&self, tree: &Path, untracked: Untracked) -> Result<Status, GitError> {
        let call = self
            .call("looking for uncommitted work", tree)
            .args(["status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--ignore-submodules=none"])
            .args(untracked.options())
            .limit(TREE_LIMIT);
        let answer = call.ok()?;
        parse(&answer).ok_or_else(|| call.unreadable(&answer))
    }
}

fn parse(answer: &[u8]) -> Option<Status> {
    let mut status = Status { head: None, branch: None, changes: Vec::new() };
    for record in answer.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
        let (kind, rest) = record.split_at_checked(2)?;
        match kind {
            b"# " => header(&mut status, rest)?,
            b"1 " => status.changes.push(tracked(rest)?),
            b"u " => status.changes.push(Change::Conflicted { path: path(field(rest, 9)?) }),
            b"? " => status.changes.push(Change::Untracked { path: path(rest) }),
            b"! " => status.changes.push(Change::Ignored { path: path(rest) }),
            _ => return None,
        }
    }
    Some(status)
}

fn header(status: &mut Status, line: &[u8]) -> Option<()> {
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
fn tracked(rest: &[u8]) -> Option<Change> {
    let (staged, unstaged) = (*rest.first()? != b'.', *rest.get(1)? != b'.');
    let submodule = *rest.get(3)? == b'S';
    Some(Change::Tracked { path: path(field(rest, 7)?), staged, unstaged, submodule })
}

/// What follows after `count` fields that end with a blank.
fn field(rest: &[u8], count: usize) -> Option<&[u8]> {
    rest.splitn(count + 1, |byte| *byte == b' ').nth(count)
}

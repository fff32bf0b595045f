//! The note in a checkout's git folder while its branch moves: the branch, its old and its new commit.
//! Written durably before the reference moves, removed when the files have followed. Without it, a checkout
//! that differs from its branch is the person's own doing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_host::durable;
use liza_ids::Sha;

use crate::program::refs::Branch;

/// The file in a checkout's git folder.
const FILE: &str = "liza-update";

/// The last word of a note about a move that takes another one back.
const BACK: &str = "back";

/// A move of a branch that one of its checkouts has to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpdateNote {
    /// The full name of the branch; a note of an older version has none.
    pub branch: Option<String>,
    pub from: Sha,
    pub to: Sha,
    /// True if it takes a move back: then the files may be at `to` although the branch is still at `from`.
    pub is_back: bool,
}

impl UpdateNote {
    pub(crate) fn forward(branch: &Branch, from: &Sha, to: &Sha) -> Self {
        Self { branch: Some(branch.full()), from: from.clone(), to: to.clone(), is_back: false }
    }

    pub(crate) fn back(branch: &Branch, from: &Sha, to: &Sha) -> Self {
        Self { is_back: true, ..Self::forward(branch, from, to) }
    }

    pub(crate) fn place(git_dir: &Path) -> PathBuf {
        git_dir.join(FILE)
    }

    pub(crate) fn read(git_dir: &Path) -> Option<Self> {
        let text = fs::read_to_string(Self::place(git_dir)).ok()?;
        let mut words = text.split_whitespace();
        let (from, to) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let branch = words.next().map(str::to_owned);
        Some(Self { branch, from, to, is_back: words.next() == Some(BACK) })
    }

    pub(crate) fn write(&self, git_dir: &Path) -> io::Result<()> {
        let Self { branch, from, to, is_back } = self;
        let back = if *is_back { BACK } else { "" };
        let text = format!("{from} {to} {} {back}\n", branch.as_deref().unwrap_or_default());
        durable::replace_file(&Self::place(git_dir), text.as_bytes())?;
        durable::sync_folder(git_dir)
    }
}

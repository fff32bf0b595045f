//! Merges inside a task's work that drop changes of the integration branch: a range of commits doesn't show
//! what a merge commit dropped.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use liza_ids::Sha;

use crate::diff::isolated::{ComputedMerge, MergeParents};
use crate::program::error::GitError;
use crate::program::repo::{Repo, sha};

/// The number of merges in a task's work that are checked. Each costs a merge, and an honest coder needs a few.
const MERGES_MAX: usize = 50;

/// A merge in the work that lacks parts of git's own merge of its parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenBack {
    pub merge: Sha,
    /// None if the merge could not be compared.
    pub paths: Vec<PathBuf>,
}

impl Repo {
    /// The merges of `commit` that are not on the integration branch at `head` and differ from git's own
    /// merge in a path without a conflict, or lack lines of the integration side in a conflicted one.
    pub fn taken_back(&self, head: &Sha, commit: &Sha) -> Result<Vec<TakenBack>, GitError> {
        let command = self.command("looking for merges").args(["rev-list", "--min-parents=2", "--parents"]);
        let command = command.args([&format!("--max-count={}", MERGES_MAX + 1), commit.as_str()]);
        let text = command.args(["--not", head.as_str(), "--"]).read_text()?;
        let mut found = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let mut names = line.split(' ').filter_map(|name| sha(name.as_bytes()));
            let Some(merge) = names.next() else { continue };
            let parents: Vec<Sha> = names.collect();
            let paths = match parents.as_slice() {
                [ours, theirs] if number < MERGES_MAX => self.dropped_by(&merge, ours, theirs, head)?,
                // With more parents, or too many merges, there is nothing to compare with.
                _ => Some(Vec::new()),
            };
            found.extend(paths.map(|paths| TakenBack { merge, paths }));
        }
        Ok(found)
    }

    /// The paths in which a merge drops something; `None` if it drops nothing.
    fn dropped_by(
        &self,
        merge: &Sha,
        ours: &Sha,
        theirs: &Sha,
        head: &Sha,
    ) -> Result<Option<Vec<PathBuf>>, GitError> {
        let bases = self.merge_bases(ours, theirs)?;
        let parents = MergeParents { into: ours, commit: theirs, bases: &bases };
        let Some(ComputedMerge { tree, conflicts, .. }) = self.compute_merge(&parents)? else {
            return Ok(Some(Vec::new()));
        };
        let mut paths = Vec::new();
        for path in self.tree_changes(&tree, merge)?.into_keys() {
            let is_dropped = match (conflicts.contains(&path), bases.first()) {
                (false, _) | (true, None) => true,
                (true, Some(base)) => {
                    let mut dropped = false;
                    for side in [ours, theirs] {
                        dropped |=
                            self.is_ancestor(side, head)? && self.lacks_lines(merge, side, base, &path)?;
                    }
                    dropped
                }
            };
            if is_dropped {
                paths.push(path);
            }
        }
        Ok((!paths.is_empty()).then_some(paths))
    }

    /// True if a file lacks lines that a side has added since the base.
    fn lacks_lines(&self, merge: &Sha, side: &Sha, base: &Sha, path: &Path) -> Result<bool, GitError> {
        let blob = |commit: &Sha| Ok::<_, GitError>(self.blob(commit, path)?.unwrap_or_default());
        Ok(lacks_added_lines(&blob(merge)?, &blob(side)?, &blob(base)?))
    }
}

/// True if `merged` lacks a line that `side` has added to `base`. A line is kept if one line of the result
/// has all of its words: a resolved conflict often combines both sides in one line.
fn lacks_added_lines(merged: &[u8], side: &[u8], base: &[u8]) -> bool {
    let before: BTreeSet<&[u8]> = lines(base).collect();
    let exact: BTreeSet<&[u8]> = lines(merged).collect();
    let kept: Vec<BTreeSet<&[u8]>> = exact.iter().map(|line| words(line)).collect();
    let mut added = lines(side).filter(|line| !before.contains(line) && !exact.contains(line));
    added.any(|line| {
        let words = words(line);
        !words.is_empty() && !kept.iter().any(|kept| words.is_subset(kept))
    })
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii)
}

fn words(line: &[u8]) -> BTreeSet<&[u8]> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    line.split(|byte| !is_part(byte)).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: JU-06
    #[test]
    fn a_resolution_that_combines_both_sides_keeps_their_lines() {
        let (base, side) = (&b"use a::{b};\nx = 1;\n}\n"[..], &b"use a::{b, c};\nx = 2;\n}\n"[..]);
        assert!(!lacks_added_lines(b"use a::{b, c, d};\nx = f(2);\n}\n", side, base));
        assert!(lacks_added_lines(b"use a::{b, d};\nx = f(2);\n}\n", side, base), "c is gone");
        assert!(lacks_added_lines(b"use a::{b, c};\nx = f();\n}\n", side, base), "2 is gone");
        assert!(lacks_added_lines(b"", side, base));
    }
}

//! The change that a submitted commit brings: the effect of its merge on the head of the integration branch,
//! and its differences at another head.

use std::collections::BTreeMap;
use std::path::PathBuf;

use liza_ids::{Digest, Sha};

use crate::diff::isolated::{ComputedMerge, MergeParents};
use crate::diff::patch::plain_diff;
use crate::diff::tree_changes::{TreeChange, TreeEntry, parse_raw};
use crate::program::error::GitError;
use crate::program::repo::Repo;

/// The largest change that is compared line by line; in a larger one, files are compared as a whole.
const LINES_MAX: usize = 64 << 20;

/// The effect of merging a commit into a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeChange {
    /// It replaces the files of the head by those of this tree.
    Clean {
        /// A tree, or a commit that has it.
        tree: Sha,
    },
    /// These files conflict; none if the two have no common history.
    Undefined { conflicts: Vec<PathBuf> },
}

/// The difference of one path, without its surroundings and its place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathChange {
    /// The mode before and after, if they differ; `None` where the path doesn't exist.
    modes: Option<(Option<String>, Option<String>)>,
    pub(super) content: ContentChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContentChange {
    /// Removed and added lines, hunk by hunk.
    Lines(Vec<Vec<u8>>),
    /// The new entry of a link, a submodule, or a file that is no text.
    Whole(Option<TreeEntry>),
}

/// By the name of each path as git quotes it: a line break in a name begins no section.
pub(super) type PathChanges = BTreeMap<String, PathChange>;

impl Repo {
    /// The effect of merging `commit` into `head`. The merge itself compares the result with both sides too.
    pub fn merge_change(&self, head: &Sha, commit: &Sha) -> Result<MergeChange, GitError> {
        let bases = self.merge_bases(head, commit)?;
        let clean = |files: &Sha| Ok(MergeChange::Clean { tree: files.clone() });
        match bases.as_slice() {
            [] => return Ok(MergeChange::Undefined { conflicts: Vec::new() }),
            [base] if base == commit => return clean(head),
            [base] if base == head => return clean(commit),
            _ => {}
        }
        let merge = self.compute_merge(&MergeParents { into: head, commit, bases: &bases })?;
        Ok(match merge {
            Some(ComputedMerge { is_clean: true, tree, .. }) => MergeChange::Clean { tree },
            Some(ComputedMerge { conflicts, .. }) => MergeChange::Undefined { conflicts },
            None => MergeChange::Undefined { conflicts: Vec::new() },
        })
    }

    /// The paths in which the change of a commit differs between two heads. A path that has left the change
    /// because the new head already has it so does not count.
    pub fn moved_change(&self, before: &Sha, now: &Sha, commit: &Sha) -> Result<Vec<String>, GitError> {
        let (read, present) = match (self.merge_change(before, commit)?, self.merge_change(now, commit)?) {
            (MergeChange::Clean { tree: read }, MergeChange::Clean { tree: present }) => (read, present),
            (_, MergeChange::Undefined { conflicts }) if !conflicts.is_empty() => {
                let name = |path: &PathBuf| format!("{} (conflicts)", path.to_string_lossy());
                return Ok(conflicts.iter().map(name).collect());
            }
            (_, MergeChange::Undefined { .. }) => return Ok(vec!["it no longer merges".to_owned()]),
            (MergeChange::Undefined { .. }, _) => return Ok(vec!["it merges cleanly now".to_owned()]),
        };
        let (old, new) = (self.path_changes(before, &read)?, self.path_changes(now, &present)?);
        let differs = |path: &&String| old.get(*path) != new.get(*path);
        let (left, others): (Vec<&String>, Vec<&String>) =
            old.keys().filter(differs).partition(|path| !new.contains_key(*path));
        let mut moved: Vec<&String> = others;
        moved.extend(new.keys().filter(|path| !old.contains_key(*path)));
        if !left.is_empty() {
            let known = self.path_changes(before, now)?;
            moved.extend(left.into_iter().filter(|path| !has_already(&known, &old, path)));
        }
        moved.sort();
        Ok(moved.into_iter().cloned().collect())
    }

    /// The digest of the change that merging `commit` into `head` makes; `None` if it does not merge. The same change at another
    /// head has the same digest, wherever its lines are.
    pub fn change_digest(&self, head: &Sha, commit: &Sha) -> Result<Option<Digest>, GitError> {
        let MergeChange::Clean { tree } = self.merge_change(head, commit)? else { return Ok(None) };
        let mut text = Vec::new();
        // Each part with its length, so that no part can pass for two.
        let mut add = |part: &[u8]| {
            text.extend_from_slice(format!("{}:", part.len()).as_bytes());
            text.extend_from_slice(part);
        };
        for (path, PathChange { modes, content }) in self.path_changes(head, &tree)? {
            let (old, new) = modes.unwrap_or_default();
            add(path.as_bytes());
            add(old.unwrap_or_default().as_bytes());
            add(new.unwrap_or_default().as_bytes());
            match content {
                ContentChange::Lines(hunks) => hunks.iter().for_each(|hunk| add(hunk)),
                ContentChange::Whole(entry) => {
                    add(entry.map(|entry| entry.object).unwrap_or_default().as_bytes())
                }
            }
        }
        Ok(Some(Digest::of(&text)))
    }

    /// The differences between two commits or trees.
    pub(super) fn path_changes(&self, from: &Sha, to: &Sha) -> Result<PathChanges, GitError> {
        let isolated = self.isolated_from_settings(from)?;
        let command = plain_diff(isolated.command("comparing a change"), from);
        let command = command.args(["--no-renames", "--no-abbrev", "--full-index", "--raw", "-p", "-U0"]);
        let command = command.args([from.as_str(), to.as_str(), "--"]).at_most(LINES_MAX);
        command.read_with(parse_changes)
    }
}

/// True if the new head itself made each hunk of the change to this path.
fn has_already(known: &PathChanges, old: &PathChanges, path: &str) -> bool {
    let (Some(known), Some(old)) = (known.get(path), old.get(path)) else { return false };
    match (&known.content, &old.content) {
        (ContentChange::Lines(known), ContentChange::Lines(old)) => {
            old.iter().all(|hunk| known.contains(hunk))
        }
        (known, old) => known == old,
    }
}

/// The output of `--raw -p`: a line for each path, an empty one, then a section for each in the same order.
pub(super) fn parse_changes(output: &[u8]) -> Option<PathChanges> {
    let end = output.windows(2).position(|pair| pair == b"\n\n").map_or(output.len(), |at| at + 1);
    let (raw, patch) = output.split_at(end);
    let is_all = output.len() < LINES_MAX;
    let mut sections = sections(patch.strip_prefix(b"\n").unwrap_or(patch)).into_iter();
    let mut changes = PathChanges::new();
    for line in raw.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let (facts, name) = (line.get(..tab)?, line.get(tab + 1..)?);
        let change = parse_raw(&[facts, b"\0x\0"].concat())?.into_values().next()?;
        let section = sections.next().unwrap_or_default();
        let is_replaced = change.changes_kind();
        // A file that becomes a link is removed and added.
        if is_replaced {
            sections.next();
        }
        let is_text = is_all && !is_replaced && !change.is_special() && !section.contains(&0);
        let content = match is_text {
            true => ContentChange::Lines(hunks(section)),
            false => ContentChange::Whole(change.new.clone()),
        };
        let mode = |entry: &Option<TreeEntry>| entry.as_ref().map(|entry| entry.mode.clone());
        let modes = (mode(&change.old), mode(&change.new));
        let modes = Some(modes).filter(|(old, new)| old != new);
        changes.insert(String::from_utf8_lossy(name).into_owned(), PathChange { modes, content });
    }
    Some(changes)
}

impl TreeChange {
    /// True if it becomes another kind of entry, such as a link in the place of a file.
    fn changes_kind(&self) -> bool {
        let kind = |entry: &TreeEntry| entry.mode.get(..3).map(str::to_owned);
        self.old.as_ref().zip(self.new.as_ref()).is_some_and(|(old, new)| kind(old) != kind(new))
    }

    /// True if it is a link or a submodule, before or afterwards.
    fn is_special(&self) -> bool {
        let mut entries = self.old.iter().chain(&self.new);
        entries.any(|entry| entry.is_link() || entry.is_submodule())
    }
}

/// One section for each file. No line of a file begins a section, since each begins with a sign.
fn sections(patch: &[u8]) -> Vec<&[u8]> {
    const START: &[u8] = b"diff --git ";
    let mut starts: Vec<usize> = patch.starts_with(START).then_some(0).into_iter().collect();
    let inner = line_starts(patch).filter(|at| patch.get(*at..).is_some_and(|rest| rest.starts_with(START)));
    starts.extend(inner);
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| patch.get(*start..end)).collect()
}

/// The starts of lines, after the first one.
fn line_starts(text: &[u8]) -> impl Iterator<Item = usize> + '_ {
    text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1)
}

/// The removed and added lines of each hunk, without its place.
fn hunks(section: &[u8]) -> Vec<Vec<u8>> {
    let mut hunks: Vec<Vec<u8>> = Vec::new();
    for line in section.split_inclusive(|byte| *byte == b'\n') {
        match (line.first(), hunks.last_mut()) {
            (Some(b'@'), _) => hunks.push(Vec::new()),
            (_, Some(hunk)) => hunk.extend_from_slice(line),
            (_, None) => {}
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: JU-06
    #[test]
    fn hunks_have_neither_place_nor_surroundings() {
        let section = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@ fn one\n-a\n+b\n@@ -9,0 +10 @@ fn two\n+@@ c\n";
        assert_eq!(hunks(section), [b"-a\n+b\n".to_vec(), b"+@@ c\n".to_vec()]);
    }

    /// Covers: JU-06
    #[test]
    fn each_path_has_its_own_section() {
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let raw = format!(
            ":100644 120000 {one} {two} T\tb\n:100644 100755 {one} {one} M\tc\n:100644 100644 {one} {two} M\td\n\n"
        );
        let patch = "diff --git a/b b/b\n@@ -1 +0,0 @@\n-x\ndiff --git a/b b/b\n@@ -0,0 +1 @@\n+y\n\
                     diff --git a/c b/c\nold mode 100644\nnew mode 100755\n\
                     diff --git a/d b/d\n@@ -1 +1 @@\n-diff --git a/e b/e\n+z\n";
        let changes = parse_changes(format!("{raw}{patch}").as_bytes()).unwrap();
        assert!(matches!(&changes["b"].content, ContentChange::Whole(Some(link)) if link.is_link()));
        assert_eq!(changes["c"].modes, Some((Some("100644".into()), Some("100755".into()))));
        let lines = ContentChange::Lines(vec![b"-diff --git a/e b/e\n+z\n".to_vec()]);
        assert_eq!(changes["d"].content, lines);
    }
}

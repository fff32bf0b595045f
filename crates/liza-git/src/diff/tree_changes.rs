//! The differences of two trees, path by path, and a check that a merge result has each side's changes and
//! nothing else, without trust in the program that computed the merge.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use liza_ids::Sha;

use crate::diff::isolated::MergeTrees;
use crate::program::error::GitError;
use crate::program::repo::{Repo, path};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TreeEntry {
    /// Such as `100644`.
    pub mode: String,
    pub object: String,
}

impl TreeEntry {
    pub fn is_link(&self) -> bool {
        self.mode == "120000"
    }

    pub(crate) fn is_submodule(&self) -> bool {
        self.mode == "160000"
    }
}

/// `None` where the path doesn't exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    pub old: Option<TreeEntry>,
    pub new: Option<TreeEntry>,
}

pub(crate) type TreeChanges = BTreeMap<PathBuf, TreeChange>;

impl Repo {
    /// The changes from `from` to `to`; a rename is a removal and an addition.
    pub(crate) fn tree_changes(&self, from: &Sha, to: &Sha) -> Result<TreeChanges, GitError> {
        let command =
            self.command("comparing trees").args(["diff-tree", "-r", "-z", "--raw", "--no-renames"]);
        command.args(["--no-abbrev", from.as_str(), to.as_str(), "--"]).read_with(parse_raw)
    }

    /// The differences of several pairs of trees, found with one git command.
    pub(super) fn changes_of_pairs(&self, pairs: &[(&Sha, &Sha)]) -> Result<Vec<TreeChanges>, GitError> {
        let command =
            self.command("comparing trees").args(["diff-tree", "-r", "-z", "--raw", "--no-renames"]);
        let lines: String = pairs.iter().map(|(from, to)| format!("{from} {to}\n")).collect();
        let command = command.args(["--no-abbrev", "--stdin"]).stdin(lines);
        command.read_with(|output| parse_pairs(output).filter(|changes| changes.len() == pairs.len()))
    }

    /// Refuses a merge of `commit` if its result `tree` has changes of neither side, or lacks some.
    pub(crate) fn check_merge(&self, commit: &Sha, trees: &MergeTrees, tree: &Sha) -> Result<(), GitError> {
        let MergeTrees { into, commit: approved, bases } = trees;
        let of_sides = bases.iter().flat_map(|base| [(base, approved), (base, into)]);
        let pairs: Vec<(&Sha, &Sha)> = [(into, tree)].into_iter().chain(of_sides).collect();
        let mut sides = Sides::of(self.changes_of_pairs(&pairs)?);
        let mut unexplained = sides.unexplained();
        if !unexplained.is_empty() {
            for base in bases {
                sides.renames.extend(self.renames(base, approved)?);
                sides.renames.extend(self.renames(base, into)?);
            }
            unexplained.retain(|path| !sides.moved(path));
        }
        for path in sides.merged_content() {
            if !self.has_only_lines_of(tree, &[into, approved], &path, &sides.renames)? {
                unexplained.push(path);
            }
        }
        if unexplained.is_empty() {
            return Ok(());
        }
        Err(GitError::AlteredMerge { commit: commit.to_string(), paths: unexplained })
    }

    /// Pairs of old and new path.
    fn renames(&self, from: &Sha, to: &Sha) -> Result<Vec<(PathBuf, PathBuf)>, GitError> {
        let command = self.command("comparing trees").args(["diff-tree", "-r", "-z", "--name-status", "-M"]);
        let output = command.args(["--diff-filter=R", from.as_str(), to.as_str(), "--"]).read()?;
        let mut fields = output.split(|byte| *byte == 0);
        let mut pairs = Vec::new();
        while let (Some(_), Some(old), Some(new)) = (fields.next(), fields.next(), fields.next()) {
            pairs.push((path(old), path(new)));
        }
        Ok(pairs)
    }

    /// True if every line of a file in `tree` is in one of `sides`, under its path or its old name.
    fn has_only_lines_of(
        &self,
        tree: &Sha,
        sides: &[&Sha],
        path: &Path,
        renames: &[(PathBuf, PathBuf)],
    ) -> Result<bool, GitError> {
        let merged = self.blob(tree, path)?.unwrap_or_default();
        let mut names: BTreeSet<&Path> = BTreeSet::from([path]);
        names.extend(renames.iter().filter(|(_, new)| new == path).map(|(old, _)| old.as_path()));
        let mut known = Vec::new();
        for side in sides {
            for name in &names {
                known.extend(self.blob(side, name)?);
            }
        }
        let known: BTreeSet<&[u8]> = known.iter().flat_map(|text| lines(text)).collect();
        Ok(lines(&merged).all(|line| known.contains(line)))
    }

    /// `None` if there is no such file.
    pub fn blob(&self, tree: &Sha, path: &Path) -> Result<Option<Vec<u8>>, GitError> {
        let mut name = std::ffi::OsString::from(format!("{tree}:"));
        name.push(path);
        let output = self.command("reading a file").args(["cat-file", "blob"]).arg(name).run()?;
        Ok((output.status == Some(0)).then_some(output.stdout))
    }
}

#[derive(Debug, Default)]
struct Sides {
    /// The changes of the merge to the branch.
    brought: TreeChanges,
    /// The changes of the approved commit since each merge base.
    theirs: Vec<TreeChanges>,
    /// The changes of the branch since each merge base.
    ours: Vec<TreeChanges>,
    renames: Vec<(PathBuf, PathBuf)>,
}

impl Sides {
    /// From the differences of branch and result, then of each merge base and the commit, and of it and the branch.
    fn of(changes: Vec<TreeChanges>) -> Self {
        let mut changes = changes.into_iter();
        let mut sides = Self { brought: changes.next().unwrap_or_default(), ..Self::default() };
        while let (Some(theirs), Some(ours)) = (changes.next(), changes.next()) {
            sides.theirs.push(theirs);
            sides.ours.push(ours);
        }
        sides
    }

    /// Paths that are neither as the approved commit has them nor changed by both sides.
    fn unexplained(&self) -> Vec<PathBuf> {
        let foreign = self.brought.iter().filter(|(path, change)| !self.explains(path, change));
        let mut paths: Vec<PathBuf> = foreign.map(|(path, _)| path.clone()).collect();
        // With several merge bases, the branch may have taken a change and reverted it.
        if let ([theirs], [ours]) = (self.theirs.as_slice(), self.ours.as_slice()) {
            let only_theirs = theirs.iter().filter(|(path, _)| !ours.contains_key(*path));
            let lost = only_theirs.filter(|(path, change)| {
                self.brought.get(*path).is_none_or(|brought| brought.new != change.new)
            });
            paths.extend(lost.map(|(path, _)| path.clone()));
        }
        paths.sort();
        paths.dedup();
        paths
    }

    fn explains(&self, path: &Path, change: &TreeChange) -> bool {
        let same =
            self.theirs.iter().any(|theirs| theirs.get(path).is_some_and(|their| their.new == change.new));
        same || self.both_changed(path)
    }

    fn both_changed(&self, path: &Path) -> bool {
        let has = |side: &[TreeChanges]| side.iter().any(|changes| changes.contains_key(path));
        has(&self.theirs) && has(&self.ours)
    }

    /// True if a path is one end of a rename, or its content is unchanged at another path.
    fn moved(&self, path: &Path) -> bool {
        if self.renames.is_empty() {
            return false;
        }
        let end = self.renames.iter().any(|(old, new)| old == path || new == path);
        end || match self.brought.get(path) {
            Some(TreeChange { new: Some(new), .. }) => self.is_known(new),
            Some(TreeChange { old, new: None }) => old
                .as_ref()
                .is_some_and(|old| self.brought.values().any(|other| other.new.as_ref() == Some(old))),
            // A missing change of theirs: at the path to which its folder was renamed.
            None => self
                .theirs
                .iter()
                .filter_map(|theirs| theirs.get(path)?.new.as_ref())
                .all(|new| self.brought.values().any(|other| other.new.as_ref() == Some(new))),
        }
    }

    /// True if one of the sides has exactly this content somewhere.
    fn is_known(&self, entry: &TreeEntry) -> bool {
        let sides = self.theirs.iter().chain(&self.ours).flat_map(BTreeMap::values);
        let mut known = sides.filter_map(|change| change.new.as_ref());
        known.any(|known| known == entry)
            || self.brought.values().any(|change| change.old.as_ref() == Some(entry))
    }

    /// Files whose content is new to both sides.
    fn merged_content(&self) -> Vec<PathBuf> {
        let new = |change: &TreeChange| change.new.as_ref().is_some_and(|new| !self.has_object(&new.object));
        self.brought.iter().filter(|(_, change)| new(change)).map(|(path, _)| path.clone()).collect()
    }

    fn has_object(&self, object: &str) -> bool {
        let sides = self.theirs.iter().chain(&self.ours).flat_map(BTreeMap::values);
        let mut entries = sides.flat_map(|change| [change.old.as_ref(), change.new.as_ref()]).flatten();
        entries.any(|entry| entry.object == object)
            || self.brought.values().any(|change| change.old.as_ref().is_some_and(|old| old.object == object))
    }
}

/// Lines without their ends: a merge may adapt carriage returns.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// Parses the output of `--raw -z`: `:100644 100644 OLD NEW M\0path\0`.
pub(crate) fn parse_raw(output: &[u8]) -> Option<TreeChanges> {
    let mut fields = output.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let mut changes = TreeChanges::new();
    while let Some(head) = fields.next() {
        let head = std::str::from_utf8(head.strip_prefix(b":")?).ok()?;
        let mut words = head.split(' ');
        let (old_mode, new_mode) = (words.next()?, words.next()?);
        let (old, new) = (words.next()?, words.next()?);
        let change = TreeChange { old: entry(old_mode, old), new: entry(new_mode, new) };
        changes.insert(path(fields.next()?), change);
    }
    Some(changes)
}

/// The same for several pairs of trees, before each of which git writes a line with their names.
pub(super) fn parse_pairs(mut output: &[u8]) -> Option<Vec<TreeChanges>> {
    let mut pairs = Vec::new();
    while !output.is_empty() {
        let line = output.iter().position(|byte| *byte == b'\n')?;
        output = &output[line + 1..];
        let mut end = 0;
        // Two fields for each difference; a name may contain a line break.
        while output.get(end) == Some(&b':') {
            for _ in 0..2 {
                end += output[end..].iter().position(|byte| *byte == 0)? + 1;
            }
        }
        let (changes, rest) = output.split_at(end);
        pairs.push(parse_raw(changes)?);
        output = rest;
    }
    Some(pairs)
}

fn entry(mode: &str, object: &str) -> Option<TreeEntry> {
    (mode != "000000").then(|| TreeEntry { mode: mode.to_owned(), object: object.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(list: &[(&str, &str, &str)]) -> TreeChanges {
        let entry = |object: &str| {
            (!object.is_empty()).then(|| TreeEntry { mode: "100644".into(), object: object.into() })
        };
        list.iter()
            .map(|(path, old, new)| (path.into(), TreeChange { old: entry(old), new: entry(new) }))
            .collect()
    }

    fn unexplained(
        brought: &[(&str, &str, &str)],
        theirs: &[(&str, &str, &str)],
        ours: &[(&str, &str, &str)],
    ) -> Vec<PathBuf> {
        let sides = Sides {
            brought: changes(brought),
            theirs: vec![changes(theirs)],
            ours: vec![changes(ours)],
            renames: Vec::new(),
        };
        sides.unexplained()
    }

    /// Covers: AT-01
    #[test]
    fn a_merge_has_each_sides_changes_and_nothing_else() {
        let (theirs, ours) = ([("a", "1", "2"), ("b", "1", "3")], [("b", "1", "4"), ("c", "", "5")]);
        let good = [("a", "1", "2"), ("b", "4", "6")];
        assert!(unexplained(&good, &theirs, &ours).is_empty());
        let added = [good[0], good[1], ("evil", "", "9")];
        assert_eq!(unexplained(&added, &theirs, &ours), [PathBuf::from("evil")]);
        assert_eq!(unexplained(&[("a", "1", "9"), good[1]], &theirs, &ours), [PathBuf::from("a")]);
        assert_eq!(unexplained(&good[1..], &theirs, &ours), [PathBuf::from("a")], "a change is lost");
        assert_eq!(unexplained(&[good[0], good[1], ("c", "5", "")], &theirs, &ours), [PathBuf::from("c")]);
    }

    #[test]
    fn the_output_of_git_is_parsed() {
        let output = b":100644 000000 aa 00 D\0x\ny\0:000000 100755 00 bb A\0z\0";
        let parsed = parse_raw(output).unwrap();
        assert_eq!(parsed[Path::new("x\ny")].new, None);
        assert_eq!(parsed[Path::new("z")].new.as_ref().unwrap().mode, "100755");
    }

    #[test]
    fn the_differences_of_several_pairs_are_parsed() {
        let output = b"a b\n:100644 000000 aa 00 D\0x\n:y\0:000000 100755 00 bb A\0z\0c d\ne f\n:000000 100644 00 cc A\0w\0";
        let pairs = parse_pairs(output).unwrap();
        let names = |changes: &TreeChanges| changes.keys().cloned().collect::<Vec<_>>();
        let names: Vec<_> = pairs.iter().map(names).collect();
        let expected = [vec!["x\n:y", "z"], vec![], vec!["w"]];
        assert_eq!(names, expected.map(|list| list.into_iter().map(PathBuf::from).collect::<Vec<_>>()));
        assert_eq!(parse_pairs(b"a b\n:100644 000000 aa 00 D\0x"), None);
    }
}

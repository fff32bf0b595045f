//! The files of a change with their sizes and contents, lines that undo an earlier merge, and the commits of the
//! work: the raw material of the facts about it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use liza_ids::Sha;

use crate::diff::change::{ContentChange, PathChanges};
use crate::diff::objects::ObjectQuery;
use crate::diff::patch::plain_diff;
use crate::diff::tree_changes::{TreeChange, TreeEntry, parse_raw};
use crate::program::error::GitError;
use crate::program::repo::{Repo, path, sha};

const ACTION: &str = "reading a change";

/// The largest file that is read.
const FILE_MAX: u64 = 1 << 20;

/// The most bytes of all files together.
const FILES_MAX: u64 = 64 << 20;

/// The steps of the integration branch in which undone lines are looked for, and how many of them are read.
const STEPS_MAX: usize = 200;
const STEPS_READ: usize = 20;

/// The letters and digits that a hunk needs to be more than punctuation.
const TELLING: usize = 12;

/// The most commits of the work that are listed.
const COMMITS_MAX: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: PathBuf,
    pub added: usize,
    pub removed: usize,
    change: TreeChange,
}

/// The content of a file before and after a change; `None` where it does not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileContents {
    pub old: Option<Vec<u8>>,
    pub new: Option<Vec<u8>>,
    /// True if a side was too large to be read.
    pub is_too_large: bool,
}

/// A path in which a change undoes lines of an earlier step of the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneLines {
    pub step: Sha,
    /// As git quotes it.
    pub path: String,
}

impl Repo {
    /// The files that differ between two commits or trees, with the numbers of lines.
    pub fn changed_files(&self, from: &Sha, to: &Sha) -> Result<Vec<ChangedFile>, GitError> {
        let isolated = self.isolated_from_settings(from)?;
        let command = plain_diff(isolated.command(ACTION), from);
        let command = command.args(["--no-renames", "--no-abbrev", "--raw", "--numstat", "-z"]);
        command.args([from.as_str(), to.as_str(), "--"]).read_with(parse_files)
    }

    /// The contents of these files, in the same order. Links, submodules and large files have none.
    pub fn contents(&self, files: &[&ChangedFile]) -> Result<Vec<FileContents>, GitError> {
        let sides = || files.iter().flat_map(|file| [&file.change.old, &file.change.new]);
        let object = |entry: &Option<TreeEntry>| {
            let is_file = |entry: &&TreeEntry| !entry.is_link() && !entry.is_submodule();
            entry.as_ref().filter(is_file).map(|entry| entry.object.clone())
        };
        let names: Vec<String> = sides().filter_map(object).collect();
        let queries: Vec<ObjectQuery<'_>> = names.iter().map(|name| ObjectQuery::Name(name)).collect();
        let mut left = FILES_MAX;
        let mut read: Vec<&String> = Vec::new();
        for (name, found) in names.iter().zip(self.command(ACTION).read_objects(&queries)?) {
            let size = found.map_or(u64::MAX, |object| object.size);
            if size <= FILE_MAX && size <= left && !read.contains(&name) {
                left -= size;
                read.push(name);
            }
        }
        let queries: Vec<ObjectQuery<'_>> = read.iter().map(|name| ObjectQuery::Content(name)).collect();
        let objects = self.command(ACTION).read_objects(&queries)?.into_iter();
        let known: BTreeMap<&String, Vec<u8>> = read
            .into_iter()
            .zip(objects)
            .filter_map(|(name, object)| Some((name, object?.content)))
            .collect();
        let contents = |file: &&ChangedFile| {
            let (old, new) = (object(&file.change.old), object(&file.change.new));
            let content = |name: &Option<String>| name.as_ref().and_then(|name| known.get(name).cloned());
            let is_too_large = [&old, &new].into_iter().flatten().any(|name| !known.contains_key(name));
            FileContents { old: content(&old), new: content(&new), is_too_large }
        };
        Ok(files.iter().map(contents).collect())
    }

    /// The paths in which a change of `head` to `to` undoes exactly lines that a recent step of the branch made.
    pub fn undone_lines(&self, head: &Sha, to: &Sha) -> Result<Vec<UndoneLines>, GitError> {
        let changes = self.path_changes(head, to)?;
        let steps = self.first_parents(head)?;
        let trees: Vec<(&Sha, &Sha)> =
            steps.iter().skip(1).zip(&steps).map(|((_, before), (_, after))| (before, after)).collect();
        let of_steps = self.changes_of_pairs(&trees)?;
        let touching = trees.iter().zip(&steps).zip(&of_steps).filter(|(_, made)| touches(made, &changes));
        let mut undone = Vec::new();
        for (((before, after), (step, _)), _) in touching.take(STEPS_READ) {
            let made = self.path_changes(before, after)?;
            let paths = changes.iter().filter(|(path, change)| {
                made.get(*path).is_some_and(|made| undoes(&change.content, &made.content))
            });
            undone.extend(paths.map(|(path, _)| UndoneLines { step: step.clone(), path: path.clone() }));
        }
        Ok(undone)
    }

    /// The newest steps of a branch, each with its tree, the newest first.
    fn first_parents(&self, head: &Sha) -> Result<Vec<(Sha, Sha)>, GitError> {
        let command = self.command(ACTION).args(["rev-list", "--first-parent", "--no-commit-header"]);
        let command = command.args(["--format=%H %T", &format!("--max-count={}", STEPS_MAX + 1)]);
        let text = command.args([head.as_str(), "--"]).read_text()?;
        let step = |line: &str| {
            let (commit, tree) = line.split_once(' ')?;
            Some((sha(commit.as_bytes())?, sha(tree.as_bytes())?))
        };
        Ok(text.lines().filter_map(step).collect())
    }

    /// The commits that `commit` adds to the branch at `head`.
    pub fn added_commits(&self, head: &Sha, commit: &Sha) -> Result<Vec<Sha>, GitError> {
        let command = self.command(ACTION).args(["rev-list", &format!("--max-count={COMMITS_MAX}")]);
        let text = command.args([commit.as_str(), "--not", head.as_str(), "--"]).read_text()?;
        Ok(text.lines().filter_map(|line| sha(line.as_bytes())).collect())
    }
}

fn touches(step: &BTreeMap<PathBuf, TreeChange>, changes: &PathChanges) -> bool {
    step.keys().any(|path| changes.contains_key(path.to_string_lossy().as_ref()))
}

/// True if one hunk is the inverse of one that was made.
fn undoes(change: &ContentChange, made: &ContentChange) -> bool {
    let (ContentChange::Lines(change), ContentChange::Lines(made)) = (change, made) else { return false };
    let made: Vec<[Vec<&[u8]>; 2]> = made.iter().map(|hunk| sides(hunk)).collect();
    change.iter().filter(|hunk| is_telling(hunk)).any(|hunk| {
        let [removed, added] = sides(hunk);
        made.contains(&[added, removed])
    })
}

/// The removed and the added lines of a hunk.
fn sides(hunk: &[u8]) -> [Vec<&[u8]>; 2] {
    let of = |sign: u8| {
        let lines = hunk.split(|byte| *byte == b'\n').filter(move |line| line.first() == Some(&sign));
        lines.filter_map(|line| line.get(1..)).collect()
    };
    [of(b'-'), of(b'+')]
}

fn is_telling(hunk: &[u8]) -> bool {
    hunk.iter().filter(|byte| byte.is_ascii_alphanumeric()).count() >= TELLING
}

/// The output of `--raw --numstat -z`: the entries, then `ADDED\tREMOVED\tpath\0` for each.
pub(super) fn parse_files(output: &[u8]) -> Option<Vec<ChangedFile>> {
    let mut end = 0;
    while output.get(end) == Some(&b':') {
        for _ in 0..2 {
            end += output.get(end..)?.iter().position(|byte| *byte == 0)? + 1;
        }
    }
    let (raw, numbers) = output.split_at(end);
    let mut changes = parse_raw(raw)?;
    let fields = numbers.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let file = |field: &[u8]| {
        let mut parts = field.splitn(3, |byte| *byte == b'\t');
        let mut number = || std::str::from_utf8(parts.next()?).ok();
        let (added, removed) = (number()?.parse().unwrap_or(0), number()?.parse().unwrap_or(0));
        let path = path(parts.next()?);
        let change = changes.remove(&path)?;
        Some(ChangedFile { path, added, removed, change })
    };
    fields.map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: JU-07
    #[test]
    fn files_are_parsed_with_their_numbers() {
        let one = "1".repeat(40);
        let raw = format!(":100644 000000 {one} {one} D\0a\tb\0:000000 100644 {one} {one} A\0c\0");
        let files = parse_files(format!("{raw}0\t3\ta\tb\0-\t-\tc\0").as_bytes()).unwrap();
        let found: Vec<_> =
            files.iter().map(|file| (file.path.to_str().unwrap(), file.added, file.removed)).collect();
        assert_eq!(found, [("a\tb", 0, 3), ("c", 0, 0)]);
        assert_eq!(parse_files(b""), Some(Vec::new()));
        assert_eq!(parse_files(b"1\t2\tunknown\0"), None);
    }

    /// Covers: JU-07
    #[test]
    fn a_hunk_is_undone_by_its_inverse_only() {
        let lines = |hunks: &[&str]| {
            ContentChange::Lines(hunks.iter().map(|hunk| hunk.as_bytes().to_vec()).collect())
        };
        let made = lines(&["+}\n", "-let total = 1;\n+let total = 2;\n"]);
        assert!(undoes(&lines(&["-let total = 2;\n+let total = 1;\n"]), &made));
        assert!(!undoes(&lines(&["-let total = 1;\n+let total = 2;\n"]), &made));
        assert!(!undoes(&lines(&["-let total = 2;\n"]), &made));
        assert!(!undoes(&lines(&["-}\n"]), &made), "punctuation is no news");
    }
}

//! The difference of two trees as a patch for people. Nothing in a repository influences it: it is made in an
//! isolated git folder, with no attributes at all, and no program takes part.

use std::path::PathBuf;

use liza_ids::Sha;

use crate::program::command::{GitCommand, TREE_LIMIT};
use crate::program::error::GitError;
use crate::program::repo::{Repo, path};

const ACTION: &str = "comparing commits";

/// The largest patch of several files. A person and a model read more of it file by file.
pub const PATCH_MAX: usize = 1 << 20;

pub(crate) const FILE_PATCH_MAX: usize = 64 << 20;

/// The names of the empty tree, which every repository has.
const EMPTY_TREES: [&str; 2] = [
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pub stat: String,
    /// Every line that differs; `None` if that is too much at once.
    pub text: Option<String>,
    /// The files, if it is too much.
    pub files: Vec<PathBuf>,
}

impl Repo {
    /// The newest commit that both have; `None` if they share none.
    pub fn merge_base(&self, one: &Sha, other: &Sha) -> Result<Option<Sha>, GitError> {
        Ok(self.merge_bases(one, other)?.into_iter().next())
    }

    /// Compares two commits or trees, in these files and folders; without any, in all.
    pub fn patch(&self, from: &Sha, to: &Sha, paths: &[String]) -> Result<Patch, GitError> {
        let isolated = self.isolated_from_settings(from)?;
        let diff = |options: &[&str]| {
            let command = plain_diff(isolated.command(ACTION), from).args(options);
            command.args([from.as_str(), to.as_str(), "--"]).args(paths)
        };
        let stat = diff(&["-M", "--stat=80"]).at_most(PATCH_MAX).read()?;
        let stat = String::from_utf8_lossy(&stat).trim_end_matches('\n').to_owned();
        // One byte more than allowed distinguishes a patch that just fits from one that is too large.
        let patch = |largest: usize| {
            let patch = diff(&["-M", "-p", "-U3"]).at_most(largest + 1).read()?;
            let text = || String::from_utf8_lossy(&patch).trim_end_matches('\n').to_owned();
            Ok((patch.len() <= largest).then(text))
        };
        let mut text = patch(PATCH_MAX)?;
        let mut files = Vec::new();
        if text.is_none() {
            let names = diff(&["--name-only", "-z"]).read()?;
            files = names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(path).collect();
            text = if files.len() == 1 { patch(FILE_PATCH_MAX)? } else { None };
        }
        Ok(Patch { stat, text, files })
    }
}

/// A comparison that shows every byte, despite attributes and settings. The commit tells the format of names.
pub(crate) fn plain_diff(command: GitCommand, commit: &Sha) -> GitCommand {
    let empty = EMPTY_TREES.into_iter().find(|tree| tree.len() == commit.as_str().len());
    command
        // Attributes are of the empty tree; those of the person and of the machine are left out too.
        .env("GIT_ATTR_SOURCE", empty.unwrap_or(EMPTY_TREES[0]))
        .env("GIT_ATTR_NOSYSTEM", "1")
        .args(["-c", "core.attributesFile=/dev/null", "-c", "core.quotePath=false"])
        .args(["--literal-pathspecs", "diff-tree", "-r", "--text"])
        .args(["--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none"])
        .runs_no_program()
        .limit(TREE_LIMIT)
}

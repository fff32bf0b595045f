//! Keeps the ignored files of a worktree that is about to be removed, within limits: a local setting or a
//! note may exist nowhere else. They go to `refs/liza/ignored/TASK/…`, apart from the work: most are the
//! output of a build. The commit's message lists them, and names those that were too large.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use liza_ids::TaskId;
use liza_sandbox::sys::untrusted::UntrustedFolder;

use crate::program::error::GitError;
use crate::program::repo::{Repo, sha};
use crate::workspace::rescue::always_the_same;
use crate::workspace::staged_copy::{StagedCopy, nul_list};
use crate::workspace::status::{FileChange, WorktreeStatus};
use crate::workspace::view::View;

const FILE_BYTES: u64 = 256 << 10;
/// Per worktree.
const TOTAL_BYTES: u64 = 4 << 20;
/// The most files per worktree, and names in a message.
const COUNT: usize = 500;

#[derive(Debug, Default)]
struct IgnoredFiles {
    kept: Vec<PathBuf>,
    /// Files and folders that are not kept, or not completely.
    left_out: Vec<PathBuf>,
    bytes: u64,
}

impl Repo {
    pub(crate) fn save_ignored(
        &self,
        task: &TaskId,
        view: &View<'_>,
        status: &WorktreeStatus,
    ) -> Result<(), GitError> {
        let mut files = IgnoredFiles::default();
        let is_ignored = |change: &&FileChange| matches!(change, FileChange::Ignored { .. });
        for change in status.changes.iter().filter(is_ignored).take(COUNT) {
            files.add(view.tree(), change.path());
        }
        if files.kept.is_empty() && files.left_out.is_empty() {
            return Ok(());
        }
        const ACTION: &str = "keeping ignored files";
        let scratch = view.git_dir().join("ignored");
        let tree = UntrustedFolder::open(view.tree());
        let tree = tree.map_err(|error| GitError::io(ACTION, view.tree(), error))?;
        let mut copy = StagedCopy::of(self, &tree, &std::mem::take(&mut files.kept), FILE_BYTES)?;
        // A file that cannot be read must not keep the others from being kept, nor the worktree from being removed.
        files.left_out.append(&mut copy.unreadable);
        files.left_out.append(&mut copy.hollow);
        let command = || view.command_at(ACTION, copy.folder()).env("GIT_INDEX_FILE", &scratch);
        command().args(["read-tree", "--empty"]).check()?;
        let add = |paths: &[PathBuf]| -> Result<bool, GitError> {
            let add = command().args(["update-index", "--add", "-z", "--stdin"]).stdin(nul_list(paths));
            Ok(paths.is_empty() || add.run()?.status == Some(0))
        };
        if add(&copy.copied)? {
            files.kept.append(&mut copy.copied.clone());
        } else {
            for path in &copy.copied {
                let added = add(std::slice::from_ref(path))?;
                if added { files.kept.push(path.clone()) } else { files.left_out.push(path.clone()) }
            }
        }
        let tree = command().arg("write-tree").read_with(sha)?;
        view.adopt(ACTION, &tree)?;
        let commit = always_the_same(self.command(ACTION)).commit(&files.message(task), &tree, &[], &[])?;
        let name = format!("refs/liza/ignored/{task}/{commit}");
        self.command(ACTION).args(["update-ref", "--", &name, commit.as_str()]).check()
    }
}

impl IgnoredFiles {
    fn add(&mut self, tree: &Path, path: &Path) {
        let Ok(data) = fs::symlink_metadata(tree.join(path)) else { return };
        if data.is_dir() {
            // A nested repository is saved as such.
            if tree.join(path).join(".git").symlink_metadata().is_ok() {
                return;
            }
            let entries = fs::read_dir(tree.join(path)).into_iter().flatten().flatten();
            let mut names: Vec<OsString> = entries.map(|entry| entry.file_name()).collect();
            names.sort_unstable();
            for name in names {
                if self.is_full() {
                    self.left_out.push(path.to_owned());
                    return;
                }
                self.add(tree, &path.join(name));
            }
        } else if !(data.is_file() || data.is_symlink()) {
            // A pipe or a socket has no content.
        } else if data.len() > FILE_BYTES || self.bytes + data.len() > TOTAL_BYTES || self.is_full() {
            self.left_out.push(path.to_owned());
        } else {
            self.bytes += data.len();
            self.kept.push(path.to_owned());
        }
    }

    fn is_full(&self) -> bool {
        self.kept.len() + self.left_out.len() >= COUNT
    }

    fn message(&self, task: &TaskId) -> String {
        let list = |paths: &[PathBuf]| {
            paths
                .iter()
                .map(|path| format!("  {}\n", path.to_string_lossy().escape_debug()))
                .collect::<String>()
        };
        let left_out = match self.left_out.is_empty() {
            true => String::new(),
            false => format!("\nNot kept (too large, too many, or not readable):\n{}", list(&self.left_out)),
        };
        format!(
            "liza: ignored files of {task}\n\nSaved before its worktree was removed:\n{}{left_out}\nLiza-Task: {task}\n",
            list(&self.kept)
        )
    }
}

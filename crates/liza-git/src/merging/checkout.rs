//! Checkouts in which people work: updates them when their branch moves, and after a crash. Never replaces or
//! removes an untracked file, nor touches an unfinished git operation. Repairs nothing without an
//! `UpdateNote`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use liza_ids::Sha;

use crate::diff::scratch_index::ScratchIndex;
use crate::diff::tree_changes::{TreeEntry, parse_raw};
use crate::merging::update_note::UpdateNote;
use crate::program::command::{GitCommand, TREE_LIMIT};
use crate::program::error::GitError;
use crate::program::refs::Branch;
use crate::program::repo::{Repo, path};

pub(crate) const UPDATING: &str = "updating a checkout of the branch";

/// Git only says what it would do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DryRun {
    Yes,
    No,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpdateRefusal {
    /// In git's own words where git gives a reason.
    pub message: String,
    /// No file can have been changed.
    pub is_untouched: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptedUpdate {
    pub path: PathBuf,
    /// Without `refs/heads/`.
    pub branch: String,
    pub outcome: UpdateOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateOutcome {
    /// The files are those of the branch.
    Completed {
        /// Files that were neither as before nor as after the move; they were not touched.
        kept: Vec<PathBuf>,
    },
    /// The person has moved the branch or checked out another one.
    Void,
    /// The person's git command is unfinished; the repair waits for its end.
    Waits(&'static str),
}

/// The actions on the paths of an interrupted update.
#[derive(Debug, Default)]
struct Repair {
    /// Lines for `update-index --index-info`.
    index: Vec<u8>,
    write: Vec<PathBuf>,
    delete: Vec<PathBuf>,
    kept: Vec<PathBuf>,
}

impl Repo {
    /// The unfinished git command in the project's checkout, such as `rebase`.
    pub fn unfinished_operation(&self) -> Result<Option<&'static str>, GitError> {
        Ok(unfinished_operation(&self.git_dir_of(self.root())?))
    }

    /// Updates a checkout from one commit to another; returns the reason if that is impossible.
    pub(crate) fn update_checkout(
        &self,
        folder: &Path,
        old: &Sha,
        new: &Sha,
        dry_run: DryRun,
    ) -> Result<Option<UpdateRefusal>, GitError> {
        if let Some(file) = self.untracked_in_the_way(folder, old, new)? {
            let message = format!("git does not track {}, and the merge would replace it", file.display());
            return Ok(Some(UpdateRefusal { message, is_untouched: true }));
        }
        let mode: &[&str] = match dry_run {
            DryRun::Yes => {
                // A file that was only touched must not count as changed; the exit status does not matter.
                self.refresh(folder)?;
                &["-n"]
            }
            DryRun::No => &[],
        };
        let command = self.command_in(UPDATING, folder).args(["read-tree", "-m", "-u"]).args(mode);
        let command = command.args([old.as_str(), new.as_str()]).limit(TREE_LIMIT);
        let output = command.run()?;
        let message = || match &output.advice {
            Some(advice) => format!("{}; {advice}", output.message()),
            None => output.message(),
        };
        let is_untouched = matches!(dry_run, DryRun::Yes);
        Ok((output.status != Some(0)).then(|| UpdateRefusal { message: message(), is_untouched }))
    }

    fn refresh(&self, folder: &Path) -> Result<(), GitError> {
        let command = self.command_in(UPDATING, folder).args(["update-index", "-q", "--refresh"]);
        command.limit(TREE_LIMIT).run().map(drop)
    }

    /// An untracked file of the checkout, ignored or not, at, above or below a path that `new` adds.
    fn untracked_in_the_way(&self, folder: &Path, old: &Sha, new: &Sha) -> Result<Option<PathBuf>, GitError> {
        let changes = self.tree_changes(old, new)?;
        let added = changes.iter().filter(|(_, change)| change.old.is_none() && change.new.is_some());
        let present: BTreeSet<PathBuf> = added.flat_map(|(path, _)| files_at(folder, path)).collect();
        if present.is_empty() {
            return Ok(None);
        }
        let command = self.command_in(UPDATING, folder).arg("--literal-pathspecs");
        let tracked = command.args(["ls-files", "-z", "--full-name", "--"]).args(&present).read()?;
        let tracked: BTreeSet<PathBuf> = tracked.split(|byte| *byte == 0).map(path).collect();
        Ok(present.into_iter().find(|file| !tracked.contains(file)))
    }

    /// Notes that a checkout is being updated, to distinguish a crash from a person's changes.
    pub(crate) fn begin_update(&self, folder: &Path, note: &UpdateNote) -> Result<(), GitError> {
        let git_dir = self.git_dir_of(folder)?;
        note.write(&git_dir).map_err(|error| GitError::io(UPDATING, &UpdateNote::place(&git_dir), error))
    }

    /// Removes the note of [`Repo::begin_update`].
    pub(crate) fn end_update(&self, folder: &Path) -> Result<(), GitError> {
        let note = UpdateNote::place(&self.git_dir_of(folder)?);
        match fs::remove_file(&note) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(GitError::io(UPDATING, &note, error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The folder with an unfinished rebase of the branch: it would fail, or lose a merge, if the branch moved.
    pub(crate) fn rebase_of(&self, branch: &Branch) -> Result<Option<PathBuf>, GitError> {
        let full = branch.full();
        let names = |file: PathBuf| {
            fs::read_to_string(file).is_ok_and(|text| text.lines().any(|line| line.trim() == full))
        };
        let files = ["rebase-merge/head-name", "rebase-merge/update-refs", "rebase-apply/head-name"];
        let is_rebasing = |git_dir: &Path| files.iter().any(|file| names(git_dir.join(file)));
        if is_rebasing(self.common_dir()) {
            return Ok(Some(
                self.worktrees()?.into_iter().next().map_or_else(|| self.root().to_owned(), |main| main.path),
            ));
        }
        let linked = fs::read_dir(self.common_dir().join("worktrees")).into_iter().flatten().flatten();
        let found = linked.map(|entry| entry.path()).find(|git_dir| is_rebasing(git_dir));
        Ok(found.map(|git_dir| {
            let link = fs::read_to_string(git_dir.join("gitdir")).unwrap_or_default();
            Path::new(link.trim_end()).parent().map_or(git_dir, Path::to_owned)
        }))
    }

    /// True if a checkout has the note of an update that runs or was interrupted. Does not start git.
    pub fn has_update_note(&self) -> bool {
        let linked = fs::read_dir(self.common_dir().join("worktrees")).into_iter().flatten().flatten();
        let own = [self.git_dir().to_owned(), self.common_dir().to_owned()];
        own.into_iter()
            .chain(linked.map(|entry| entry.path()))
            .any(|git_dir| UpdateNote::place(&git_dir).exists())
    }

    /// Completes every interrupted update of a checkout. The caller makes sure that no branch is being moved.
    pub fn repair_checkouts(&self) -> Result<Vec<InterruptedUpdate>, GitError> {
        let mut found = Vec::new();
        if !self.has_update_note() {
            return Ok(found);
        }
        for entry in self.worktrees()?.into_iter().filter(|entry| entry.path.is_dir()) {
            found.extend(self.repair_checkout(&entry.path, entry.branch.as_deref())?);
        }
        Ok(found)
    }

    /// Repairs one checkout of the branch with this full name; `None` if its update has not begun, or has ended.
    pub(crate) fn repair_checkout(
        &self,
        folder: &Path,
        checked_out: Option<&str>,
    ) -> Result<Option<InterruptedUpdate>, GitError> {
        let git_dir = self.git_dir_of(folder)?;
        let Some(note) = UpdateNote::read(&git_dir) else { return Ok(None) };
        let name = note.branch.as_deref().or(checked_out).unwrap_or_default();
        let branch = name.trim_start_matches("refs/heads/").to_owned();
        let ended = |outcome| {
            Ok(Some(InterruptedUpdate { path: folder.to_owned(), branch: branch.clone(), outcome }))
        };
        if let Some(operation) = unfinished_operation(&git_dir) {
            return ended(UpdateOutcome::Waits(operation));
        }
        let known = branch.parse::<Branch>().ok().filter(|_| checked_out == Some(name));
        let tip = known.as_ref().map(|branch| self.tip(branch)).transpose()?.flatten();
        let kept = match tip.filter(|tip| *tip == note.to || *tip == note.from) {
            None => {
                self.end_update(folder)?;
                return ended(UpdateOutcome::Void);
            }
            Some(tip) if tip == note.to => self.finish_update(folder, &note.from, &note.to)?,
            Some(_) if note.is_back => self.finish_update(folder, &note.to, &note.from)?,
            // The branch did not move, so neither did the files.
            Some(_) => {
                self.end_update(folder)?;
                return Ok(None);
            }
        };
        self.end_update(folder)?;
        ended(UpdateOutcome::Completed { kept })
    }

    /// Updates the paths that differ between two commits, except those that match neither; returns these.
    pub(crate) fn finish_update(
        &self,
        folder: &Path,
        old: &Sha,
        new: &Sha,
    ) -> Result<Vec<PathBuf>, GitError> {
        self.clear_stale_locks(Some(folder), &[])?;
        let changes = self.tree_changes(old, new)?;
        let staged = self.command_in(UPDATING, folder).args(["diff-index", "--cached", "--raw", "-z"]);
        let staged = staged.args(["--no-renames", "--no-abbrev", old.as_str(), "--"]).limit(TREE_LIMIT);
        let staged = staged.read_with(parse_raw)?;
        let (not_old, not_new) = (self.differing_files(folder, old)?, self.differing_files(folder, new)?);
        let mut repair = Repair::default();
        for (file, change) in &changes {
            let in_index = staged.get(file).map_or(&change.old, |staged| &staged.new);
            if in_index != &change.old && in_index != &change.new {
                repair.kept.push(file.clone());
                continue;
            }
            repair.add_to_index(file, change.new.as_ref(), new);
            let is_old = change.old.is_some() && !not_old.contains(file);
            let is_new = change.new.is_some() && !not_new.contains(file);
            let exists = fs::symlink_metadata(folder.join(file)).is_ok();
            let is_torn = exists && !is_old && !is_new && self.is_torn(folder, file, [old, new])?;
            match &change.new {
                Some(new) if new.is_submodule() || is_new => {}
                Some(_) if is_old || is_torn || !exists => repair.write.push(file.clone()),
                None if !exists || change.old.as_ref().is_some_and(TreeEntry::is_submodule) => {}
                None if is_old || is_torn => repair.delete.push(file.clone()),
                Some(_) | None => repair.kept.push(file.clone()),
            }
        }
        repair.keep_what_blocks(folder);
        self.carry_out(folder, repair)
    }

    /// True if a file is the beginning of one of its versions: git ended, or the disk was full, while it was
    /// written. Before the update it was one of them.
    fn is_torn(&self, folder: &Path, file: &Path, versions: [&Sha; 2]) -> Result<bool, GitError> {
        let path = folder.join(file);
        if !fs::symlink_metadata(&path).is_ok_and(|data| data.is_file()) {
            return Ok(false);
        }
        let found = fs::read(&path).map_err(|error| GitError::io(UPDATING, &path, error))?;
        for version in versions {
            let mut name = OsString::from(format!("{version}:"));
            name.push(file);
            let command = self.command_in(UPDATING, folder).args(["cat-file", "--filters"]).arg(name);
            let whole = command.limit(TREE_LIMIT).run()?;
            if whole.status == Some(0) && whole.stdout.starts_with(&found) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn carry_out(&self, folder: &Path, repair: Repair) -> Result<Vec<PathBuf>, GitError> {
        let command = || self.command_in(UPDATING, folder).limit(TREE_LIMIT);
        command().args(["update-index", "-z", "--index-info"]).stdin(repair.index).check()?;
        for file in &repair.delete {
            let path = folder.join(file);
            fs::remove_file(&path).map_err(|error| GitError::io(UPDATING, &path, error))?;
            // Folders that are not empty stay.
            let parents = file.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
            let _ =
                parents.map(|parent| fs::remove_dir(folder.join(parent))).take_while(Result::is_ok).count();
        }
        if !repair.write.is_empty() {
            let names = repair.write.iter().flat_map(|file| [file.as_os_str().as_bytes(), b"\0"].concat());
            let names: Vec<u8> = names.collect();
            command().args(["checkout-index", "-f", "-u", "-z", "--stdin"]).stdin(names).check()?;
        }
        self.refresh(folder)?;
        Ok(repair.kept)
    }

    /// The files of a checkout that differ from a commit; missing ones too.
    fn differing_files(&self, folder: &Path, commit: &Sha) -> Result<BTreeSet<PathBuf>, GitError> {
        let scratch = ScratchIndex::of(self);
        let command = |words: &[&str]| -> GitCommand {
            scratch.command(self, UPDATING, folder).args(words).limit(TREE_LIMIT)
        };
        command(&["read-tree", commit.as_str()]).check()?;
        command(&["update-index", "-q", "--refresh"]).run()?;
        let output = command(&["diff-files", "--name-only", "-z"]).read()?;
        Ok(output.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(path).collect())
    }
}

impl Repair {
    fn add_to_index(&mut self, file: &Path, entry: Option<&TreeEntry>, like: &Sha) {
        let line = match entry {
            Some(entry) => format!("{} {} 0\t", entry.mode, entry.object),
            None => format!("0 {} 0\t", "0".repeat(like.as_str().len())),
        };
        self.index.extend_from_slice(line.as_bytes());
        self.index.extend_from_slice(file.as_os_str().as_bytes());
        self.index.push(0);
    }

    /// Keeps a file in the place of a folder.
    fn keep_what_blocks(&mut self, folder: &Path) {
        let Self { write, delete, kept, .. } = self;
        write.retain(|file| {
            let parents = file.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
            let blocks = |parent: &&Path| {
                fs::symlink_metadata(folder.join(parent)).is_ok_and(|data| !data.is_dir())
                    && !delete.iter().any(|deleted| deleted == parent)
            };
            let blocked = parents.filter(blocks).count() > 0;
            if blocked {
                kept.push(file.clone());
            }
            !blocked
        });
    }
}

/// The files of a checkout at a path, below it, or in place of one of its folders.
fn files_at(folder: &Path, file: &Path) -> Vec<PathBuf> {
    let mut parents: Vec<&Path> = file.ancestors().filter(|parent| !parent.as_os_str().is_empty()).collect();
    parents.reverse();
    for parent in parents {
        match fs::symlink_metadata(folder.join(parent)) {
            Err(_) => return Vec::new(),
            Ok(data) if data.is_dir() && parent == file => return files_below(folder, file),
            Ok(data) if data.is_dir() => {}
            Ok(_) => return vec![parent.to_owned()],
        }
    }
    Vec::new()
}

fn files_below(folder: &Path, below: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join(below)).into_iter().flatten().flatten();
    let files = entries.flat_map(|entry| {
        let name = below.join(entry.file_name());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder { files_below(folder, &name) } else { vec![name] }
    });
    files.collect()
}

/// The unfinished git command in a checkout, such as `rebase`.
fn unfinished_operation(git_dir: &Path) -> Option<&'static str> {
    let files = [
        ("MERGE_HEAD", "merge"),
        ("rebase-merge", "rebase"),
        ("rebase-apply", "rebase"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ];
    files.into_iter().find(|(file, _)| git_dir.join(file).exists()).map(|(_, name)| name)
}

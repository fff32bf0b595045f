//! The build folders of a judged checkout: folders that git ignores, as the commit says, and of which the commit has no file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use liza_ids::Sha;

use crate::program::error::GitError;
use crate::program::repo::{Repo, path};
use crate::workspace::giant_files::remove_giant_settings;
use crate::workspace::view::Files;

const ACTION: &str = "looking for build folders";

impl Repo {
    /// The files of a commit, each with its mode and object.
    pub fn files_of(&self, commit: &Sha) -> Result<BTreeMap<PathBuf, String>, GitError> {
        let tree = self.tree_entries(commit)?.into_iter();
        Ok(tree.map(|(path, entry)| (path, format!("{} {}", entry.mode, entry.object))).collect())
    }

    /// The outermost build folders of a checkout in which nothing runs any more; code of the commit may have written there.
    pub fn build_folders(&self, checkout: &Path, commit: &Sha) -> Result<Vec<PathBuf>, GitError> {
        let failed = |error| GitError::io(ACTION, checkout, error);
        let files = self.tree_entries(commit)?;
        let with_files: BTreeSet<&Path> = files.keys().flat_map(|file| file.ancestors().skip(1)).collect();
        let mut others = Vec::new();
        folders_beside(checkout, Path::new(""), &with_files, &mut others).map_err(failed)?;
        if others.is_empty() {
            return Ok(others);
        }
        remove_giant_settings(checkout)?;
        let view = self.view(checkout, Some(commit), Files::All)?;
        // With the slash, also a rule for folders only matches.
        let list: Vec<u8> =
            others.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"/\0"].concat()).collect();
        let ask = view.command(ACTION).args(["check-ignore", "-z", "--stdin"]).stdin(list);
        let output = ask.run()?;
        match output.status {
            Some(0) => Ok(output.stdout.split(|byte| *byte == 0).filter_map(folder).collect()),
            Some(1) => Ok(Vec::new()),
            _ => Err(ask.failed(&output)),
        }
    }
}

fn folder(line: &[u8]) -> Option<PathBuf> {
    let name = line.strip_suffix(b"/").unwrap_or(line);
    (!name.is_empty()).then(|| path(name))
}

/// Collects the folders without files of the commit, of which the folder above has some. Follows no link.
fn folders_beside(
    top: &Path,
    below: &Path,
    with_files: &BTreeSet<&Path>,
    found: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for entry in fs::read_dir(top.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        match () {
            () if !entry.file_type()?.is_dir() || path == Path::new(".git") => {}
            () if with_files.contains(path.as_path()) => folders_beside(top, &path, with_files, found)?,
            () => found.push(path),
        }
    }
    Ok(())
}

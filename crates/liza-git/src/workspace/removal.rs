//! Removes Liza's references and ignore patterns from a repository. Does not touch files and branches with work.

use std::fs;

use liza_ids::Sha;

use crate::program::error::GitError;
use crate::program::refs_on_disk::refs_below;
use crate::program::repo::{EXCLUDING, Repo};

const PREFIX: &str = "refs/liza/";

impl Repo {
    pub fn own_refs(&self) -> Vec<(String, Sha)> {
        refs_below(self.common_dir(), &[PREFIX]).into_iter().collect()
    }

    /// Deletes references that have not moved since.
    pub fn delete_refs(&self, refs: &[(String, Sha)]) -> Result<(), GitError> {
        let lines: String = refs.iter().map(|(name, at)| format!("delete {name} {at}\n")).collect();
        self.command("deleting Liza's references").args(["update-ref", "--stdin"]).stdin(lines).check()
    }

    /// Removes patterns from this repository's own list of ignored files; returns those that were present.
    pub fn include_again<'p>(&self, patterns: &[&'p str]) -> Result<Vec<&'p str>, GitError> {
        let (file, old) = self.exclude_file()?;
        let found: Vec<&str> =
            patterns.iter().copied().filter(|pattern| old.lines().any(|line| line == *pattern)).collect();
        if !found.is_empty() {
            let kept =
                old.split_inclusive('\n').filter(|line| !patterns.contains(&line.trim_end_matches('\n')));
            let kept: String = kept.collect();
            fs::write(&file, kept).map_err(|error| GitError::io(EXCLUDING, &file, error))?;
        }
        Ok(found)
    }
}

//! What a range of commits changes, as a patch for people. No program of a repository's configuration takes part.

use liza_core::model::Sha;

use super::error::GitError;
use super::repo::Repo;

const ACTION: &str = "comparing commits";

impl Repo {
    /// The newest commit that both have; `None` if they share none.
    ///
    /// # Errors
    ///
    /// When one of them does not exist.
    pub fn merge_base(&self, one: &Sha, other: &Sha) -> Result<Option<Sha>, GitError> {
        Ok(self.merge_bases(one, other)?.into_iter().next())
    }

    /// The difference of two commits: a summary of the files, then the patch.
    ///
    /// # Errors
    ///
    /// When one of them does not exist.
    pub fn patch(&self, from: &Sha, to: &Sha) -> Result<String, GitError> {
        let options =
            ["diff-tree", "-r", "-M", "-p", "--stat=80", "--no-color", "--no-ext-diff", "--no-textconv"];
        let output = self.command(ACTION).args(options).args([from.as_str(), to.as_str(), "--"]).read()?;
        Ok(String::from_utf8_lossy(&output).trim_end_matches('\n').to_owned())
    }
}

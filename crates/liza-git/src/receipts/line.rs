//! Reads the first-parent line of a branch for `verify`, with few processes however long it is. Judges nothing.

use std::collections::BTreeSet;
use std::fs;

use liza_ids::Sha;

use crate::program::command::TREE_LIMIT;
use crate::program::error::GitError;
use crate::program::repo::{Repo, sha};

/// A commit of the line. The lines at the end of its message are text that anybody can write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineStep {
    pub commit: Sha,
    pub parents: Vec<Sha>,
    pub tree: Sha,
    pub subject: String,
    /// `Approved-by`, `Liza-Task` and the like, as written.
    pub trailers: Vec<(String, String)>,
}

impl LineStep {
    /// The last value of a trailer.
    pub fn trailer(&self, key: &str) -> Option<&str> {
        self.trailers.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

impl Repo {
    /// The first-parent line that ends in a commit, the oldest first.
    pub fn line(&self, head: &Sha) -> Result<Vec<LineStep>, GitError> {
        let command = self.command("reading a branch").args(["rev-list", "--first-parent", "--reverse"]);
        // Of a message only its last paragraph is read, as `git interpret-trailers` does.
        let command =
            command.args(["--no-commit-header", "--format=%H%n%P%n%T%n%s%n%(trailers:only,unfold)%x00"]);
        let text = command.args([head.as_str(), "--"]).limit(TREE_LIMIT).read()?;
        let text = String::from_utf8_lossy(&text);
        Ok(text.split('\0').filter_map(parse).collect())
    }

    /// The commits of that line that another one does not have.
    pub fn line_between(&self, old: &Sha, head: &Sha) -> Result<BTreeSet<Sha>, GitError> {
        let command = self.command("reading a branch").args(["rev-list", "--first-parent"]);
        let text = command.args([format!("{old}..{head}").as_str(), "--"]).read_text()?;
        Ok(text.lines().filter_map(|line| sha(line.as_bytes())).collect())
    }

    /// The commit of a name that a person typed; `None` if there is none.
    pub fn find_commit(&self, name: &str) -> Result<Option<Sha>, GitError> {
        let command = self.command("looking for a commit").args(["rev-parse", "--verify", "--quiet"]);
        let output = command.args(["--end-of-options", &format!("{name}^{{commit}}")]).run()?;
        Ok(sha(&output.stdout).filter(|_| output.status == Some(0)))
    }

    /// The commits at which a shallow clone ends.
    pub fn shallow_ends(&self) -> BTreeSet<Sha> {
        let text = fs::read_to_string(self.common_dir().join("shallow")).unwrap_or_default();
        text.lines().filter_map(|line| sha(line.as_bytes())).collect()
    }

    /// Git's own merges of pairs of commits, by one process: the files, or `None` for a conflict.
    pub fn merge_pairs(&self, pairs: &[(Sha, Sha)]) -> Result<Vec<Option<Sha>>, GitError> {
        let Some((first, _)) = pairs.first() else { return Ok(Vec::new()) };
        let isolated = self.isolated_for_merges(first)?;
        let input: String = pairs.iter().map(|(into, commit)| format!("{into} {commit}\n")).collect();
        let command = isolated
            .command("computing merges")
            .args(["merge-tree", "--write-tree", "--stdin", "--name-only", "--no-messages"])
            .stdin(input)
            .limit(TREE_LIMIT);
        command.read_with(|output| parse_merges(output).filter(|merges| merges.len() == pairs.len()))
    }
}

fn parse(entry: &str) -> Option<LineStep> {
    let mut lines = entry.trim_start_matches('\n').lines();
    let commit = sha(lines.next()?.as_bytes())?;
    let parents = lines.next()?.split(' ').filter_map(|parent| sha(parent.as_bytes())).collect();
    let tree = sha(lines.next()?.as_bytes())?;
    let subject = lines.next().unwrap_or_default().to_owned();
    let trailers = lines.filter_map(|line| line.split_once(": "));
    let trailers = trailers.map(|(key, value)| (key.to_owned(), value.trim().to_owned())).collect();
    Some(LineStep { commit, parents, tree, subject, trailers })
}

/// For each merge 1 if it is clean or 0, the files, the paths in conflict, and an empty field.
fn parse_merges(output: &[u8]) -> Option<Vec<Option<Sha>>> {
    let (mut merges, mut fields) = (Vec::new(), output.split(|byte| *byte == 0));
    loop {
        let status = fields.next()?;
        if status.is_empty() {
            return fields.next().is_none().then_some(merges);
        }
        let tree = sha(fields.next()?)?;
        merges.push((status == b"1").then_some(tree));
        while !fields.next()?.is_empty() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: PV-05
    #[test]
    fn fuzz_git_log() {
        liza_testkit::fuzz::fuzz("git_log", |bytes, _| {
            let text = String::from_utf8_lossy(bytes);
            let steps: Vec<LineStep> = text.split('\0').filter_map(parse).collect();
            assert!(steps.len() <= bytes.len());
            if let Some(merges) = parse_merges(bytes) {
                assert!(merges.len() <= bytes.len() / 40);
            }
        });
    }
}

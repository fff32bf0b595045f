//! Commits that differ from another one in some files only: author, committer, dates, message and parents stay. A signature is
//! dropped, because it is no longer one of the content. Works on the object store of a copy.

use liza_core::model::Sha;
use liza_git::{GitError, Repo};

/// The content of a file in the new commit.
#[derive(Debug, Clone)]
pub(crate) enum FileNow {
    Text(String),
    /// As it is in that commit, or absent as there.
    AsIn(Sha),
}

/// Makes the commit; it is on no branch.
pub(crate) fn recommit(repo: &Repo, commit: &Sha, files: &[(&str, FileNow)]) -> Result<Sha, GitError> {
    let index = repo.common_dir().join("drill-index");
    let git = |arguments: &[&str]| {
        let command = repo.git().command("making a commit for a drill", repo.root());
        command.env("GIT_INDEX_FILE", &index).args(arguments)
    };
    git(&["read-tree", commit.as_str()]).check()?;
    for (path, now) in files {
        let listed = match now {
            FileNow::Text(_) => git(&["ls-files", "-s", "--", path]).read_text()?,
            FileNow::AsIn(other) => git(&["ls-tree", other.as_str(), "--", path]).read_text()?,
        };
        let words: Vec<&str> = listed.split_whitespace().collect();
        let entry = match (now, words.as_slice()) {
            (FileNow::Text(text), [mode, ..]) => {
                let blob = git(&["hash-object", "-w", "--stdin"]).stdin(text.as_bytes()).read_text()?;
                Some(format!("{mode},{blob},{path}"))
            }
            (FileNow::AsIn(_), [mode, _, blob, ..]) => Some(format!("{mode},{blob},{path}")),
            (FileNow::Text(_) | FileNow::AsIn(_), _) => None,
        };
        match entry {
            Some(entry) => git(&["update-index", "--add", "--cacheinfo", &entry]).check()?,
            None => git(&["update-index", "--force-remove", "--", path]).check()?,
        }
    }
    let tree = git(&["write-tree"]).read_text()?;
    let raw = git(&["cat-file", "commit", commit.as_str()]).read()?;
    let made = git(&["hash-object", "-t", "commit", "-w", "--stdin"]).stdin(with_tree(&raw, &tree));
    made.read_text()?.parse().map_err(|_| made.unexpected(tree.as_bytes()))
}

/// The commit object with another tree, and without a signature.
fn with_tree(raw: &[u8], tree: &str) -> Vec<u8> {
    let end = raw.windows(2).position(|pair| pair == b"\n\n").map_or(raw.len(), |at| at + 1);
    let (head, rest) = raw.split_at(end);
    let mut made = format!("tree {tree}\n").into_bytes();
    let mut in_signature = false;
    for line in head.split_inclusive(|byte| *byte == b'\n').skip(1) {
        in_signature = line.starts_with(b"gpgsig") || in_signature && line.starts_with(b" ");
        if !in_signature {
            made.extend_from_slice(line);
        }
    }
    made.extend_from_slice(rest);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: TR-03
    #[test]
    fn only_the_tree_and_the_signature_of_a_commit_change() {
        let raw = b"tree aaa\nparent bbb\nauthor A <a@b> 1 +0100\ncommitter C <c@d> 2 +0000\ngpgsig -----BEGIN\n x\n \n -----END\nencoding latin1\n\nwhat\n\ntree \xe4 aaa\ngpgsig no\n";
        let expected = b"tree ccc\nparent bbb\nauthor A <a@b> 1 +0100\ncommitter C <c@d> 2 +0000\nencoding latin1\n\nwhat\n\ntree \xe4 aaa\ngpgsig no\n";
        assert_eq!(with_tree(raw, "ccc"), expected);
    }
}

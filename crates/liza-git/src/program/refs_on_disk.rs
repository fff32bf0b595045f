//! References, read from git's own files without a process: one file for each, or a line of `packed-refs`.
//!
//! A project whose references are kept elsewhere is refused by `init`. Git writes `packed-refs` before it removes a file, so
//! the files are read first, and none is missed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use liza_ids::Sha;

use crate::program::repo::sha;

/// The longest chain of references that name another one, as in git.
const LINKS_MAX: usize = 5;

/// The commit of a reference by its whole name; `None` if git keeps it elsewhere.
pub(crate) fn ref_on_disk(common_dir: &Path, name: &str) -> Option<Sha> {
    let mut name = name.to_owned();
    for _ in 0..=LINKS_MAX {
        let Ok(text) = fs::read_to_string(common_dir.join(&name)) else {
            return packed_refs(&packed(common_dir)).find(|(packed, _)| *packed == name)?.1;
        };
        match text.strip_prefix("ref:") {
            Some(other) => name = other.trim().to_owned(),
            None => return sha(text.trim().as_bytes()),
        }
    }
    None
}

/// Every reference of these names, and all below them.
pub(crate) fn refs_below(common_dir: &Path, names: &[&str]) -> BTreeMap<String, Sha> {
    let mut loose = Vec::new();
    for name in names {
        collect(common_dir, name.trim_end_matches('/'), &mut loose);
    }
    let is_wanted = |known: &str| {
        let rest = names.iter().filter_map(|name| known.strip_prefix(name.trim_end_matches('/')));
        rest.into_iter().any(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let text = packed(common_dir);
    let wanted = packed_refs(&text).filter(|(known, _)| is_wanted(known));
    let mut found: BTreeMap<String, Sha> =
        wanted.filter_map(|(name, commit)| Some((name.to_owned(), commit?))).collect();
    for name in loose {
        // One that names no commit is broken; git leaves it out as well.
        if let Some(commit) = ref_on_disk(common_dir, &name) {
            found.insert(name, commit);
        }
    }
    found
}

fn collect(common_dir: &Path, name: &str, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(common_dir.join(name)) else {
        if common_dir.join(name).is_file() {
            found.push(name.to_owned());
        }
        return;
    };
    for entry in entries.flatten() {
        let Ok(part) = entry.file_name().into_string() else { continue };
        // Git writes a new value there.
        if !part.ends_with(".lock") {
            collect(common_dir, &format!("{name}/{part}"), found);
        }
    }
}

fn packed(common_dir: &Path) -> String {
    fs::read_to_string(common_dir.join("packed-refs")).unwrap_or_default()
}

fn packed_refs(text: &str) -> impl Iterator<Item = (&str, Option<Sha>)> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.map(|(commit, name)| (name, sha(commit.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(digit: char) -> String {
        digit.to_string().repeat(40)
    }

    /// Covers: MM-12, JU-10
    #[test]
    fn references_are_read_as_git_reads_them() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = place.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let [one, two, three] = ['1', '2', '3'].map(commit);
        write(
            "packed-refs",
            &format!(
                "# pack-refs with: peeled sorted \n{one} refs/heads/task/a\n{one} refs/heads/task/ab\n{one} refs/tags/v1\n^{three}\n"
            ),
        );
        write("refs/heads/task/a", &format!("{two}\n"));
        write("refs/heads/task/new/part", &format!("{three}\n"));
        write("refs/heads/task/b.lock", &format!("{three}\n"));
        write("refs/heads/broken", "no commit\n");
        write("refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main\n");
        write("refs/remotes/origin/main", &format!("{two}\n"));
        write("refs/heads/round", "ref: refs/heads/round\n");
        let below = |names: &[&str]| -> Vec<(String, String)> {
            let found = refs_below(place.path(), names).into_iter();
            found.map(|(name, commit)| (name, commit.as_str()[..1].to_owned())).collect()
        };
        let pairs = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            all.iter().map(|(name, commit)| ((*name).to_owned(), (*commit).to_owned())).collect()
        };
        assert_eq!(below(&["refs/heads/task/a"]), pairs(&[("refs/heads/task/a", "2")]), "not task/ab");
        assert_eq!(
            below(&["refs/heads/"]),
            pairs(&[
                ("refs/heads/task/a", "2"),
                ("refs/heads/task/ab", "1"),
                ("refs/heads/task/new/part", "3")
            ])
        );
        assert_eq!(
            below(&["refs/tags", "refs/remotes"]),
            pairs(&[
                ("refs/remotes/origin/HEAD", "2"),
                ("refs/remotes/origin/main", "2"),
                ("refs/tags/v1", "1")
            ])
        );
        let at = |name: &str| ref_on_disk(place.path(), name).map(|commit| commit.as_str()[..1].to_owned());
        let found =
            ["refs/tags/v1", "refs/heads/task/a", "refs/heads/round", "refs/heads/broken", "refs/none"];
        assert_eq!(found.map(at), [Some("1".into()), Some("2".into()), None, None, None]);
    }
}

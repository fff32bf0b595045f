//! Repositories that code under review makes inside its checkout, or links to: none stays.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_sandbox::sys::remove_tree::remove_tree;

use crate::session::repository_guard::RepositoryGuard;

/// Removes every repository below a checkout of a review, except its own: the reviewer's git would find it,
/// and run its programs. Guarded ones are restored instead. Also removes links to folders elsewhere that the
/// code could write (`written`). Returns the removed paths.
pub(crate) fn remove_nested_repositories(
    top: &Path,
    guards: &[RepositoryGuard],
    written: &[PathBuf],
) -> io::Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    let written: Vec<PathBuf> = written.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, is_git) = (entry.path(), entry.file_name().eq_ignore_ascii_case(".git"));
            if is_git && folder != top && !guards.iter().any(|guard| guard.git == path) {
                remove_tree(&path)?;
                removed.push(path);
            } else if !is_git && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if entry.file_type().is_ok_and(|kind| kind.is_symlink()) && leads_out(&path, top, &written)
            {
                fs::remove_file(&path)?;
                removed.push(path);
            }
        }
    }
    Ok(removed)
}

/// True if a link leads out of a checkout, to a folder that the code or another session could make a repository.
fn leads_out(link: &Path, top: &Path, written: &[PathBuf]) -> bool {
    let could_be_written =
        |target: &Path| written.iter().any(|folder| target.starts_with(folder) || folder.starts_with(target));
    match link.canonicalize() {
        Ok(target) => {
            let is_inside = top.canonicalize().is_ok_and(|top| target.starts_with(top));
            !is_inside && target.is_dir() && could_be_written(&target)
        }
        // Its target may come to exist.
        Err(_) => fs::read_link(link).is_ok_and(|target| target.is_absolute() && could_be_written(&target)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-13
    #[test]
    fn links_out_of_a_review_to_where_code_can_write_are_removed() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        let (top, cache, other) =
            (place.path().join("review"), place.path().join("cache"), place.path().join("other"));
        for folder in [&top.join("src"), &cache.join("s/.git"), &other] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(cache.join("file"), "").unwrap();
        let links = [
            ("in-cache", cache.join("s")),
            ("above", place.path().to_owned()),
            ("later", cache.join("later")),
            ("file", cache.join("file")),
            ("elsewhere", other),
            ("inside", "src".into()),
            ("gone", "nowhere".into()),
        ];
        for (name, target) in &links {
            symlink(target, top.join(name)).unwrap();
        }
        let mut removed = remove_nested_repositories(&top, &[], &[top.clone(), cache]).unwrap();
        removed.sort();
        assert_eq!(removed, ["above", "in-cache", "later"].map(|name| top.join(name)));
        assert_eq!(fs::read_dir(&top).unwrap().count(), 5);
    }
}

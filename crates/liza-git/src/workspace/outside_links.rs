//! Links in a commit that lead out of the repository: a program that follows one meets files that are in no commit.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use crate::diff::tree_changes::TreeChanges;
use crate::program::error::GitError;
use crate::program::repo::Repo;

impl Repo {
    pub fn outside_link(&self, changes: &TreeChanges) -> Result<Option<PathBuf>, GitError> {
        for (path, change) in changes {
            let Some(link) = change.new.as_ref().filter(|entry| entry.is_link()) else { continue };
            let target = self.command("reading a link").args(["cat-file", "blob", &link.object]).read()?;
            if leads_outside(path, Path::new(OsStr::from_bytes(&target))) {
                return Ok(Some(path.clone()));
            }
        }
        Ok(None)
    }
}

/// Names below which a checkout has uncommitted content, such as agents' repositories.
const NOT_COMMITTED: [&str; 3] = [".git", ".liza", ".worktrees"];

/// True if a link at that path leads out of the committed files. A step back after a step forward may do that
/// too: the folder between may be a link.
fn leads_outside(link: &Path, target: &Path) -> bool {
    let depth = link.components().count().saturating_sub(1);
    let steps: Vec<Component<'_>> =
        target.components().filter(|step| !matches!(step, Component::CurDir)).collect();
    let back = steps.iter().take_while(|step| matches!(step, Component::ParentDir)).count();
    let is_committed = |step: &Component<'_>| match step {
        Component::Normal(name) => !NOT_COMMITTED.iter().any(|known| name.eq_ignore_ascii_case(known)),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => false,
    };
    back > depth || !steps.iter().skip(back).all(is_committed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: IS-13
    #[test]
    fn a_link_stays_inside_or_leads_out() {
        for (link, target) in
            [("a", "b"), ("a", "./b/c"), ("x/a", "../b"), ("x/y/a", "../../b/c"), ("x/a", "."), ("x/a", "..")]
        {
            assert!(!leads_outside(Path::new(link), Path::new(target)), "{link} {target}");
        }
        for (link, target) in [
            ("a", "/dev/shm/x"),
            ("a", ".."),
            ("x/a", "../../b"),
            ("a", "b/../../c"),
            ("a", "b/.."),
            ("x/a", "../y/.."),
        ] {
            assert!(leads_outside(Path::new(link), Path::new(target)), "{link} {target}");
        }
    }
}

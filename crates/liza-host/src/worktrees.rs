//! The folder with the worktrees of a project: below its root, or outside, where no tool of the person walks. Which of
//! both is noted in a file of this machine, so that every process uses the same. Moves nothing.
//!
//! A folder outside names its project, and the project names it: a copy of a project never uses the worktrees of the
//! original.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::durable;
use crate::own_folder::create_folder;

/// The name of the folder, at either place: what lies below a folder of this name belongs to agents.
pub const WORKTREES: &str = ".worktrees";

/// The folder below that of the person's programs for what they keep.
const FOLDER: &str = "liza";

/// The file with the place outside, in the root of the project.
const NOTE: &str = ".liza/worktrees";

/// The file with the root of the project, beside the folder outside.
const OWNER: &str = ".project";

/// The folder with the worktrees of the project in `root`. It may be missing.
pub fn worktrees_folder(root: &Path) -> PathBuf {
    outside(root).unwrap_or_else(|| root.join(WORKTREES))
}

/// The folder, if it is outside the project.
pub fn outside(root: &Path) -> Option<PathBuf> {
    let place = noted(root)?;
    let Some(owner) = owner_of(&place) else { return Some(place) };
    // A project that was moved takes its worktrees along; a copy does not.
    let is_own = is_same(&owner, root) || noted(&owner).as_ref() != Some(&place);
    is_own.then_some(place)
}

/// The project whose folder of worktrees, outside of it, a path is below.
pub fn project_around(path: &Path) -> Option<PathBuf> {
    // An agent can write only below the outermost one.
    let folder = path.ancestors().filter(|above| above.file_name() == Some(OsStr::new(WORKTREES))).last()?;
    owner_of(folder).filter(|root| outside(root).as_deref() == Some(folder))
}

/// The checkout of an agent that a folder is in, both without links on the way.
pub fn checkout_around(root: &Path, folder: &Path) -> Option<PathBuf> {
    let all = worktrees_folder(root).canonicalize().ok()?;
    let name = folder.strip_prefix(&all).ok()?.components().next()?;
    Some(all.join(name))
}

/// Creates the folder outside, if it is there, for its owner only, and names the project in it.
pub fn prepare(root: &Path) -> io::Result<()> {
    let Some(place) = outside(root) else { return Ok(()) };
    create_folder(&place)?;
    let root = root.canonicalize()?;
    match owner_of(&place).is_some_and(|owner| owner == root) {
        true => Ok(()),
        false => durable::replace_private_file(&place.with_file_name(OWNER), root.as_os_str().as_bytes()),
    }
}

/// Keeps worktrees of the project outside from now on. The caller makes sure that there are none.
pub fn keep_outside(root: &Path) -> io::Result<()> {
    let real = root.canonicalize()?;
    let missing = || io::Error::other("neither XDG_STATE_HOME nor HOME is an absolute path");
    let place = place_for(&real).ok_or_else(missing)?;
    if place.starts_with(&real) {
        return Err(io::Error::other(format!("{} is inside the project", place.display())));
    }
    durable::replace_private_file(&root.join(NOTE), place.as_os_str().as_bytes())?;
    prepare(root)
}

/// Keeps them below the root from now on. The caller makes sure that there are none.
pub fn keep_inside(root: &Path) -> io::Result<()> {
    let Some(place) = outside(root) else { return durable::remove_if_present(&root.join(NOTE)) };
    durable::remove_if_present(&root.join(NOTE))?;
    forget(&place);
    Ok(())
}

/// Removes a folder outside that is empty, with the folders above it that are empty then.
fn forget(place: &Path) {
    if fs::remove_dir(place).is_err() && place.exists() {
        return;
    }
    let _ = fs::remove_file(place.with_file_name(OWNER));
    let is_ours = |above: &&Path| above.components().any(|part| part.as_os_str() == FOLDER);
    let _ = place.ancestors().skip(1).take_while(is_ours).try_for_each(fs::remove_dir);
}

/// Named after the path of the project, so no two projects have the same.
fn place_for(root: &Path) -> Option<PathBuf> {
    let variable =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    let state = state.canonicalize().unwrap_or(state);
    Some(state.join(FOLDER).join(root.strip_prefix("/").unwrap_or(root)).join(WORKTREES))
}

fn noted(root: &Path) -> Option<PathBuf> {
    read_path(&root.join(NOTE))
}

fn owner_of(place: &Path) -> Option<PathBuf> {
    read_path(&place.with_file_name(OWNER))
}

fn read_path(file: &Path) -> Option<PathBuf> {
    let path = PathBuf::from(std::ffi::OsString::from_vec(durable::read_file(file).ok()?));
    path.is_absolute().then_some(path)
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(place: &Path, name: &str) -> PathBuf {
        let root = place.join(name);
        fs::create_dir_all(root.join(".liza")).unwrap();
        root
    }

    /// Notes a place as `keep_outside` does, which reads the environment.
    fn keep_at(root: &Path, place: &Path) {
        fs::write(root.join(NOTE), place.as_os_str().as_bytes()).unwrap();
        prepare(root).unwrap();
    }

    /// Covers: RO-03
    #[test]
    fn a_moved_project_keeps_its_worktrees_and_a_copied_one_has_its_own() {
        let temporary = tempfile::tempdir().unwrap();
        let at = temporary.path().canonicalize().unwrap();
        let (root, place) = (project(&at, "shop"), at.join("state/shop").join(WORKTREES));
        assert_eq!(worktrees_folder(&root), root.join(WORKTREES));
        let inner = root.join(WORKTREES).join("task-1/.worktrees/inner");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(checkout_around(&root, &inner), Some(root.join(WORKTREES).join("task-1")));
        assert_eq!(checkout_around(&root, &root.join(WORKTREES)), None);
        keep_at(&root, &place);
        assert_eq!(worktrees_folder(&root), place);
        assert_eq!(checkout_around(&root, &inner), None);
        assert_eq!(checkout_around(&root, &place.join("task-1/src")), Some(place.join("task-1")));
        assert_eq!(project_around(&place.join("task-1/src")), Some(root.clone()));
        let copy = project(&at, "copy");
        fs::copy(root.join(NOTE), copy.join(NOTE)).unwrap();
        assert_eq!(worktrees_folder(&copy), copy.join(WORKTREES));
        prepare(&copy).unwrap();
        assert_eq!(worktrees_folder(&root), place, "a copy takes nothing away");
        fs::remove_dir_all(&copy).unwrap();
        let moved = at.join("moved");
        fs::rename(&root, &moved).unwrap();
        assert_eq!(worktrees_folder(&moved), place);
        prepare(&moved).unwrap();
        assert_eq!(project_around(&place.join("task-1")), Some(moved.clone()));
        keep_inside(&moved).unwrap();
        assert_eq!((worktrees_folder(&moved), place.exists()), (moved.join(WORKTREES), false));
    }

    /// Covers: RO-03
    #[test]
    fn an_agent_cannot_name_another_project_for_its_files() {
        let temporary = tempfile::tempdir().unwrap();
        let at = temporary.path().canonicalize().unwrap();
        let (root, place) = (project(&at, "shop"), at.join("state/shop").join(WORKTREES));
        keep_at(&root, &place);
        // Both halves of a project of its own, below its worktree.
        let inner = project(&place, "task-1/evil");
        keep_at(&inner, &place.join("task-1/x").join(WORKTREES));
        assert_eq!(project_around(&place.join("task-1/x/.worktrees/t")), Some(root));
    }
}

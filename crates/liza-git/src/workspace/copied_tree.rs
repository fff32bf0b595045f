//! Copies of a person's ignored files and folders in a checkout. Writes through no link.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::workspace::moved_paths::MovedPaths;

/// Makes the folders above a path; `None` if something other than a folder is in the way.
pub fn make_parents(checkout: &Path, relative: &Path) -> io::Result<Option<PathBuf>> {
    let mut folder = checkout.to_owned();
    for part in relative.parent().into_iter().flat_map(Path::components) {
        folder.push(part);
        if !make_folder(&folder)? {
            return Ok(None);
        }
    }
    Ok(relative.file_name().map(|name| folder.join(name)))
}

/// False if something other than a folder is in the way.
fn make_folder(path: &Path) -> io::Result<bool> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(fs::symlink_metadata(path)?.is_dir())
        }
        done => done.map(|()| true),
    }
}

/// Copies a file, a link as such, or a whole folder, and moves the paths in them. Existing files are kept.
pub fn copy_tree(
    source: &Path,
    meta: &fs::Metadata,
    target: &Path,
    moves: Option<&MovedPaths>,
) -> io::Result<()> {
    let kind = meta.file_type();
    let exists = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
    if kind.is_symlink() {
        let leads_to = fs::read_link(source)?;
        let leads_to = moves.map_or_else(|| leads_to.clone(), |moves| moves.target_of(leads_to.clone()));
        let made = std::os::unix::fs::symlink(leads_to, target);
        return made.or_else(|error| if exists(&error) { Ok(()) } else { Err(error) });
    }
    if kind.is_dir() {
        if !make_folder(target)? {
            return Ok(());
        }
        for entry in fs::read_dir(source)? {
            let entry = entry?;
            copy_tree(&entry.path(), &entry.metadata()?, &target.join(entry.file_name()), moves)?;
        }
        return Ok(());
    }
    if !kind.is_file() {
        // Sockets and devices stay where they are.
        return Ok(());
    }
    // A link in the way is not followed: the file must be new.
    let mut new = match fs::OpenOptions::new().write(true).create_new(true).open(target) {
        Err(error) if exists(&error) => return Ok(()),
        opened => opened?,
    };
    match moves.and_then(|moves| moves.text_of(source, meta.len())) {
        Some(text) => new.write_all(&text)?,
        None => {
            io::copy(&mut fs::File::open(source)?, &mut new)?;
            // Build tools compare times: what was built from other sources must not look newer than those of the checkout.
            new.set_modified(meta.modified()?)?;
        }
    }
    new.set_permissions(meta.permissions())
}

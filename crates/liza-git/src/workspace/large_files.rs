//! Copies the objects of Git LFS out of a checkout: a commit has only their names, and they would be deleted
//! with it. Each is copied once, and only if its content matches its name.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use liza_sandbox::sys::untrusted::{EntryKind, UntrustedFolder};
use sha2::{Digest as _, Sha256};

use crate::program::error::GitError;
use crate::program::leftovers::temporary_name;
use crate::program::repo::Repo;
use crate::workspace::agent_repo::AgentRepo;

const OBJECTS: &str = "lfs/objects";

impl Repo {
    /// Copies the objects that the project lacks.
    pub(crate) fn save_large_files(&self, agent: &AgentRepo) -> Result<(), GitError> {
        let Ok(folder) = agent.folder().folder(Path::new(OBJECTS)) else { return Ok(()) };
        let place = self.common_dir().join(OBJECTS);
        let mut left = self.git().object_limits.bytes;
        copy_all(&folder, &place, 0, &mut left)
            .map_err(|error| GitError::io("keeping objects of Git LFS", &place, error))
    }
}

fn copy_all(from: &UntrustedFolder, to: &Path, depth: usize, left: &mut u64) -> io::Result<()> {
    for (name, kind) in from.entries()? {
        let Some(text) = name.to_str() else { continue };
        let place = to.join(text);
        match kind {
            EntryKind::Folder if depth < 2 => {
                copy_all(&from.folder(Path::new(text))?, &place, depth + 1, left)?
            }
            EntryKind::File if depth == 2 && text.len() == 64 && !place.exists() => {
                copy(from, text, &place, left)?;
            }
            EntryKind::Folder | EntryKind::File | EntryKind::Other => {}
        }
    }
    Ok(())
}

/// Copies one object if its content matches its name.
fn copy(from: &UntrustedFolder, name: &str, to: &Path, left: &mut u64) -> io::Result<()> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder)?;
    let temporary = folder.join(temporary_name(".liza-"));
    let result = copy_to(from, name, &temporary, left)
        .and_then(|same| if same { fs::rename(&temporary, to) } else { Ok(()) });
    let _ = fs::remove_file(&temporary);
    result
}

fn copy_to(from: &UntrustedFolder, name: &str, to: &Path, left: &mut u64) -> io::Result<bool> {
    let (mut source, mut copy) = (from.file(Path::new(name))?, fs::File::create_new(to)?);
    let mut digest = Sha256::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        let length = source.read(&mut chunk)?;
        let part = chunk.get(..length).unwrap_or_default();
        if part.is_empty() {
            break;
        }
        *left = left.checked_sub(part.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        digest.update(part);
        copy.write_all(part)?;
    }
    let found: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(found == name)
}

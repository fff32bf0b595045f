//! The conversations of a session, kept between the sessions of one task so that a program can resume its
//! own. Masked like everything that is stored, and removed with the task's worktree. The session's files are
//! not trusted: links and too large files are removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use liza_core::model::TaskId;
use liza_host::private;
use liza_host::secrets::Masker;
use serde::{Deserialize, Serialize};

const FILE_MAX: u64 = 64 << 20;
/// The deepest folder that is kept; programs use three or four levels.
const DEPTH_MAX: usize = 8;

/// The places of the conversations during a session and between two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptConversations {
    /// The program's folder for them in the private folder.
    pub below: PathBuf,
    /// Between sessions.
    pub place: PathBuf,
    /// The session gets those of the last one.
    pub restore: bool,
}

pub(crate) fn conversations_of(liza: &Path, task: &TaskId) -> PathBuf {
    liza.join("conversations").join(task.as_str())
}

impl KeptConversations {
    pub fn restore(&self, folder: &Path) -> io::Result<()> {
        if !self.restore || !self.place.is_dir() {
            return Ok(());
        }
        let to = folder.join(&self.below);
        to.parent().map_or(Ok(()), private::create_folder)?;
        fs::rename(&self.place, to)
    }

    /// Moves the conversations out of the folder, without the secrets in them. Links are not followed.
    pub fn keep(&self, folder: &Path, masker: &Masker) -> io::Result<()> {
        let _ = fs::remove_dir_all(&self.place);
        let mut from = folder.to_owned();
        for part in self.below.components() {
            from.push(part);
            if !fs::symlink_metadata(&from)?.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
        }
        self.place.parent().map_or(Ok(()), private::create_folder)?;
        fs::rename(from, &self.place)?;
        let masked = mask_folder(&self.place, masker, DEPTH_MAX);
        if masked.is_err() {
            // Rather none than one with a secret.
            let _ = fs::remove_dir_all(&self.place);
        }
        masked
    }
}

/// Masks all files below a folder that no session can reach any more.
fn mask_folder(folder: &Path, masker: &Masker, depth: usize) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let meta = fs::symlink_metadata(&path)?;
        if meta.is_dir() && depth > 0 {
            mask_folder(&path, masker, depth - 1)?;
        } else if meta.is_dir() {
            fs::remove_dir_all(&path)?;
        } else if meta.is_file() && meta.len() <= FILE_MAX {
            mask_file(&path, masker)?;
        } else {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn mask_file(path: &Path, masker: &Masker) -> io::Result<()> {
    let bytes = fs::read(path)?;
    let Ok(text) = String::from_utf8(bytes) else { return fs::remove_file(path) };
    let masked = masker.mask(&text);
    if masked == text {
        return Ok(());
    }
    // A new file: another name of the old one may be somewhere else.
    fs::remove_file(path)?;
    fs::write(path, masked.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "token-of-the-person-1234";

    fn kept(home: &Path, restore: bool) -> KeptConversations {
        KeptConversations { below: "said".into(), place: home.join("kept"), restore }
    }

    /// Covers: SE-10
    #[test]
    fn what_is_kept_has_no_secrets_and_nothing_but_texts() {
        let home = tempfile::tempdir().unwrap();
        let said = home.path().join("private/said");
        fs::create_dir_all(said.join("a/b")).unwrap();
        fs::write(said.join("a/b/1.jsonl"), format!("{{\"text\":\"it is {SECRET}\"}}\n")).unwrap();
        fs::write(said.join("plain.jsonl"), "{}\n").unwrap();
        fs::write(said.join("bytes"), [0xff, 0xfe]).unwrap();
        fs::write(home.path().join("mine"), SECRET).unwrap();
        std::os::unix::fs::symlink(home.path().join("mine"), said.join("link")).unwrap();
        fs::hard_link(home.path().join("mine"), said.join("hard")).unwrap();
        let masker = Masker::new([("MY_TOKEN", SECRET)]);
        kept(home.path(), true).keep(&home.path().join("private"), &masker).unwrap();
        let place = home.path().join("kept");
        assert_eq!(fs::read_to_string(place.join("a/b/1.jsonl")).unwrap(), "{\"text\":\"it is [masked]\"}\n");
        assert_eq!(fs::read_to_string(place.join("hard")).unwrap(), "[masked]");
        assert_eq!(fs::read_to_string(home.path().join("mine")).unwrap(), SECRET);
        assert!(place.join("plain.jsonl").exists());
        assert!(!place.join("bytes").exists() && place.join("link").symlink_metadata().is_err());
    }
}

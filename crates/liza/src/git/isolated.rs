//! A git folder that shares the repository's objects and nothing else: no configuration, attributes, hooks or refs.
//!
//! Merges are computed in it, so that nothing planted in the repository takes part. It exists for one command.

use std::fs;
use std::path::PathBuf;

use liza_core::model::Sha;

use super::command::GitCommand;
use super::error::GitError;
use super::leftovers::temporary_name;
use super::repo::Repo;

/// The prefix of these folders in the repository's git folder.
pub(crate) const ISOLATED: &str = "liza-merge-";

/// The settings of a partial clone, without which missing objects cannot be fetched.
const PARTIAL_CLONE: &str = r"^(extensions\.partialclone|remote\..*\.(url|promisor|partialclonefilter))$";

/// An isolated git folder, deleted on drop.
pub(crate) struct IsolatedRepo<'a> {
    repo: &'a Repo,
    folder: PathBuf,
}

impl Drop for IsolatedRepo<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Repo {
    /// Creates an isolated git folder. Of attributes, only those in the root of the commit `trusted` apply, and they can name
    /// only drivers that are built in or set for all repositories.
    pub(crate) fn isolated(&self, trusted: &Sha) -> Result<IsolatedRepo<'_>, GitError> {
        let folder = self.common_dir().join(temporary_name(ISOLATED));
        let isolated = IsolatedRepo { repo: self, folder };
        isolated.create(trusted)?;
        Ok(isolated)
    }
}

impl IsolatedRepo<'_> {
    fn create(&self, trusted: &Sha) -> Result<(), GitError> {
        let config = format!("{}{}", format_settings(trusted), self.partial_clone()?);
        self.write("HEAD", b"ref: refs/heads/none\n")?;
        self.write("refs/none", b"")?;
        self.write("config", config.as_bytes())?;
        let file = format!("{trusted}:.gitattributes");
        let command = self.command("reading attributes").args(["cat-file", "blob", &file]);
        let attributes = command.run()?;
        if attributes.status == Some(0) { self.write("info/attributes", &attributes.stdout) } else { Ok(()) }
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), GitError> {
        let file = self.folder.join(name);
        let write = || {
            file.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&file, content)
        };
        write().map_err(|error| GitError::io("preparing a merge", &file, error))
    }

    /// A git command in the isolated folder.
    pub(crate) fn command(&self, action: &str) -> GitCommand {
        let common = self.repo.common_dir();
        let command = self.repo.command_in(action, &self.folder).env("GIT_DIR", &self.folder);
        let command = command.env("GIT_OBJECT_DIRECTORY", common.join("objects"));
        let shallow = common.join("shallow");
        if shallow.exists() { command.env("GIT_SHALLOW_FILE", shallow) } else { command }
    }

    /// The settings of a partial clone, as lines of a configuration file; usually none.
    fn partial_clone(&self) -> Result<String, GitError> {
        let command = self.repo.command("looking for a partial clone");
        let output = command.args(["config", "--local", "-z", "--get-regexp", PARTIAL_CLONE]).run()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !text.contains("extensions.partialclone\n") {
            return Ok(String::new());
        }
        Ok(text.split('\0').filter_map(|entry| entry.split_once('\n')).map(setting_lines).collect())
    }
}

/// What git must know about the format of the objects.
pub(crate) fn format_settings(commit: &Sha) -> String {
    let format = if commit.as_str().len() == 64 { "[extensions]\n\tobjectformat = sha256\n" } else { "" };
    format!("[core]\n\trepositoryformatversion = 1\n\tbare = true\n{format}")
}

/// A setting as a section of a configuration file.
pub(crate) fn setting_lines((key, value): (&str, &str)) -> String {
    let quote = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let (section, name) = key.rsplit_once('.').unwrap_or((key, ""));
    let head = match section.split_once('.') {
        Some((section, sub)) => format!("[{section} \"{}\"]", quote(sub)),
        None => format!("[{section}]"),
    };
    format!("{head}\n\t{name} = \"{}\"\n", quote(value))
}

//! Publishes a branch on a remote, for `liza finish --pr`. The work of a team is sent by `work_remote`.

use liza_ids::Sha;

use crate::program::command::TREE_LIMIT;
use crate::program::error::GitError;
use crate::program::refs::Branch;
use crate::program::repo::Repo;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// Such as `origin`.
    pub name: String,
    pub url: String,
}

impl Repo {
    /// The remote of a branch: the one set for it, else `remote.pushDefault`, else the only one or `origin`;
    /// `None` if none of these decides.
    pub fn remote_of(&self, branch: &Branch) -> Result<Option<Remote>, GitError> {
        let listed = self.command("listing the remotes").arg("remote").read_text()?;
        let names: Vec<&str> = listed.lines().collect();
        let keys = [format!("branch.{branch}.pushRemote"), format!("branch.{branch}.remote")];
        let mut wanted = None;
        for key in keys.iter().map(String::as_str).chain(["remote.pushDefault"]) {
            wanted = wanted.or(self.setting(key)?.filter(|name| names.contains(&name.as_str())));
        }
        let name = wanted.or_else(|| match names[..] {
            [only] => Some(only.to_owned()),
            _ => names.contains(&"origin").then(|| "origin".to_owned()),
        });
        let Some(name) = name else { return Ok(None) };
        let url = self.command("reading a remote's address").args(["remote", "get-url", "--push", &name]);
        Ok(Some(Remote { url: url.read_text()?.trim().to_owned(), name }))
    }

    /// A branch on the remote is only moved forward.
    pub fn push(&self, remote: &Remote, commit: &Sha, branch: &Branch) -> Result<(), GitError> {
        let command = self.command(format!("pushing to {}", remote.name)).limit(TREE_LIMIT);
        let refs = format!("{commit}:{}", branch.full());
        command.args(["push", "--porcelain", "--no-follow-tags", &remote.name, &refs]).check()
    }

    fn setting(&self, key: &str) -> Result<Option<String>, GitError> {
        let output = self.command(format!("reading {key}")).args(["config", "--get", key]).run()?;
        Ok(Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|value| !value.is_empty()))
    }
}

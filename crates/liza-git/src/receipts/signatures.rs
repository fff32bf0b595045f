//! The signatures of the commits of a branch, as git and ssh-keygen check them against a file of signers. The clone's
//! own settings name no program and no key here.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use liza_ids::Sha;

use crate::program::command::TREE_LIMIT;
use crate::program::error::GitError;
use crate::program::repo::{Repo, sha};

/// Settings of the clone must not choose what vouches for it. Only signatures by ssh keys are checked.
const PROGRAMS: [&str; 4] = [
    "gpg.ssh.program=ssh-keygen",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
];

/// A signature in the words of git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitSignature {
    /// `G` for a good one by a signer, `B` for a bad one; the letters of git's `%G?`.
    pub result: char,
    /// The name of the signer in the file.
    pub signer: String,
    /// The fingerprint of the key.
    pub key: String,
}

impl Repo {
    /// The signatures on the first-parent line of a commit; a commit without one is left out.
    pub fn signatures(&self, head: &Sha, signers: &Path) -> Result<BTreeMap<Sha, CommitSignature>, GitError> {
        let mut file = OsString::from("gpg.ssh.allowedSignersFile=");
        file.push(signers);
        let mut command = self.command("checking signatures").arg("-c").arg(file);
        for program in PROGRAMS {
            command = command.args(["-c", program]);
        }
        let command = command.args(["rev-list", "--first-parent", "--no-commit-header"]);
        let command = command.args(["--format=%H%x00%G?%x00%GS%x00%GF%x00", head.as_str(), "--"]);
        let text = command.limit(TREE_LIMIT).read()?;
        let text = String::from_utf8_lossy(&text);
        Ok(text.lines().filter_map(parse).collect())
    }
}

fn parse(line: &str) -> Option<(Sha, CommitSignature)> {
    let mut fields = line.split('\0');
    let commit = sha(fields.next()?.as_bytes())?;
    let result = fields.next()?.chars().next().filter(|result| *result != 'N')?;
    let mut text = || fields.next().unwrap_or_default().to_owned();
    Some((commit, CommitSignature { result, signer: text(), key: text() }))
}

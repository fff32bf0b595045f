//! Where an agent's commits are examined before they enter the project: a repository of ours with copies of its objects.
//!
//! Of the agent's repository only the object files are used; their names are hashes of their content. They are limited in
//! size and number, and checked by git on the way into the project. It exists for one transfer.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use liza_ids::Sha;

use crate::diff::isolated::format_settings;
use crate::program::command::{GitCommand, TREE_LIMIT};
use crate::program::error::GitError;
use crate::program::leftovers::temporary_name;
use crate::program::repo::{Repo, sha};
use crate::workspace::agent_repo::{AgentRepo, OBJECT_BYTES};
use crate::workspace::rescue::{STAGED, always_the_same};

/// The prefix of these folders in the repository's git folder.
pub(crate) const QUARANTINE: &str = "liza-take-";

/// How many objects an agent may bring at once.
const OBJECT_COUNT: usize = 1_000_000;

/// What errors name.
const ACTION: &str = "taking an agent's commits";

/// Copies of an agent's objects, deleted on drop.
pub(crate) struct Quarantine<'a> {
    repo: &'a Repo,
    folder: PathBuf,
    /// The agent's own commits.
    commits: Vec<Sha>,
}

impl Drop for Quarantine<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Repo {
    /// Copies what an agent's repository has and the project lacks. `like` is any commit, for the format of the objects.
    pub(crate) fn quarantine(&self, agent: &AgentRepo, like: &Sha) -> Result<Quarantine<'_>, GitError> {
        let folder = self.common_dir().join(temporary_name(QUARANTINE));
        let mut quarantine = Quarantine { repo: self, folder, commits: Vec::new() };
        quarantine.write("HEAD", b"ref: refs/heads/none\n")?;
        quarantine.write("config", format_settings(like).as_bytes())?;
        quarantine.write("refs/none", b"")?;
        let objects = quarantine.folder.join("objects");
        fs::create_dir_all(objects.join("info")).map_err(|error| GitError::io(ACTION, &objects, error))?;
        if agent.copy_objects(&objects, &self.common_dir().join("objects"))? {
            // Before the project's objects are added: only the agent's own count.
            quarantine.commits = quarantine.measure()?;
        }
        let project = self.common_dir().join("objects");
        let mut line = project.as_os_str().as_encoded_bytes().to_vec();
        line.push(b'\n');
        quarantine.write("objects/info/alternates", &line)?;
        if let Ok(shallow) = fs::read(self.common_dir().join("shallow")) {
            quarantine.write("shallow", &shallow)?;
        }
        Ok(quarantine)
    }
}

impl Quarantine<'_> {
    fn write(&self, name: &str, content: &[u8]) -> Result<(), GitError> {
        let file = self.folder.join(name);
        let write = || {
            file.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&file, content)
        };
        write().map_err(|error| GitError::io(ACTION, &file, error))
    }

    /// A git command in this repository, which fetches nothing that is missing.
    pub(crate) fn command(&self, action: &str) -> GitCommand {
        let command = self.repo.command_in(action, &self.folder).env("GIT_DIR", &self.folder);
        command.in_room(self.repo.room([self.folder.clone()]))
    }

    /// Refuses objects that are too many or too large when unpacked; returns the commits among them.
    fn measure(&self) -> Result<Vec<Sha>, GitError> {
        let format = "--batch-check=%(objecttype) %(objectsize) %(objectname)";
        let command = self.command(ACTION).args(["cat-file", "--batch-all-objects", "--unordered", format]);
        let list = command.limit(TREE_LIMIT).read_text()?;
        let (mut bytes, mut count, mut commits) = (0_u64, 0_usize, Vec::new());
        for line in list.lines() {
            let mut words = line.split(' ');
            let (kind, size) = (words.next(), words.next().and_then(|size| size.parse().ok()));
            bytes = bytes.saturating_add(size.unwrap_or(u64::MAX));
            count += 1;
            if kind == Some("commit") {
                commits.extend(words.next().and_then(|name| sha(name.as_bytes())));
            }
        }
        if bytes > OBJECT_BYTES || count > OBJECT_COUNT {
            let why = format!(
                "its new objects are too large or too many ({count} objects, {} MiB; at most {OBJECT_COUNT} and {} MiB)",
                bytes >> 20,
                OBJECT_BYTES >> 20
            );
            return Err(GitError::DamagedWorktree { path: self.folder.clone(), why });
        }
        Ok(commits)
    }

    /// The agent's own commits that are no parent of another.
    pub(crate) fn own_tips(&self) -> Result<Vec<Sha>, GitError> {
        if self.commits.len() < 2 {
            return Ok(self.commits.clone());
        }
        let input: String = self.commits.iter().map(|commit| format!("{commit}\n")).collect();
        let command = self.command(ACTION).args(["rev-list", "--no-walk=unsorted", "--parents", "--stdin"]);
        let list = command.stdin(input).read_text()?;
        let parents: BTreeSet<&str> = list.lines().flat_map(|line| line.split(' ').skip(1)).collect();
        let is_tip = |commit: &&Sha| !parents.contains(commit.as_str());
        Ok(self.commits.iter().filter(is_tip).cloned().collect())
    }

    /// A commit of what is staged in the agent's index, on top of `head`; `None` where that is nothing or unusable.
    pub(crate) fn commit_staged(&self, agent: &AgentRepo, head: &Sha) -> Option<Sha> {
        self.write("staged", &agent.index()?).ok()?;
        let command = || self.command("saving staged work").env("GIT_INDEX_FILE", self.folder.join("staged"));
        let compare = command().args(["diff-index", "--cached", "--raw", "--ignore-submodules=none"]);
        // The configuration of this repository is ours.
        let compare = compare.args([head.as_str(), "--"]).runs_no_program();
        if compare.read().is_ok_and(|differences| differences.is_empty()) {
            return None;
        }
        // An index with conflicts cannot be written; its versions are all in the merged commits.
        let tree = command().arg("write-tree").read_with(sha).ok()?;
        let old = self.command("saving staged work").args(["rev-parse", &format!("{head}^{{tree}}")]);
        if old.read_with(sha).ok()? == tree {
            return None;
        }
        let command = always_the_same(self.command("saving staged work"));
        command.commit(STAGED, &tree, std::slice::from_ref(head), &[]).ok()
    }

    /// Brings those of the commits into the project that are complete; a session may have damaged others.
    ///
    /// # Errors
    ///
    /// When git cannot be run.
    pub(crate) fn transfer_what_is_whole(
        &self,
        commits: Vec<Sha>,
        known: &[Sha],
    ) -> Result<Vec<Sha>, GitError> {
        let new: Vec<Sha> = commits.iter().filter(|commit| !known.contains(commit)).cloned().collect();
        if self.transfer(&new, None).is_ok() {
            return Ok(commits);
        }
        let whole = |commit: &Sha| {
            known.contains(commit) || self.transfer(std::slice::from_ref(commit), None).is_ok()
        };
        Ok(commits.into_iter().filter(whole).collect())
    }

    /// Brings commits into the project, checked object by object; the first one under the name `into`, if given.
    ///
    /// # Errors
    ///
    /// When an object is missing, damaged, or not what its name says.
    pub(crate) fn transfer(&self, commits: &[Sha], into: Option<&str>) -> Result<(), GitError> {
        if commits.is_empty() {
            return Ok(());
        }
        let mut refs = Vec::new();
        for (number, commit) in commits.iter().enumerate() {
            self.write(&format!("refs/heads/{number}"), format!("{commit}\n").as_bytes())?;
            refs.push(match into.filter(|_| number == 0) {
                Some(name) => format!("+refs/heads/0:{name}"),
                None => format!("refs/heads/{number}"),
            });
        }
        self.fetch(&self.folder, &refs)
    }

    /// Where git writes that receives commits: nothing there names a program.
    fn receiving_folders(&self) -> Vec<PathBuf> {
        let common = self.repo.common_dir();
        // People may have put any of them elsewhere.
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let folders = ["objects", "refs", "reftable", "logs"].map(|name| real(common.join(name)));
        [self.folder.clone()].into_iter().chain(folders).collect()
    }

    fn fetch(&self, from: &Path, refs: &[String]) -> Result<(), GitError> {
        self.repo
            .command(ACTION)
            .args(["-c", "fetch.fsckObjects=true", "-c", "protocol.file.allow=always", "-c", "gc.auto=0"])
            // The only program that the configuration could name for a fetch from a folder.
            .args(["-c", "core.alternateRefsCommand=true"])
            .args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"])
            .args(["--no-recurse-submodules", "--update-shallow", "--"])
            .arg(from)
            .args(refs)
            .in_room(self.repo.room(self.receiving_folders()))
            .limit(TREE_LIMIT)
            .runs_no_program()
            .check()
    }
}

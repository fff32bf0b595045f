//! The quarantine of an agent's commits before they enter the project: a repository of ours with copies of
//! its objects. Only the agent's object files are used; their names are hashes of their content. They are
//! limited in size and number, and checked by git on the way into the project.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use liza_ids::Sha;

use crate::diff::isolated::format_settings;
use crate::program::borrowed_git_dir::BorrowedGitDir;
use crate::program::command::{GitCommand, TREE_LIMIT};
use crate::program::error::GitError;
use crate::program::repo::{Repo, sha};
use crate::workspace::agent_repo::AgentRepo;
use crate::workspace::rescue::{STAGED, always_the_same};

/// The prefix of these folders in the repository's git folder.
pub(crate) const QUARANTINE: &str = "liza-take-";

const ACTION: &str = "taking an agent's commits";

/// Deleted on drop.
pub(crate) struct Quarantine<'a> {
    repo: &'a Repo,
    git_dir: BorrowedGitDir<'a>,
    commits: Vec<Sha>,
}

impl Repo {
    /// Copies objects of an agent's repository that the project lacks. `like` is any commit, for the format.
    pub(crate) fn quarantine(&self, agent: &AgentRepo, like: &Sha) -> Result<Quarantine<'_>, GitError> {
        let git_dir = BorrowedGitDir::create(self, QUARANTINE, ACTION, None)?;
        let mut quarantine = Quarantine { repo: self, git_dir, commits: Vec::new() };
        let folder = &quarantine.git_dir;
        folder.write("config", format_settings(like).as_bytes())?;
        folder.make_folder("refs")?;
        folder.make_folder("objects/info")?;
        let (own, project) = (folder.path().join("objects"), self.common_dir().join("objects"));
        if agent.copy_objects(&own, &project, self.git().object_limits.bytes)? {
            // Before the project's objects are added: only the agent's own count.
            quarantine.commits = quarantine.measure()?;
        }
        quarantine.git_dir.borrow(&project)?;
        if let Ok(shallow) = fs::read(self.common_dir().join("shallow")) {
            quarantine.git_dir.write("shallow", &shallow)?;
        }
        Ok(quarantine)
    }
}

impl Quarantine<'_> {
    /// Fetches nothing that is missing.
    pub(crate) fn command(&self, action: &str) -> GitCommand {
        let folder = self.git_dir.path();
        self.git_dir.command_in(action, folder).in_room(self.repo.room([folder.to_owned()]))
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
        let most = self.repo.git().object_limits;
        if bytes > most.bytes || count > most.count {
            let why = format!(
                "its new objects are too large or too many ({count} objects, {} MiB; at most {} and {} MiB)",
                bytes >> 20,
                most.count,
                most.bytes >> 20
            );
            return Err(GitError::DamagedWorktree { path: self.git_dir.path().to_owned(), why });
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

    /// Commits the agent's staged changes on top of `head`; `None` if there are none, or the index is unusable.
    pub(crate) fn commit_staged(&self, agent: &AgentRepo, head: &Sha) -> Option<Sha> {
        self.git_dir.write("staged", &agent.index()?).ok()?;
        let command =
            || self.command("saving staged work").env("GIT_INDEX_FILE", self.git_dir.path().join("staged"));
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

    /// Brings the complete commits into the project; a session may have damaged others.
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
    pub(crate) fn transfer(&self, commits: &[Sha], into: Option<&str>) -> Result<(), GitError> {
        if commits.is_empty() {
            return Ok(());
        }
        let mut refs = Vec::new();
        for (number, commit) in commits.iter().enumerate() {
            self.git_dir.write(&format!("refs/heads/{number}"), format!("{commit}\n").as_bytes())?;
            refs.push(match into.filter(|_| number == 0) {
                Some(name) => format!("+refs/heads/0:{name}"),
                None => format!("refs/heads/{number}"),
            });
        }
        self.fetch(self.git_dir.path(), &refs)
    }

    /// The folders that a receiving git writes to: nothing in them names a program.
    fn receiving_folders(&self) -> Vec<PathBuf> {
        let common = self.repo.common_dir();
        // People may have moved any of them.
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let folders = ["objects", "refs", "reftable", "logs"].map(|name| real(common.join(name)));
        [self.git_dir.path().to_owned()].into_iter().chain(folders).collect()
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

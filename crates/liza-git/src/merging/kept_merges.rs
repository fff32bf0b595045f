//! References to merged commits, so that merged work survives anything that happens to the integration
//! branch: `refs/liza/merged/TASK`. Never moves a branch.

use std::collections::{BTreeMap, BTreeSet};

use liza_ids::{Sha, TaskId};

use crate::program::error::GitError;
use crate::program::refs::Branch;
use crate::program::repo::{Repo, sha};

/// Liza's own folders in the root of a project, never part of its files.
const OWN_FOLDERS: [&str; 2] = [PROJECT, ".worktrees"];

/// The folder by which a project is found.
const PROJECT: &str = ".liza";

pub fn merged_ref(task: &TaskId) -> String {
    format!("refs/liza/merged/{task}")
}

impl Repo {
    pub fn keep_merge(&self, task: &TaskId, commit: &Sha) -> Result<(), GitError> {
        let command = self.command(format!("keeping the merge of {task}"));
        command.args(["update-ref", "--", &merged_ref(task), commit.as_str()]).check()
    }

    pub fn forget_merge(&self, task: &TaskId) -> Result<(), GitError> {
        let command = self.command(format!("forgetting the merge of {task}"));
        command.args(["update-ref", "-d", "--", &merged_ref(task)]).check()
    }

    /// Keeps the result of a goal as it was taken out: a host may put it into the main branch as one commit.
    pub fn keep_finished(&self, goal: &str, head: &Sha) -> Result<(), GitError> {
        let command = self.command(format!("keeping the result of {goal}"));
        command.args(["update-ref", "--", &format!("refs/liza/finished/{goal}"), head.as_str()]).check()
    }

    pub fn kept_merges(&self) -> Result<BTreeMap<TaskId, Sha>, GitError> {
        let format = "--format=%(objectname) %(refname:lstrip=3)";
        let command = self.command("listing merges").args(["for-each-ref", format, "refs/liza/merged/"]);
        let parse = |line: &str| {
            let (commit, task) = line.split_once(' ')?;
            Some((task.parse().ok()?, commit.parse().ok()?))
        };
        Ok(command.read_text()?.lines().filter_map(parse).collect())
    }

    /// The commits that no other of them contains.
    pub fn newest(&self, commits: Vec<Sha>) -> Result<Vec<Sha>, GitError> {
        let commits: BTreeSet<Sha> = commits.into_iter().collect();
        if commits.len() < 2 {
            return Ok(commits.into_iter().collect());
        }
        let command = self.command("comparing commits").args(["merge-base", "--independent"]);
        let output = command.args(commits.iter().map(Sha::as_str)).read_text()?;
        Ok(output.lines().filter_map(|line| sha(line.as_bytes())).collect())
    }

    pub fn latest(&self, commits: &[Sha]) -> Result<Option<Sha>, GitError> {
        let command =
            self.command("comparing commits").args(["rev-list", "--no-walk=sorted", "--max-count=1"]);
        Ok(sha(&command.args(commits.iter().map(Sha::as_str)).arg("--").read()?))
    }

    /// The commits that the branch lacks.
    pub fn missing_from(&self, branch: &Branch, commits: &[Sha]) -> Result<BTreeSet<Sha>, GitError> {
        let Some(tip) = self.tip(branch)?.filter(|_| !commits.is_empty()) else { return Ok(BTreeSet::new()) };
        let input: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let command = self.command("looking for lost merges");
        let command =
            command.args(["rev-list", "--ignore-missing", "--stdin"]).stdin(format!("{input}^{tip}\n"));
        let outside: BTreeSet<String> = command.read_text()?.lines().map(str::to_owned).collect();
        let is_outside = |commit: &&Sha| outside.contains(commit.as_str());
        Ok(commits.iter().filter(is_outside).cloned().collect())
    }

    /// A name in a commit's files that belongs to Liza: in the root, or one that makes a folder a project of its own, in which
    /// a person's commands would believe what the work says.
    pub fn reserved_path(&self, commit: &Sha) -> Result<Option<String>, GitError> {
        let command = self.command("reading a commit");
        let names = ["ls-tree", "-r", "-t", "-z", "--name-only", "--full-tree", commit.as_str(), "--"];
        let names = command.args(names).read()?;
        let names = names.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        // Some file systems ignore case.
        let is_own = |name: &str| match name.rsplit_once('/') {
            None => OWN_FOLDERS.iter().any(|own| own.eq_ignore_ascii_case(name)),
            Some((_, last)) => PROJECT.eq_ignore_ascii_case(last),
        };
        Ok(names.map(std::borrow::Cow::into_owned).find(|name| is_own(name)))
    }
}

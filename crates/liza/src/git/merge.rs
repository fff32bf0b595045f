//! Merges without a checkout: computed in the object store, made visible by one compare-and-swap of the branch.
//!
//! A person's checkout of that branch follows it, or the branch does not move. Git's own record (ancestry, and a
//! trailer in merge commits) is what a crash is settled from: a fast-forward is merged when the branch contains it.

use std::path::{Path, PathBuf};

use liza_core::model::{Sha, TaskId};

use super::error::GitError;
use super::refs::Branch;
use super::repo::{Repo, path, sha};
use super::run::{Reply, TREE_LIMIT};

/// Begins the reflog's line of a move of ours.
const REASON: &str = "liza: merge ";

/// How a merge would go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trial {
    /// The branch contains the commit.
    AlreadyMerged,
    /// The commit contains the branch.
    FastForward,
    /// Both have commits, and they fit.
    Clean {
        /// The merged files.
        tree: Sha,
    },
    /// Both have commits, and they do not fit.
    Conflict {
        /// Where not.
        files: Vec<PathBuf>,
    },
    /// They have no common history.
    Unrelated,
}

/// What a merge commit says.
#[derive(Debug, Clone)]
pub struct MergeNote<'a> {
    /// Whose work it is.
    pub task: &'a TaskId,
    /// The task's description, of which the first line is used.
    pub title: Option<&'a str>,
    /// Who approved it.
    pub approved_by: Option<&'a str>,
}

/// A merge that has been computed; nobody sees it until the branch is moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merge {
    /// Where the branch was.
    pub old: Sha,
    /// Where it is to be.
    pub new: Sha,
    /// Whether `new` is the approved commit itself.
    pub fast_forward: bool,
}

/// What came of computing a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the branch has not moved yet"]
pub enum Prepared {
    /// It can be tested and made visible.
    Ready(Merge),
    /// The branch contains the commit; this is how it got there.
    AlreadyMerged {
        /// The merge commit, or the commit itself.
        merge_commit: Sha,
    },
    /// It does not fit.
    Conflict {
        /// Into what.
        head: Sha,
        /// Where not.
        files: Vec<PathBuf>,
    },
    /// They have no common history.
    Unrelated {
        /// With what.
        head: Sha,
    },
    /// There is no such branch.
    NoBranch,
}

/// What came of moving the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the branch may not have moved"]
pub enum Moved {
    /// It has moved, and every checkout of it with it.
    Done,
    /// Somebody else moved it first: compute again.
    Overtaken,
    /// It was left, because a checkout of it could not follow.
    CheckoutRefused {
        /// Whose checkout.
        path: PathBuf,
        /// Git's own words.
        message: String,
    },
}

impl Repo {
    /// Says how a merge of `commit` into `into` would go, changing nothing.
    ///
    /// # Errors
    ///
    /// When one of them is not here.
    pub fn trial_merge(&self, into: &Sha, commit: &Sha) -> Result<Trial, GitError> {
        let call = self.here("comparing commits");
        let call = call.args(["rev-list", "--left-right", "--count", &format!("{into}...{commit}"), "--"]);
        let counts = call.text()?;
        match counts.split_once('\t') {
            Some((_, "0")) => Ok(Trial::AlreadyMerged),
            Some(("0", _)) => Ok(Trial::FastForward),
            Some(_) => self.merge_tree(into, commit),
            None => Err(call.unreadable(counts.as_bytes())),
        }
    }

    fn merge_tree(&self, into: &Sha, commit: &Sha) -> Result<Trial, GitError> {
        let call = self
            .here("computing a merge")
            .args(["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"])
            .args([into.as_str(), commit.as_str()])
            .limit(TREE_LIMIT);
        let Reply { status, stdout, .. } = &call.run().and_then(|reply| match reply.status {
            Some(0 | 1) => Ok(reply),
            _ if reply.message().contains("unrelated histories") => Ok(Reply { status: None, ..reply }),
            _ => Err(call.failed(&reply)),
        })?;
        let mut fields = stdout.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        match (status, fields.next().and_then(sha)) {
            (None, _) => Ok(Trial::Unrelated),
            (Some(0), Some(tree)) => Ok(Trial::Clean { tree }),
            (Some(_), Some(_)) => {
                let files = fields.map(path);
                Ok(Trial::Conflict { files: files.collect() })
            }
            (Some(_), None) => Err(call.unreadable(stdout)),
        }
    }

    /// Computes the merge of exactly `commit` into a branch; the branch does not move.
    ///
    /// # Errors
    ///
    /// [`GitError::NoIdentity`] when git does not know in whose name to commit; when a commit is not here.
    pub fn prepare_merge(
        &self,
        branch: &Branch,
        commit: &Sha,
        note: &MergeNote<'_>,
    ) -> Result<Prepared, GitError> {
        let commit = &self.full(commit)?;
        let Some(old) = self.tip(branch)? else { return Ok(Prepared::NoBranch) };
        Ok(match self.trial_merge(&old, commit)? {
            Trial::AlreadyMerged => {
                Prepared::AlreadyMerged { merge_commit: self.how_merged(&old, note.task, commit)? }
            }
            Trial::FastForward => Prepared::Ready(Merge { old, new: commit.clone(), fast_forward: true }),
            Trial::Clean { tree } => {
                let new = self.merge_commit(&tree, &[old.clone(), commit.clone()], note)?;
                Prepared::Ready(Merge { old, new, fast_forward: false })
            }
            Trial::Conflict { files } => Prepared::Conflict { head: old, files },
            Trial::Unrelated => Prepared::Unrelated { head: old },
        })
    }

    fn merge_commit(&self, tree: &Sha, parents: &[Sha; 2], note: &MergeNote<'_>) -> Result<Sha, GitError> {
        let config =
            self.here("reading commit.gpgsign").args(["config", "--type=bool", "--get", "commit.gpgsign"]);
        let sign = config.run()?.stdout.trim_ascii() == b"true";
        let call = self.here(format!("committing the merge of {}", note.task)).limit(TREE_LIMIT);
        // A name that git made up from the machine's would be in the history for ever.
        let call = call.args(["-c", "user.useConfigOnly=true"]);
        let options: &[&str] = if sign { &["-S"] } else { &[] };
        call.commit(&note.text(&parents[1]), tree, parents, options).map_err(|error| {
            let words = error.message().filter(|words| lacks_identity(words));
            let line = words.and_then(|words| words.lines().rev().find(|line| line.starts_with("fatal:")));
            line.map(|line| GitError::NoIdentity { message: line.to_owned() }).unwrap_or(error)
        })
    }

    /// Makes a computed merge visible: the branch moves if it is still where the merge began, and whoever has it
    /// checked out gets the new files, dirty ones that the merge does not touch untouched.
    ///
    /// # Errors
    ///
    /// When git fails; the branch and its checkouts agree even then, unless the error says that it could not be
    /// taken back.
    pub fn move_branch(&self, branch: &Branch, merge: &Merge, task: &TaskId) -> Result<Moved, GitError> {
        let holders = self.holders(branch)?;
        for path in &holders {
            if let Some(message) = self.follow(path, &merge.old, &merge.new, Rehearse::Yes)? {
                return Ok(Moved::CheckoutRefused { path: path.clone(), message });
            }
        }
        let reason = format!("{REASON}{task}");
        let call = self.here(format!("moving branch {branch}")).args([
            "update-ref",
            "--create-reflog",
            "-m",
            &reason,
        ]);
        let call = call.args(["--", &branch.full(), merge.new.as_str(), merge.old.as_str()]);
        if let Err(error) = call.ok() {
            let overtaken = self.tip(branch)?.as_ref() != Some(&merge.old);
            return if overtaken { Ok(Moved::Overtaken) } else { Err(error) };
        }
        for (done, path) in holders.iter().enumerate() {
            if let Some(message) = self.follow(path, &merge.old, &merge.new, Rehearse::No)? {
                self.take_back(branch, merge, &holders[..done])?;
                return Ok(Moved::CheckoutRefused { path: path.clone(), message });
            }
        }
        Ok(Moved::Done)
    }

    /// Takes a move back that must not stand, if nobody has built on it; says whether it could.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn undo_move(&self, branch: &Branch, merge: &Merge) -> Result<bool, GitError> {
        if self.tip(branch)?.as_ref() != Some(&merge.new) {
            return Ok(false);
        }
        let holders = self.holders(branch)?;
        self.take_back(branch, merge, &holders).map(|()| true)
    }

    /// Where the branch was before the merge of a task, by its reflog; `None` where that does not tell.
    ///
    /// # Errors
    ///
    /// When git cannot be run.
    pub fn before_merge(&self, branch: &Branch, task: &TaskId) -> Result<Option<Sha>, GitError> {
        let call = self.here("reading a branch's reflog");
        let log = call.args(["reflog", "show", "--format=%H %gs", &branch.full(), "--"]).run()?;
        let text = String::from_utf8_lossy(&log.stdout).into_owned();
        let wanted = format!("{REASON}{task}");
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let found = lines.find(|(_, reason)| *reason == wanted);
        Ok(found.and_then(|_| lines.next()).and_then(|(commit, _)| sha(commit.as_bytes())))
    }

    /// The checkout changed between rehearsal and performance: the branch goes back to the recorded value.
    fn take_back(&self, branch: &Branch, merge: &Merge, followed: &[PathBuf]) -> Result<(), GitError> {
        self.update_ref(&branch.full(), merge.old.as_str(), merge.new.as_str(), "liza: merge taken back")?;
        for path in followed {
            let _ = self.follow(path, &merge.new, &merge.old, Rehearse::No)?;
        }
        Ok(())
    }

    /// Brings a checkout from one commit to the other; git's words when it refuses.
    fn follow(
        &self,
        path: &Path,
        old: &Sha,
        new: &Sha,
        rehearse: Rehearse,
    ) -> Result<Option<String>, GitError> {
        let doing = "updating a checkout of the branch";
        let mode: &[&str] = match rehearse {
            Rehearse::Yes => {
                // A file that was only touched must not count as changed; the answer does not matter.
                self.call(doing, path).args(["update-index", "-q", "--refresh"]).limit(TREE_LIMIT).run()?;
                &["-n"]
            }
            Rehearse::No => &[],
        };
        let call = self.call(doing, path).args(["read-tree", "-m", "-u"]).args(mode);
        let reply = call.args([old.as_str(), new.as_str()]).limit(TREE_LIMIT).run()?;
        Ok((reply.status != Some(0)).then(|| reply.message()))
    }

    /// How `commit` got onto a branch: by a merge commit of ours, or as it is; `None` when it has not.
    ///
    /// # Errors
    ///
    /// When the commit is not here.
    pub fn settle(&self, branch: &Branch, task: &TaskId, commit: &Sha) -> Result<Option<Sha>, GitError> {
        let commit = &self.full(commit)?;
        match self.tip(branch)? {
            Some(tip) if self.is_ancestor(commit, &tip)? => self.how_merged(&tip, task, commit).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    /// Whether a branch contains a commit.
    ///
    /// # Errors
    ///
    /// When the commit is not here.
    pub fn is_merged(&self, commit: &Sha, branch: &Branch) -> Result<bool, GitError> {
        self.tip(branch)?.map_or(Ok(false), |tip| self.is_ancestor(commit, &tip))
    }

    fn how_merged(&self, tip: &Sha, task: &TaskId, commit: &Sha) -> Result<Sha, GitError> {
        let call = self
            .here("looking for a merge commit")
            .args([
                "rev-list",
                "--max-count=1",
                "--merges",
                "--first-parent",
                "--fixed-strings",
                "--all-match",
            ])
            .args([format!("--grep=Liza-Task: {task}"), format!("--grep=Liza-Commit: {commit}")])
            .args([&format!("{commit}..{tip}"), "--"]);
        Ok(sha(&call.ok()?).unwrap_or_else(|| commit.clone()))
    }

    /// Brings checkouts up to date that a crash left behind, after the branch had moved and before they did; says
    /// which.
    ///
    /// A checkout counts as left behind only if its index is exactly what the branch was before our last move.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn heal_checkouts(&self, branch: &Branch) -> Result<Vec<PathBuf>, GitError> {
        let doing = "looking for checkouts that were left behind";
        let full = branch.full();
        let call = self.here(doing).args(["reflog", "show", "-n", "2", "--format=%H %gs", &full, "--"]);
        let log = call.run()?;
        let text = String::from_utf8_lossy(&log.stdout).into_owned();
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let (Some((new, reason)), Some((old, _))) = (lines.next(), lines.next()) else {
            return Ok(Vec::new());
        };
        let (Some(new), Some(old)) = (sha(new.as_bytes()), sha(old.as_bytes())) else {
            return Ok(Vec::new());
        };
        if !reason.starts_with(REASON) || self.tip(branch)?.as_ref() != Some(&new) {
            return Ok(Vec::new());
        }
        let mut healed = Vec::new();
        for path in self.holders(branch)? {
            let call =
                self.call(doing, &path).args(["diff-index", "--cached", "--quiet", old.as_str(), "--"]);
            let left_behind = call.run()?.status == Some(0);
            if left_behind && self.follow(&path, &old, &new, Rehearse::No)?.is_none() {
                healed.push(path);
            }
        }
        Ok(healed)
    }
}

#[derive(Debug, Clone, Copy)]
enum Rehearse {
    Yes,
    No,
}

impl MergeNote<'_> {
    fn text(&self, commit: &Sha) -> String {
        let title =
            self.title.and_then(|title| title.lines().next()).map(str::trim).filter(|line| !line.is_empty());
        let title = title.map(|title| format!(": {title}")).unwrap_or_default();
        // One line: a name with a line break could forge a trailer.
        let approved = self.approved_by.and_then(|name| name.lines().next());
        let approved = approved.map(|name| format!("Approved-by: {name}\n")).unwrap_or_default();
        format!(
            "Merge {task}{title}\n\n{approved}Liza-Task: {task}\nLiza-Commit: {commit}\n",
            task = self.task
        )
    }
}

fn lacks_identity(message: &str) -> bool {
    ["tell me who you are", "empty ident name", "no email was given", "no name was given"]
        .iter()
        .any(|sign| message.contains(sign))
}

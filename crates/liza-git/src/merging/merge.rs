//! Merges without a checkout: computed in the object store; `move_branch` makes them visible. Recovery from a
//! crash relies on git's own records (ancestry, and a trailer in merge commits): a fast-forward is merged
//! when the branch contains it.

use std::path::PathBuf;

use liza_ids::{Sha, TaskId};

use crate::diff::isolated::{ComputedMerge, MergeParents};
use crate::diff::tree_changes::TreeChanges;
use crate::program::command::TREE_LIMIT;
use crate::program::error::GitError;
use crate::program::refs::Branch;
use crate::program::repo::{Repo, sha};

/// The prefix of our reflog messages.
pub(crate) const REFLOG_PREFIX: &str = "liza: merge ";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergePreview {
    /// The branch already contains the commit.
    AlreadyMerged,
    /// The commit contains the branch.
    FastForward,
    /// Both have new commits, which merge without conflict; the result has each side's changes and nothing else.
    Clean {
        tree: Sha,
    },
    Conflict {
        files: Vec<PathBuf>,
    },
    /// They have no common history.
    Unrelated,
}

#[derive(Debug, Clone)]
pub struct MergeMessage<'a> {
    pub task: &'a TaskId,
    /// Only the first line is used.
    pub title: Option<&'a str>,
    pub approved_by: Option<&'a str>,
}

/// A merge that is computed but not visible: the branch has not moved yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the branch has not moved yet"]
pub struct PendingMerge {
    /// The commit of the branch when the merge was computed.
    pub old: Sha,
    /// The commit to which the branch moves.
    pub new: Sha,
    /// True if `new` is the approved commit itself.
    pub fast_forward: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error("the commit is already merged, as {merge_commit}")]
    AlreadyMerged {
        /// The merge commit, or the commit itself after a fast-forward.
        merge_commit: Sha,
    },
    #[error("conflicts in {}", files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>().join(", "))]
    Conflict { files: Vec<PathBuf> },
    #[error("no common history")]
    Unrelated,
    #[error("there is no branch {branch}")]
    NoBranch { branch: Branch },
    /// The merge must be computed again.
    #[error("the branch moved while the merge was computed")]
    BranchMoved,
    /// A checkout of the branch cannot be updated, so the branch did not move.
    #[error("the checkout in {} cannot be updated: {message}", path.display())]
    CheckoutRefused { path: PathBuf, message: String },
    /// A checkout of the branch could not be updated, and the branch and the checkout are as before.
    #[error(transparent)]
    UpdateFailed(GitError),
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Repo {
    /// Changes nothing.
    pub fn preview_merge(&self, into: &Sha, commit: &Sha) -> Result<MergePreview, GitError> {
        let bases = self.merge_bases(into, commit)?;
        match bases.as_slice() {
            [] => Ok(MergePreview::Unrelated),
            [base] if base == commit => Ok(MergePreview::AlreadyMerged),
            [base] if base == into => Ok(MergePreview::FastForward),
            bases => self.merge_tree(&MergeParents { into, commit, bases }),
        }
    }

    /// The commits at which two histories part; none if they have nothing in common.
    pub(crate) fn merge_bases(&self, into: &Sha, commit: &Sha) -> Result<Vec<Sha>, GitError> {
        let command = self.command("comparing commits");
        let command = command.args(["merge-base", "--all", into.as_str(), commit.as_str()]);
        let output = command.run()?;
        let bases = output.stdout.split(|byte| *byte == b'\n').filter_map(sha).collect();
        match output.status {
            Some(0 | 1) => Ok(bases),
            _ => Err(command.failed(&output)),
        }
    }

    /// The changes of a commit since its history and that of a branch parted.
    pub fn changes_since(&self, branch: &Branch, commit: &Sha) -> Result<TreeChanges, GitError> {
        let Some(head) = self.tip(branch)? else { return Ok(TreeChanges::new()) };
        let mut changes = TreeChanges::new();
        for base in self.merge_bases(&head, commit)? {
            changes.extend(self.tree_changes(&base, commit)?);
        }
        Ok(changes)
    }

    fn merge_tree(&self, parents: &MergeParents<'_>) -> Result<MergePreview, GitError> {
        match self.compute_merge(parents)? {
            None => Ok(MergePreview::Unrelated),
            Some(ComputedMerge { tree, trees, is_clean: true, .. }) => {
                self.check_merge(parents.commit, &trees, &tree)?;
                Ok(MergePreview::Clean { tree })
            }
            Some(ComputedMerge { conflicts, .. }) => Ok(MergePreview::Conflict { files: conflicts }),
        }
    }

    /// Computes the merge of exactly `commit` into a branch; the branch does not move.
    pub fn prepare_merge(
        &self,
        branch: &Branch,
        commit: &Sha,
        message: &MergeMessage<'_>,
    ) -> Result<PendingMerge, MergeError> {
        let commit = &self.full_hash(commit)?;
        let what = format!("the merge of {}", message.task);
        match self.prepare(branch, commit, &what, &message.text(commit)) {
            Err(MergeError::AlreadyMerged { merge_commit: tip }) => {
                let merge_commit = self.merge_commit_of(&tip, message.task, commit)?;
                Err(MergeError::AlreadyMerged { merge_commit })
            }
            result => result,
        }
    }

    /// Computes the merge of another branch's commit, which no task made; the branch does not move.
    pub fn prepare_branch_merge(
        &self,
        branch: &Branch,
        (from, commit): (&Branch, &Sha),
        text: &str,
    ) -> Result<PendingMerge, MergeError> {
        self.prepare(branch, commit, &format!("the merge of {from}"), text)
    }

    fn prepare(
        &self,
        branch: &Branch,
        commit: &Sha,
        what: &str,
        text: &str,
    ) -> Result<PendingMerge, MergeError> {
        let old = self.tip(branch)?.ok_or_else(|| MergeError::NoBranch { branch: branch.clone() })?;
        match self.preview_merge(&old, commit)? {
            MergePreview::AlreadyMerged => Err(MergeError::AlreadyMerged { merge_commit: old }),
            MergePreview::FastForward => Ok(PendingMerge { old, new: commit.clone(), fast_forward: true }),
            MergePreview::Clean { tree } => {
                let new = self.commit_merge(&tree, &[old.clone(), commit.clone()], what, text)?;
                Ok(PendingMerge { old, new, fast_forward: false })
            }
            MergePreview::Conflict { files } => Err(MergeError::Conflict { files }),
            MergePreview::Unrelated => Err(MergeError::Unrelated),
        }
    }

    /// Computes the merge of exactly `commit` into the commit `old`, always with a merge commit: its message
    /// names the task to everyone who has the history and not the blackboard.
    pub fn prepare_merge_onto(
        &self,
        old: &Sha,
        commit: &Sha,
        message: &MergeMessage<'_>,
    ) -> Result<PendingMerge, MergeError> {
        let commit = &self.full_hash(commit)?;
        let tree = match self.preview_merge(old, commit)? {
            MergePreview::AlreadyMerged => {
                let merge_commit = self.merge_commit_of(old, message.task, commit)?;
                return Err(MergeError::AlreadyMerged { merge_commit });
            }
            MergePreview::FastForward => self.tree_of(commit)?,
            MergePreview::Clean { tree } => tree,
            MergePreview::Conflict { files } => return Err(MergeError::Conflict { files }),
            MergePreview::Unrelated => return Err(MergeError::Unrelated),
        };
        let what = format!("the merge of {}", message.task);
        let parents = [old.clone(), commit.clone()];
        let new = self.commit_merge(&tree, &parents, &what, &message.text(commit))?;
        Ok(PendingMerge { old: old.clone(), new, fast_forward: false })
    }

    fn commit_merge(&self, tree: &Sha, parents: &[Sha; 2], what: &str, text: &str) -> Result<Sha, GitError> {
        let config =
            self.command("reading commit.gpgsign").args(["config", "--type=bool", "--get", "commit.gpgsign"]);
        let sign = config.run()?.stdout.trim_ascii() == b"true";
        let command = self.command(format!("committing {what}")).limit(TREE_LIMIT);
        // A name that git derives from the host name would stay in the history forever.
        let command = command.args(["-c", "user.useConfigOnly=true"]);
        let options: &[&str] = if sign { &["-S"] } else { &[] };
        command.commit(text, tree, parents, options).map_err(|error| {
            let text = error.message().filter(|text| lacks_identity(text));
            let line = text.and_then(|text| text.lines().rev().find(|line| line.starts_with("fatal:")));
            line.map(|line| GitError::NoIdentity { message: line.to_owned() }).unwrap_or(error)
        })
    }

    /// The commit of the branch before the merge of a task, from its reflog.
    pub fn tip_before_merge(&self, branch: &Branch, task: &TaskId) -> Result<Option<Sha>, GitError> {
        let command = self.command("reading a branch's reflog");
        let log = command.args(["reflog", "show", "--format=%H %gs", &branch.full(), "--"]).run()?;
        let text = String::from_utf8_lossy(&log.stdout).into_owned();
        let wanted = format!("{REFLOG_PREFIX}{task}");
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let found = lines.find(|(_, reason)| *reason == wanted);
        Ok(found.and_then(|_| lines.next()).and_then(|(commit, _)| sha(commit.as_bytes())))
    }

    /// The commit that merged `commit`: our merge commit, or itself after a fast-forward; `None` if not merged.
    pub fn find_merge(&self, branch: &Branch, task: &TaskId, commit: &Sha) -> Result<Option<Sha>, GitError> {
        let commit = &self.full_hash(commit)?;
        match self.tip(branch)? {
            Some(tip) if self.is_ancestor(commit, &tip)? => {
                self.merge_commit_of(&tip, task, commit).map(Some)
            }
            Some(_) | None => Ok(None),
        }
    }

    /// True if a commit is the merge of exactly these two, with nothing added: a fast-forward to the commit,
    /// or a merge commit with both as parents and the files that git computes.
    pub fn is_merge_of(&self, merged: &Sha, into: &Sha, commit: &Sha) -> Result<bool, GitError> {
        let commit = &self.full_hash(commit)?;
        if merged == commit {
            return self.is_ancestor(into, commit);
        }
        let command = self.command("reading a merge commit");
        let text =
            command.args(["show", "--no-patch", "--format=%P %T", merged.as_str(), "--"]).read_text()?;
        let tree = match self.preview_merge(into, commit)? {
            MergePreview::Clean { tree } => tree,
            MergePreview::FastForward => self.tree_of(commit)?,
            MergePreview::AlreadyMerged | MergePreview::Conflict { .. } | MergePreview::Unrelated => {
                return Ok(false);
            }
        };
        Ok(text.trim() == format!("{into} {commit} {tree}"))
    }

    fn merge_commit_of(&self, tip: &Sha, task: &TaskId, commit: &Sha) -> Result<Sha, GitError> {
        let command = self
            .command("looking for a merge commit")
            .args(["rev-list", "--max-count=1", "--merges", "--first-parent"])
            .args(["--fixed-strings", "--all-match"])
            .args([format!("--grep=Liza-Task: {task}"), format!("--grep=Liza-Commit: {commit}")])
            .args([&format!("{commit}..{tip}"), "--"]);
        Ok(sha(&command.read()?).unwrap_or_else(|| commit.clone()))
    }
}

impl MergeMessage<'_> {
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
        .any(|phrase| message.contains(phrase))
}

//! Merges without a checkout: computed in the object store; `move_branch` makes them visible. Each is a commit of
//! its own, even where a fast-forward is possible: its trailers say what was merged, and which statement says why.

use std::path::PathBuf;

use liza_ids::{Digest, Sha, TaskId};

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

/// The message of a merge commit.
#[derive(Debug, Clone)]
pub struct MergeMessage<'a> {
    pub kind: MergeKind<'a>,
    /// Only the first line is used.
    pub title: Option<&'a str>,
    pub approved_by: Option<&'a str>,
    /// The statement about this merge.
    pub statement: &'a Digest,
}

#[derive(Debug, Clone, Copy)]
pub enum MergeKind<'a> {
    Task(&'a TaskId),
    /// Another branch is merged into the integration branch.
    Sync {
        from: &'a Branch,
        into: &'a Branch,
    },
    /// The result of a goal is merged into the main branch.
    Finish {
        goal: &'a str,
    },
}

/// A merge that is computed and has no commit yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeDraft {
    /// The merged commit.
    pub commit: Sha,
    /// The merged files.
    pub tree: Sha,
    /// True if the merged commit contains the branch: its files are the result.
    pub is_forward: bool,
    /// The merge as a commit that is on no branch, to be tested.
    pub trial: PendingMerge,
}

/// A merge that is computed but not visible: the branch has not moved yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the branch has not moved yet"]
pub struct PendingMerge {
    /// The commit of the branch when the merge was computed.
    pub old: Sha,
    /// The commit to which the branch moves.
    pub new: Sha,
}

#[derive(Debug, thiserror::Error)]
pub enum MergeError {
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

    /// Computes the merge of exactly `commit` onto the commit `old`. If that has it already, its files are the result.
    pub fn draft_merge(&self, old: &Sha, commit: &Sha) -> Result<MergeDraft, MergeError> {
        let commit = &self.full_hash(commit)?;
        let (tree, with_files) = match self.preview_merge(old, commit)? {
            MergePreview::AlreadyMerged => (self.tree_of(old)?, Some(old)),
            MergePreview::FastForward => (self.tree_of(commit)?, Some(commit)),
            MergePreview::Clean { tree } => (tree, None),
            MergePreview::Conflict { files } => return Err(MergeError::Conflict { files }),
            MergePreview::Unrelated => return Err(MergeError::Unrelated),
        };
        let new = match with_files {
            Some(known) => known.clone(),
            None => self.commit_merge(&tree, (old, commit), "A merge on trial\n", &[])?,
        };
        let (trial, is_forward) = (PendingMerge { old: old.clone(), new }, with_files == Some(commit));
        Ok(MergeDraft { commit: commit.clone(), tree, is_forward, trial })
    }

    /// Computes the merge of a commit that no task made; `None` if the branch has it already.
    pub fn draft_branch_merge(
        &self,
        branch: &Branch,
        commit: &Sha,
    ) -> Result<Option<MergeDraft>, MergeError> {
        let old = self.tip(branch)?.ok_or_else(|| MergeError::NoBranch { branch: branch.clone() })?;
        if self.is_ancestor(commit, &old)? { Ok(None) } else { self.draft_merge(&old, commit).map(Some) }
    }

    /// Gives a computed merge its commit; the branch does not move.
    pub fn commit_draft(
        &self,
        draft: &MergeDraft,
        message: &MergeMessage<'_>,
    ) -> Result<PendingMerge, GitError> {
        let config =
            self.command("reading commit.gpgsign").args(["config", "--type=bool", "--get", "commit.gpgsign"]);
        let sign = config.run()?.stdout.trim_ascii() == b"true";
        let options: &[&str] = if sign { &["-S"] } else { &[] };
        let (old, text) = (draft.trial.old.clone(), message.text(&draft.commit));
        let new = self.commit_merge(&draft.tree, (&old, &draft.commit), &text, options)?;
        Ok(PendingMerge { old, new })
    }

    fn commit_merge(
        &self,
        tree: &Sha,
        (into, commit): (&Sha, &Sha),
        text: &str,
        options: &[&str],
    ) -> Result<Sha, GitError> {
        let command = self.command("committing a merge").limit(TREE_LIMIT);
        // A name that git derives from the host name would stay in the history forever.
        let command = command.args(["-c", "user.useConfigOnly=true"]);
        let parents: Vec<Sha> = merge_parents(into, commit).cloned().collect();
        command.commit(text, tree, &parents, options).map_err(|error| {
            let text = error.message().filter(|text| lacks_identity(text));
            let line = text.and_then(|text| text.lines().rev().find(|line| line.starts_with("fatal:")));
            line.map(|line| GitError::NoIdentity { message: line.to_owned() }).unwrap_or(error)
        })
    }

    /// True if a commit is the merge of exactly these two, with nothing added: it has both as parents, and the files that
    /// git computes.
    pub fn is_merge_of(&self, merged: &Sha, into: &Sha, commit: &Sha) -> Result<bool, GitError> {
        let commit = &self.full_hash(commit)?;
        let command = self.command("reading a merge commit");
        let text =
            command.args(["show", "--no-patch", "--format=%P %T", merged.as_str(), "--"]).read_text()?;
        let tree = match self.preview_merge(into, commit)? {
            MergePreview::Clean { tree } => tree,
            MergePreview::FastForward => self.tree_of(commit)?,
            MergePreview::AlreadyMerged => self.tree_of(into)?,
            MergePreview::Conflict { .. } | MergePreview::Unrelated => return Ok(false),
        };
        let parents: Vec<&str> = merge_parents(into, commit).map(Sha::as_str).collect();
        Ok(text.trim() == format!("{} {tree}", parents.join(" ")))
    }
}

impl MergeMessage<'_> {
    fn text(&self, commit: &Sha) -> String {
        let title =
            self.title.and_then(|title| title.lines().next()).map(str::trim).filter(|line| !line.is_empty());
        let title = title.map(|title| format!(": {title}")).unwrap_or_default();
        let (subject, trailer) = match self.kind {
            MergeKind::Task(task) => (format!("Merge {task}"), format!("Liza-Task: {task}")),
            MergeKind::Sync { from, into } => {
                (format!("Merge {from} into {into}"), format!("Liza-Sync: {from}"))
            }
            MergeKind::Finish { goal } => (format!("Merge {goal}"), format!("Liza-Finish: {goal}")),
        };
        // One line: a name with a line break could forge a trailer.
        let approved = self.approved_by.and_then(|name| name.lines().next());
        let approved = approved.map(|name| format!("Approved-by: {name}\n")).unwrap_or_default();
        let trailers = format!("{trailer}\nLiza-Commit: {commit}\nLiza-Statement: {}", self.statement);
        format!("{subject}{title}\n\n{approved}{trailers}\n")
    }
}

/// A commit has each parent once: if the branch is at the merged commit itself, that is the only one.
fn merge_parents<'a>(into: &'a Sha, commit: &'a Sha) -> impl Iterator<Item = &'a Sha> {
    [into].into_iter().chain((into != commit).then_some(commit))
}

fn lacks_identity(message: &str) -> bool {
    ["tell me who you are", "empty ident name", "no email was given", "no name was given"]
        .iter()
        .any(|phrase| message.contains(phrase))
}
